# `joulemark export prometheus`: what node_exporter's textfile collector reads.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import math
import re
import shutil
import subprocess

import builders
import pytest


@pytest.fixture
def filled(site, monkeypatch):
    """Two jobs of a user with an awkward account, one of nobody known, one without energy."""
    site.configure("price_per_kwh: 3.6\ncurrency: EUR\n")
    for job in (1, 2):
        site.leave(job)
        for name, value in (("ID", str(job)), ("USER", "alice"), ("ACCOUNT", 'a"b\\c')):
            monkeypatch.setenv(f"SLURM_JOB_{name}", value)
        site.run("merge", "--job", str(job), "--nodes", "n1")
    site.leave(3)
    site.leave(4, accounts=[], missing="dead", uid=7)
    site.run("merge")
    return site


def samples(text):
    return dict(re.findall(r"^(joulemark_\w+\{.*\}) (\S+)$", text, re.MULTILINE))


def test_sums_by_labels(filled):
    found = samples(filled.run("export", "prometheus")[1])
    alice = r'{cluster="demo",user="alice",account="a\"b\\c",partition="unknown"}'
    assert found[f"joulemark_energy_joules{alice}"] == "200.0"
    assert found[f"joulemark_jobs{alice}"] == "2"
    assert float(found[f"joulemark_energy_uncertainty_joules{alice}"]) == pytest.approx(
        4.01, abs=0.01
    )
    money = alice.replace("}", ',currency="EUR"}')
    assert float(found[f"joulemark_cost{money}"]) == pytest.approx(200e-6)


def test_a_sum_of_some_jobs_says_of_how_many(filled):
    filled.yaml.write_text(filled.yaml.read_text().replace("price_per_kwh: 3.6\n", ""))
    filled.leave(5)
    filled.run("merge")
    found = samples(filled.run("export", "prometheus")[1])
    nobody = '{cluster="demo",user="uid 1000",account="unknown",partition="unknown"'
    assert found[f"joulemark_jobs{nobody}}}"] == "2"
    assert found[f'joulemark_covered_jobs{nobody},sum="energy"}}'] == "2"
    assert found[f'joulemark_covered_jobs{nobody},sum="cost"}}'] == "1"
    lost = '{cluster="demo",user="uid 7",account="unknown",partition="unknown"'
    assert not [name for name in found if "covered" in name and lost in name]


def test_a_node_says_of_how_many_jobs_its_energy_is(filled):
    unmeasured = {**builders.account(), "energy_uj": None}
    filled.leave(5, accounts=[unmeasured], missing="dead")
    filled.leave(6, "n2", accounts=[unmeasured], missing="dead")
    filled.run("merge")
    found = samples(filled.out("export", "prometheus"))
    for node, jobs, known in (("n1", "4", "3"), ("n2", "1", "0")):
        labels = f'{{cluster="demo",node="{node}"}}'
        assert found[f"joulemark_node_jobs{labels}"] == jobs
        assert found[f"joulemark_node_covered_jobs{labels}"] == known
    assert found['joulemark_node_energy_joules{cluster="demo",node="n1"}'] == "300.0"
    assert 'joulemark_node_energy_joules{cluster="demo",node="n2"}' not in found


def test_money_alone_is_told_apart_by_currency(filled):
    filled.yaml.write_text(filled.yaml.read_text().replace("EUR", "CHF"))
    filled.leave(5)
    filled.run("merge")
    found = samples(filled.run("export", "prometheus")[1])
    nobody = '{cluster="demo",user="uid 1000",account="unknown",partition="unknown"'
    assert found[f"joulemark_energy_joules{nobody}}}"] == "200.0"
    for currency in ("EUR", "CHF"):
        cost = found[f'joulemark_cost{nobody},currency="{currency}"}}']
        assert float(cost) == pytest.approx(100e-6)
        assert found[f'joulemark_cost_jobs{nobody},currency="{currency}"}}'] == "1"
    error_j = float(found[f"joulemark_energy_uncertainty_joules{nobody}}}"])
    assert error_j == pytest.approx(2 * math.hypot(2 * 1, math.sqrt(2) * 0.1))


def test_what_is_not_known_has_no_sample(filled):
    text = filled.run("export", "prometheus")[1]
    lost = '{cluster="demo",user="uid 7",account="unknown",partition="unknown"}'
    assert f"joulemark_incomplete_jobs{lost} 1" in text
    assert f"joulemark_energy_joules{lost}" not in text
    assert "overhead" not in text and "carbon" not in text


def test_what_can_fall_is_no_counter(filled, monkeypatch):
    """A refund, a node's record that came late, a user's name that did."""
    before = samples(filled.run("export", "prometheus")[1])
    filled.out("store", "correct", "1", "--charge", "0%", "--why", "its node failed")
    filled.leave(4, uid=7)
    filled.out("merge")
    for name, value in (("ID", "3"), ("USER", "bob"), ("ACCOUNT", "red")):
        monkeypatch.setenv(f"SLURM_JOB_{name}", value)
    filled.out("merge", "--job", "3", "--nodes", "n1")
    text = filled.out("export", "prometheus")
    types, after = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE)), samples(text)
    fallen = {
        name.partition("{")[0]
        for name, value in before.items()
        if float(after.get(name, 0)) < float(value)
    }
    for what in ("energy_joules", "cost", "jobs", "incomplete_jobs"):
        assert any(name.startswith(f"joulemark_{what}") for name in fallen), fallen
    assert {types.get(name, "gone") for name in fallen} <= {"gauge", "gone"}


def test_file_takes_its_place_at_once(filled):
    path = filled.folder / "joulemark.prom"
    path.write_text("old")
    assert filled.run("export", "prometheus", "--output", str(path)) == (0, "", "")
    assert path.read_text() == filled.run("export", "prometheus")[1]
    assert [p.name for p in filled.folder.glob(".*")] == []
    assert "Not a directory" in filled.fails("export", "prometheus", "--output", str(path / "x"))


def test_promtool_finds_nothing_wrong(filled):
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("promtool is not installed")
    text = filled.run("export", "prometheus")[1]
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
