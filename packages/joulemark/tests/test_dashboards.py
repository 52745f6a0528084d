# Grafana's dashboards: every query of theirs by a real Prometheus that scrapes real exports.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""There is no Grafana here: Debian has none, PyPI and npm have clients and types of it alone, and
Grafana's own packages are a vendor's, from a server that the tests do not use."""

from __future__ import annotations

import json
import math
import re
import time

import builders
import pytest
from joulemark import cli, store
from joulemark.accounting import dashboards, prometheus
from joulemark.shell import __main__ as shell
from joulemark.store import place

from tests.cluster import wait_for
from tests.peers.prometheus import Prometheus, Target

FILES = {name: json.loads(text) for name, text in dashboards.files().items()}
PANELS = [
    pytest.param(panel, id=f"{name}: {panel['title']}")
    for name, board in FILES.items()
    for panel in board["panels"]
]
UNITS = {"joule", "massg", "short", "none", "percentunit", "watt", "s", "decbytes"}
SITE = "price_per_kwh: 3.6\ncurrency: EUR\ncarbon_g_per_kwh: 360\n"


class Site:
    """Its users' jobs, and what Prometheus has of them."""

    def __init__(self, folder, target, server):
        self.folder, self.target, self.server = folder, target, server
        (folder / "records/shared").mkdir(parents=True)
        places = f"record_dir: {folder}/records\nstore: {folder}/store.sqlite\n"
        (folder / "joulemark.yaml").write_text(f"cluster: demo\n{places}{SITE}")
        lines = (
            {"time_ns": builders.START_NS + second * 10**9, "energy_uj": second * 10**8}
            for second in (0, 60)
        )
        more = {"systematic_uj": 0, "random_uj": 0, "nodes": "n1", "split": "equal", "run": "a"}
        text = "".join(json.dumps({**line, **more}) + "\n" for line in lines)
        (folder / "records/shared/rack.jsonl").write_text(text)

    def run(self, *words):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JOULEMARK_CONFIG", str(self.folder / "joulemark.yaml"))
            assert cli.main(list(words)) == 0

    def job(self, number, user, account, used_j=None, **changes):
        """A job of so much energy; without, its node lost it."""
        used = {"accounts": [], "missing": "dead"}
        if used_j is not None:
            used = {"accounts": [builders.account(energy_uj=used_j * 10**6, **changes)]}
        record = builders.record(number, node_cpus=4, **used)
        builders.write(self.folder / "records", record)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (("ID", str(number)), ("USER", user), ("ACCOUNT", account)):
                patch.setenv(f"SLURM_JOB_{name}", value)
            patch.setenv("SLURM_JOB_PARTITION", "batch")
            self.run("merge", "--job", str(number), "--nodes", "n1")
        with store.writing(place.Place.parse(f"{self.folder}/store.sqlite")) as session:
            session.run(
                "UPDATE job_run SET EnergyStorage_uj = 3000000, StorageSystematic_uj = 1,"
                " StorageRandom_uj = 1, BytesRead = 4096, BytesWritten = 8192, MetadataOps = 7"
                " WHERE Step = 'job' AND Job = ? AND ConsumedEnergy_uj IS NOT NULL",
                [number],
            )

    def export(self):
        """When Prometheus has what the command writes now."""
        path = self.folder / "joulemark.prom"
        self.run("export", "prometheus", "--out", str(path))
        self.target.show(path.read_text())
        self.text, after = path.read_text(), time.time()
        wait_for(lambda: self.newest() > after, what="a scrape of the export")
        return self.newest()

    def newest(self):
        return max((when for when, _ in self.server.samples("joulemark_jobs")), default=0)

    def ask(self, expr, **chosen):
        """As Grafana does at the end of a range of time from the first export to the second."""
        query = self.filled(expr, **chosen)
        return series(self.server.ask("query", query=query, time=self.second_s))

    def ask_steps(self, expr):
        """Likewise, with such a range as the step."""
        span = {"start": self.first_s, "end": self.second_s, "step": self.range}
        return series(self.server.ask("query_range", query=self.filled(expr), **span))

    @property
    def range(self):
        return f"{round((self.second_s - self.first_s) * 1000)}ms"

    def filled(self, expr, **chosen):
        """With Grafana's variables; what is not chosen is All."""
        for name in ("range", "interval"):
            expr = expr.replace(f"$__{name}", self.range)
        return re.sub(r"\$(\w+)", lambda found: chosen.get(found[1], ".*"), expr)


def series(data):
    """The values of each series by its labels' values; the last one's of a range."""
    return {
        tuple(one["metric"].values()): float((one.get("values") or [one["value"]])[-1][1])
        for one in data["result"]
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two exports: between them jobs end, one is corrected, and a user has his first ones."""
    folder, target = tmp_path_factory.mktemp("dashboards"), Target()
    try:
        with Prometheus(folder / "prometheus", target) as server:
            made = Site(folder / "site", target, server)
            made.job(1, "alice", "physics", 1000)
            made.job(2, "alice", "physics", 200)
            made.first_s = made.export()
            made.run("store", "correct", "1", "--charge", "40%", "--why", "its node failed")
            made.job(3, "bob", "biology", 500, estimated=True, method="model")
            made.job(4, "bob", "biology")
            made.second_s = made.export()
            yield made
    finally:
        target.stop()


@pytest.mark.parametrize("panel", PANELS)
def test_every_query_brings_finite_values(site, panel):
    for target in panel["targets"]:
        found = (site.ask if target["instant"] else site.ask_steps)(target["expr"])
        assert found, f"no series: {target['expr']}"
        assert all(map(math.isfinite, found.values())), found


def test_every_metric_of_the_export_is_shown(site):
    """Each one of the export is in these jobs' too, so that no query is tried without it."""
    metrics = (*prometheus.METRICS, *prometheus.NODE_METRICS)
    of_code = {f"joulemark_{one.name}" for one in metrics}
    of_text = set(re.findall(r"^# TYPE (\w+)", site.text, re.MULTILINE))
    asked = [target["expr"] for panel in PANELS for target in panel.values[0]["targets"]]
    shown = re.findall(r"joulemark_\w+", " ".join(asked))
    assert of_code == of_text == set(shown)


def test_prometheus_knows_that_sums_can_fall(site):
    known = site.server.ask("metadata")
    types = {one["type"] for name in known if "joulemark" in name for one in known[name]}
    assert types == {"gauge"}


def test_of_a_range_are_the_jobs_that_ended_in_it(site):
    """bob's first jobs have a new series; a refund is less, and no restart of a counter."""
    used_j = site.ask(dashboards.ended("energy_joules", "user"))
    assert used_j == {("alice",): pytest.approx(-600), ("bob",): pytest.approx(500)}
    assert site.ask(dashboards.ended("jobs", "user")) == {("alice",): 0, ("bob",): 2}
    assert site.ask(dashboards.unknown("user")) == {("alice",): 0, ("bob",): 1}
    assert site.ask(dashboards.ended("cost", "currency")) == {("EUR",): pytest.approx(-100e-6)}


def test_nodes_have_what_jobs_used_there_whatever_was_refunded(site):
    node = ("demo", "n1")
    assert site.ask(dashboards.ended("node_energy_joules", "cluster,node")) == {node: 500}
    assert site.ask(dashboards.job_power_w()) == {node: pytest.approx(50)}  # a job of 10 s
    assert site.ask(dashboards.job_power_w(), user="nobody") == {node: pytest.approx(50)}
    assert site.ask(dashboards.job_power_w(), cluster="other") == {}


def test_a_choice_is_obeyed(site):
    asked = dashboards.ended("energy_joules", "user")
    assert list(site.ask(asked, user="bob|carol")) == [("bob",)]
    assert list(site.ask(asked, account="physics")) == [("alice",)]
    for name in ("cluster", "partition"):
        assert not site.ask(asked, **{name: "other"})


def test_an_export_that_was_not_there_yet_is_no_zero(site):
    """Else a range that begins before it had all jobs of all years."""
    asked = dashboards.ended("jobs", over="1h")
    assert site.ask(asked) == {}


def test_what_can_be_chosen_is_in_the_export(site):
    for board in FILES.values():
        for one in board["templating"]["list"][1:]:
            query = re.fullmatch(r"label_values\((\w+), (\w+)\)", one["query"]["query"])
            metric, label = query.groups()
            assert label == one["name"]
            assert site.server.ask(f"label/{label}/values", **{"match[]": metric})


@pytest.mark.parametrize("name", FILES)
def test_a_dashboard_is_sound(name):
    board = FILES[name]
    assert name == f"{board['uid']}.json"
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)
    source = board["templating"]["list"][0]
    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    known = {one["name"] for one in board["templating"]["list"]}
    known |= {"__range", "__interval", "__all"}  # Grafana's own
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(board))) == known
    for panel in board["panels"]:
        assert panel["title"] and panel["description"].endswith("."), panel["title"]
        assert units(panel) <= UNITS
        for one in (panel, *panel["targets"]):
            assert one["datasource"] == {"type": "prometheus", "uid": f"${{{source['name']}}}"}
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    cells = [cell for panel in board["panels"] for cell in covered(panel["gridPos"])]
    assert len(set(cells)) == len(cells) and max(x for x, _ in cells) < 24


def units(panel):
    """The panel's, and each column's where it is a table."""
    fields = panel["fieldConfig"]
    columns = {one["matcher"]["options"]: one["properties"] for one in fields["overrides"]}
    if panel["type"] == "table":
        assert list(columns) == [f"Value #{one['refId']}" for one in panel["targets"]]
    return {fields["defaults"]["unit"], *(set_to(one, "unit") for one in columns.values())}


def set_to(properties, name):
    (value,) = (one["value"] for one in properties if one["id"] == name)
    return value


def covered(place):
    return [
        (place["x"] + column, place["y"] + line)
        for column in range(place["w"])
        for line in range(place["h"])
    ]


def test_a_build_installs_them(tmp_path):
    shell.main(tmp_path)
    folder = tmp_path / "share/joulemark/grafana"
    assert {path.name: json.loads(path.read_text()) for path in folder.iterdir()} == FILES
