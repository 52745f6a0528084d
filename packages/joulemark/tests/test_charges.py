# Overhead of shared channels, carbon and cost: each in columns of its own, each with its error.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import math
import os

import builders
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joulemark import config, store
from joulemark.accounting import charges, rates, shared, storagework
from joulemark.errors import UserError
from joulemark.store import jobs

S = 10**9
START_S = builders.START_NS // S
NODES = ("n1", "n2", "n3", "n4")


def lines(points, nodes="n[1-4]", split="equal", run="a", **more):
    """Lines of a shared channel: points are (seconds since START_NS, J so far)."""
    return [
        {
            "time_ns": builders.START_NS + round(second * S),
            "energy_uj": energy_j * 10**6,
            "systematic_uj": energy_j * 10**4,
            "random_uj": energy_j * 10**3,
            "nodes": nodes,
            "split": split,
            "run": run,
            **more,
        }
        for second, energy_j in points
    ]


def write(site, found, name="rack1", end="\n"):
    folder = site.records / "shared"
    folder.mkdir(exist_ok=True)
    with open(folder / f"{name}.jsonl", "a", encoding="utf-8") as file:
        file.write("\n".join(map(json.dumps, found)) + end)


def job(site, number=12, node="n1", start_s=0, seconds=10, cpus=2, **more):
    account = builders.account("job", seconds=seconds, start_s=start_s, cpus=cpus)
    site.leave(number, node, [account], **{"node_cpus": 4, **more})


def merged(site, number=12):
    assert site.run("merge")[0] == 0
    return site.job(number)[str(number)]


def test_the_legend_of_bars_is_of_what_was_measured_though_the_first_was_not(
    site, axes_of_figures
):
    write(site, lines([(0, 0), (60, 6000)]))
    site.leave(12, "n1", [builders.account(estimated=True, method="model")], node_cpus=4)
    assert site.run("merge")[0] == 0
    site.out("report", "usage", "--plot", str(site.folder / "bars.png"))
    (axes,) = axes_of_figures
    assert axes.patches[0].get_facecolor()[:3] == (1, 1, 1)
    energy, overhead = axes.get_legend().get_patches()
    assert (1, 1, 1) != energy.get_facecolor()[:3] != overhead.get_facecolor()[:3] != (1, 1, 1)


def test_job_gets_its_cpus_share_of_its_nodes_equal_part(site):
    write(site, lines([(0, 0), (60, 6000)]))
    job(site, start_s=10, seconds=30)
    row = merged(site)
    assert row["EnergyOverhead_uj"] == 3000 * 10**6 // 4 // 2
    assert row["ConsumedEnergy_uj"] == 100_000_000
    assert row["OverheadSystematic_uj"] == pytest.approx(3000 * 10**4 / 8)
    assert row["Notes"] is None


def test_error_of_an_interval_between_two_readings_is_that_of_any_curve(site):
    """All or nothing of a minute's energy may have been used in the job's part of it."""
    write(site, lines([(0, 0), (60, 6000)]))
    job(site, start_s=0, seconds=30, cpus=4)
    row = merged(site)
    of_meter = math.sqrt(0.5) * 6000 * 10**3 / 4
    of_curve = 6000 * 10**6 * math.sqrt(0.25 / 3) / 4
    assert row["OverheadRandom_uj"] == pytest.approx(math.hypot(of_meter, of_curve))
    assert row["OverheadJoules"] == pytest.approx(
        2e-6 * math.hypot(row["OverheadSystematic_uj"], row["OverheadRandom_uj"])
    )


def test_no_shared_channel_is_not_zero(site):
    job(site)
    assert merged(site)["EnergyOverhead_uj"] is None
    write(site, lines([(0, 0), (60, 6000)], nodes="m[1-9]"))
    job(site, 13)
    assert merged(site, 13)["EnergyOverhead_uj"] is None


def test_unreadable_channel_costs_its_overhead_and_not_the_merge(site):
    write(site, lines([(0, 0), (60, 6000)]))
    (site.records / "shared" / "rack2.jsonl").mkdir()
    job(site, start_s=10, seconds=30)
    code, _, err = site.run("merge")
    assert code == 0 and err.startswith("joulemark: rack2: ") and err.count("\n") == 1
    row = site.job(12)["12"]
    assert row["ConsumedEnergy_uj"] is not None
    assert row["EnergyOverhead_uj"] == 3000 * 10**6 // 4 // 2
    assert "rack2: " in row["Notes"] and "cannot be read" in row["Notes"]


def test_record_without_node_cpus_says_so(site):
    write(site, lines([(0, 0), (60, 6000)]))
    site.leave()
    row = merged(site)
    assert row["EnergyOverhead_uj"] is None
    assert row["Notes"] == "rack1: no overhead: records of n1 lack node_cpus"


def test_channels_add_up(site):
    for name in ("rack1", "cooling"):
        write(site, lines([(0, 0), (60, 6000)]), name)
    job(site, seconds=60, cpus=4)
    row = merged(site)
    assert row["EnergyOverhead_uj"] == 2 * 1500 * 10**6
    assert row["OverheadSystematic_uj"] == pytest.approx(2 * 1500 * 10**4)
    assert row["OverheadRandom_uj"] == pytest.approx(2 * 1500 * 10**3)


def test_lines_that_come_late_are_taken_at_a_later_merge(site, monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: builders.START_NS + 3600 * S)
    write(site, lines([(0, 0), (60, 6000)]))
    job(site, start_s=30, seconds=60, cpus=4)
    row = merged(site)
    assert row["EnergyOverhead_uj"] == 750 * 10**6
    assert row["Notes"] == "rack1: 30.0 of 60.0 node-seconds not covered"
    write(site, lines([(120, 18000)]))
    row = merged(site)
    assert row["EnergyOverhead_uj"] == (3000 + 6000) * 10**6 // 4
    assert row["Notes"] is None
    assert site.run("merge") == (0, "", "")


def test_counter_that_began_anew_is_a_hole_that_is_said(site):
    write(site, [*lines([(0, 0), (20, 2000)]), *lines([(40, 0), (60, 2000)], run="b")])
    job(site, seconds=60, cpus=4)
    row = merged(site)
    assert row["EnergyOverhead_uj"] == 1000 * 10**6
    assert row["Notes"] == "rack1: 20.0 of 60.0 node-seconds not covered"


def test_split_by_energy_takes_what_each_node_used(site):
    first = lines([(0, 0)], split="energy", nodes_uj={"n1": 0, "n2": 5, "n3": 5, "n4": 5})
    last = lines([(60, 6000)], split="energy", nodes_uj={"n1": 30, "n2": 15, "n3": 5, "n4": 5})
    write(site, first + last)
    job(site, seconds=60, cpus=4)
    assert merged(site)["EnergyOverhead_uj"] == 4500 * 10**6


def test_lines_of_many_nodes_are_long(site):
    """Longer than what is read of a file's end at once."""
    names = [f"n{i}" for i in range(1, 10001)]
    for second, energy_j in ((0, 0), (60, 10000)):
        used = {name: second * 10**12 for name in names}
        write(site, lines([(second, energy_j)], "n[1-10000]", "energy", nodes_uj=used))
    job(site, seconds=60, cpus=4)
    assert merged(site)["EnergyOverhead_uj"] == 10**6


@pytest.mark.parametrize(
    "used",
    [None, {"n1": 30, "n2": 15, "n3": 5}, {"n1": 0, "n2": 5, "n3": 5, "n4": 5}],
    ids=["no energies", "one node is lacking", "nothing used"],
)
def test_split_that_is_not_possible_is_equal_and_said(site, used):
    """The first minute by energy, the second one not."""
    first, middle = ({"n1": i, "n2": 5, "n3": 5, "n4": 5 + i} for i in (-30, 0))
    write(site, lines([(0, 0)], split="energy", nodes_uj=first))
    write(site, lines([(60, 6000)], split="energy", nodes_uj=middle))
    write(site, lines([(120, 12000)], split="energy", nodes_uj=used))
    job(site, seconds=90, cpus=4)
    row = merged(site)
    assert row["EnergyOverhead_uj"] == (3000 + 750) * 10**6
    assert row["Notes"] == (
        "rack1: 30.0 of 90.0 node-seconds split equally: what each node used is not known"
    )


def test_torn_and_foreign_lines_are_bridged(site):
    write(site, lines([(0, 0)]))
    write(site, lines([(20, 2000)]), end="")
    with open(site.records / "shared" / "rack1.jsonl", "a") as file:
        file.write('{"time_ns": 5, \nnot json\n[]\n{"time_ns": 1}\n')
    write(site, lines([(40, 4000)]))
    write(site, lines([(60, 9999)]), end="")
    job(site, seconds=40, cpus=4)
    assert merged(site)["EnergyOverhead_uj"] == 1000 * 10**6


def test_lines_that_are_not_sound_are_told_to_the_jobs_that_they_concern(site):
    """And the first one of a channel is told on stderr."""
    write(site, lines([(0, 0), (20, 2000)]))
    path = site.records / "shared" / "rack1.jsonl"
    with open(path, "a") as file:
        file.write("torn {\n[]\n")
    write(site, lines([(60, 6000), (80, 8000)]))
    write(site, [*lines([(0, 0)]), {"time_ns": 1}, *lines([(80, 6000)])], "rack2")
    job(site, 12, start_s=10, seconds=30)
    job(site, 13, start_s=10, seconds=40)
    job(site, 14, start_s=62, seconds=10)
    code, _, err = site.run("merge")
    assert code == 0
    assert err.splitlines() == [
        f"joulemark: {path}:3: 'torn {{' is no JSON: bridged by its neighbours; more of its "
        "lines that are not sound: 1; correct or remove them",
        f"joulemark: {path.with_name('rack2.jsonl')}:2: has no energy_uj: bridged by its "
        "neighbours; correct or remove it",
    ]
    notes = [site.job(number)[str(number)]["Notes"] for number in (12, 13, 14)]
    said = "rack1: unsound lines, bridged by neighbours: 2"
    other = "rack2: unsound lines, bridged by neighbours: 1"
    assert notes == [f"{said}; {other}", f"{said}; {other}", other]


def test_a_channel_without_a_sound_line_is_told_to_every_job(site):
    """Nobody knows whose nodes it is of; a line that is being written is no fault."""
    found = [
        {"uj" if key == "energy_uj" else key: value for key, value in one.items()}
        for one in lines([(0, 0), (20, 2000), (60, 6000)])
    ]
    write(site, found)
    write(site, [], "empty")
    write(site, [{"time_ns": 1}], "begun", end="")
    job(site, 12)
    job(site, 13, "n9")
    path = site.records / "shared" / "rack1.jsonl"
    said = f"rack1: no overhead: no line of {path} is sound"
    for words in (["merge"], ["merge", "--rebuild"]):
        code, _, err = site.run(*words)
        assert (code, err.splitlines()) == (
            0,
            [
                f"joulemark: {path}:1: has no energy_uj, and none of the file's 3 lines is sound: "
                "no job gets overhead of it: correct or remove them, then run "
                "`joulemark merge --rebuild`"
            ],
        )
        for number in (12, 13):
            row = site.job(number)[str(number)]
            assert (row["Notes"], row["EnergyOverhead_uj"]) == (said, None)


def test_the_name_of_a_channel_may_be_no_unicode(site):
    write(site, [{"time_ns": 1}])
    path = site.records / "shared" / "rack1.jsonl"
    path.rename(os.fsdecode(os.fsencode(path.parent) + b"/r\xe9.jsonl"))
    job(site, 12)
    assert site.run("merge")[0] == 0
    assert site.job(12)["12"]["Notes"].startswith("r?: no overhead: no line of ")


def test_a_channel_without_a_sound_line_lets_no_merge_look_again(site, monkeypatch):
    """Only an edit of the file makes it one that jobs get overhead of; a right to it may come."""
    monkeypatch.setattr(charges, "PATIENCE_NS", builders.START_NS)
    write(site, [{"time_ns": 1}])
    job(site, 12)
    site.out("merge")
    (site.records / "shared" / "rack2.jsonl").mkdir()
    job(site, 13)
    site.out("merge")
    with store.reading(config.load(site.yaml).store) as session:
        assert jobs.pending_jobs(session, "demo", everything=True) == {13}


def test_of_a_channel_nothing_is_told_where_no_job_is_merged(site):
    write(site, [{"time_ns": 1}])
    assert site.run("merge") == (0, "", "")


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        (None, "[] is no JSON object"),
        ({"time_ns": "now"}, "time_ns: 'now' is no whole number"),
        ({"energy_uj": 1.5}, "energy_uj: 1.5 is no whole number"),
        ({"random_uj": "much"}, "random_uj: 'much' is no number"),
        ({"systematic_uj": None}, "systematic_uj: None is no number"),
        ({"random_uj": 10**400}, "random_uj: 1000"),
        ({"nodes": "n[1"}, "nodes: 'n[1' is not a node list"),
        ({"nodes_uj": [1]}, "nodes_uj: [1] is no object"),
        ({"nodes_uj": {"n1": None}}, "nodes_uj: n1: None is no whole number"),
    ],
)
def test_what_is_wrong_with_a_line_is_told(site, changes, wrong):
    first, bad, last = lines([(0, 0), (20, 2000), (60, 6000)])
    write(site, [first, [] if changes is None else {**bad, **changes}, last])
    job(site, seconds=60, cpus=4)
    code, _, err = site.run("merge")
    assert code == 0 and f"rack1.jsonl:2: {wrong}" in err
    assert err.endswith(": bridged by its neighbours; correct or remove it\n")
    assert site.job(12)["12"]["EnergyOverhead_uj"] == 1500 * 10**6


def test_a_year_of_minutes_is_searched_not_read(tmp_path):
    count = 100_000
    path = tmp_path / "rack.jsonl"
    with path.open("w") as file:
        for minute in range(count):
            (line,) = lines([(60 * minute, 60 * minute)])
            file.write(json.dumps(line) + "\n")
    channel = shared.Channel(path)
    parsed = []
    channel.parse, parse = lambda text: parsed.append(1) or parse(text), channel.parse
    for minute in (0, 1, count // 3, count - 2):
        begin = builders.START_NS + minute * 60 * S
        (segment,), _ = channel.segments(begin + S, begin + 2 * S)
        assert segment.first.time_ns == begin
    assert len(parsed) < 4 * 1000


pieces = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 10**9)), min_size=2, max_size=12)
spans = st.lists(
    st.tuples(
        st.sampled_from(NODES), st.integers(-20, 300), st.integers(0, 200), st.integers(1, 4)
    ),
    max_size=14,
)


@settings(max_examples=150)
@given(pieces, spans, st.booleans(), st.randoms())
def test_jobs_never_get_more_than_there_was(tmp_path_factory, gaps, wanted, weighted, dice):
    """Any schedule that gives no CPU twice, on any curve, with any restarts of the counter."""
    found, time_ns, energy_uj, run, total_uj = [], builders.START_NS, 0, "a", 0
    used = dict.fromkeys(NODES, 0)
    for seconds, gain_uj in gaps:
        if found and dice.random() < 0.2:
            run, energy_uj = run + "b", 0
        elif found:
            energy_uj += gain_uj
            total_uj += gain_uj
        for node in NODES:
            used[node] += dice.randrange(1000)
        (line,) = lines([(0, 0)], run=run, split="energy" if weighted else "equal")
        found.append({**line, "time_ns": time_ns, "energy_uj": energy_uj, "nodes_uj": dict(used)})
        time_ns += seconds * S + dice.randrange(1000)
    path = tmp_path_factory.mktemp("shared") / "rack.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in found))
    given_uj, taken = 0, []
    for node, start_s, length_s, cpus in wanted:
        start_ns = builders.START_NS + start_s * S + dice.randrange(S)
        end_ns = start_ns + length_s * S
        busy = sum(c for n, s, e, c in taken if n == node and s < end_ns and e > start_ns)
        if busy + cpus > 4:
            continue
        taken.append((node, start_ns, end_ns, cpus))
        part = shared.Shares(shared.Channel(path), start_ns, end_ns).part(node, start_ns, end_ns)
        assert part.energy_uj >= 0 and part.covered_ns <= end_ns - start_ns
        given_uj += part.energy_uj * cpus // 4
    assert given_uj <= total_uj


def test_absent_factors_leave_columns_empty(site):
    job(site)
    row = merged(site)
    assert [row[name] for name in ("Carbon_g", "Cost", "CostError", "Currency")] == [None] * 4


def test_factors_error_and_overhead_stay_apart(site):
    site.configure("carbon_g_per_kwh: 360\ncarbon_relative_error: 0.1\n")
    write(site, lines([(0, 0), (60, 6000)]))
    job(site, seconds=60, cpus=4)
    row = merged(site)
    grams = 100 / 3.6e6 * 360
    assert row["Carbon_g"] == pytest.approx(grams)
    assert row["CarbonError_g"] == pytest.approx(
        math.hypot(row["UncertaintyJoules"] / 3.6e6 * 360, 2 * 0.1 * grams)
    )
    assert row["CarbonOverhead_g"] == pytest.approx(1500 / 3.6e6 * 360)
    assert row["Cost"] is None


def test_series_is_averaged_over_the_job(site, monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: builders.START_NS + 3600 * S)
    path = site.folder / "price.csv"
    path.write_text(f"time,value\n{START_S - 10},1.0\n{START_S + 5},-3.0\n")
    site.configure(f"price_per_kwh: {path}\ncurrency: EUR\n")
    job(site, seconds=10)
    row = merged(site)
    assert row["Cost"] == pytest.approx(100 / 3.6e6 * -1.0) and row["CostError"] > 0
    job(site, 13, start_s=15, seconds=10)
    assert merged(site, 13)["Cost"] is None
    path.write_text(path.read_text() + f"{START_S + 20},5\n{START_S + 40},5\n")
    assert merged(site, 13)["Cost"] == pytest.approx(100 / 3.6e6 * (5 * -3 + 5 * 5) / 10)


def test_a_job_that_waits_for_a_price_never_gets_another_cluster_s(site, monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: builders.START_NS + 3600 * S)
    path, bare = site.folder / "price.csv", site.yaml.read_text()
    path.write_text(f"time,value\n{START_S - 20},3.6\n{START_S - 10},3.6\n")
    site.leave(cluster="other")
    site.configure(f"price_per_kwh: {path}\ncurrency: CHF\n")
    site.at("other", "merge")
    theirs = site.yaml.read_text()
    assert site.rows(12, "other")[0]["Cost"] is None
    site.yaml.write_text(f"{bare}price_per_kwh: 1\ncurrency: EUR\ncarbon_g_per_kwh: 100\n")
    site.leave(12)
    site.out("merge")
    assert site.rows(12)[0]["Currency"] == "EUR"
    site.yaml.write_text(theirs)
    path.write_text(path.read_text() + f"{START_S + 40},3.6\n")
    assert "cost 0.0001 CHF" in site.at("other", "merge")
    row = site.rows(12, "other")[0]
    assert (row["Cost"], row["Currency"], row["Carbon_g"]) == (pytest.approx(1e-4), "CHF", None)


def test_runs_of_which_nothing_is_known_do_not_crowd_out_who_waits_for_a_price(site, monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: builders.START_NS + 3600 * S)
    monkeypatch.setattr(jobs, "PENDING_AT_ONCE", 3)
    path = site.folder / "price.csv"
    path.write_text(f"time,value\n{START_S - 20},3.6\n{START_S - 10},3.6\n")
    site.configure(f"price_per_kwh: {path}\ncurrency: CHF\n")
    job(site, 900)
    for number in (1, 2, 3):
        site.out("merge", "--job", str(number), "--wait", "0")
    assert merged(site, 900)["Cost"] is None
    path.write_text(path.read_text() + f"{START_S + 40},3.6\n")
    site.out("merge", "--job", "4", "--wait", "0")
    assert site.job(900)["900"]["Cost"] == pytest.approx(1e-4)


def correct(site, charge):
    """The corrected job, and its step."""
    site.out("store", "correct", "12", "--charge", charge, "--why", "its node failed")
    return site.job(12)["12"], site.job(12)["12.0"]


def test_a_correction_leaves_the_factors_of_the_merge(site):
    """And what could not be computed any more."""
    bare = site.yaml.read_text()
    site.configure("price_per_kwh: 0.3\ncurrency: EUR\ncarbon_g_per_kwh: 400\n")
    write(site, lines([(0, 0), (60, 6000)]))
    accounts = [builders.account(step, cpus=2) for step in ("job", "0")]
    site.leave(accounts=accounts, node_cpus=4)
    names = (*charges.NONE, "Payer")
    not_charged = ("Currency", "Payer", *storagework.COLUMNS)
    merged(site)
    whole, step = ({name: row[name] for name in names} for row in site.job(12).values())
    assert whole["Cost"] and whole["Carbon_g"] and whole["EnergyOverhead_uj"]
    for factors in ("price_per_kwh: 0.6\ncurrency: CHF\n", ""):
        site.yaml.write_text(bare + factors)
        (site.records / "shared" / "rack1.jsonl").unlink(missing_ok=True)
        for share in (0, 50, 100):
            job_row, step_row = correct(site, f"{share}%")
            for name in names:
                factor = 1 if name in not_charged else share / 100
                assert job_row[name] == (whole[name] if factor == 1 else whole[name] * factor)
                assert step_row[name] == step[name]
    assert job_row["Notes"].count("charged") == 1
    site.leave(13)
    site.yaml.write_text(f"{bare}price_per_kwh: 0.6\ncurrency: CHF\n")
    site.leave(12, "n2")
    row = merged(site)
    assert (row["Currency"], row["Cost"]) == ("CHF", pytest.approx(200 / 3.6e6 * 0.6))
    site.yaml.write_text(bare)
    row, _ = correct(site, "25%")
    assert (row["Currency"], row["Cost"]) == ("CHF", pytest.approx(50 / 3.6e6 * 0.6))


def test_a_corrected_job_still_waits_for_its_price(site, monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: builders.START_NS + 3600 * S)
    path = site.folder / "price.csv"
    path.write_text(f"time,value\n{START_S - 20},3.6\n{START_S - 10},3.6\n")
    site.configure(f"price_per_kwh: {path}\ncurrency: CHF\n")
    site.leave(accounts=[builders.account(step) for step in ("job", "0")])
    assert merged(site)["Cost"] is None and correct(site, "50%")[0]["Cost"] is None
    path.write_text(path.read_text() + f"{START_S + 40},3.6\n")
    assert merged(site)["Cost"] == pytest.approx(0.5e-4)
    path.write_text(f"time,value\n{START_S - 20},7.2\n{START_S - 10},7.2\n")
    assert correct(site, "100%")[0]["Cost"] == pytest.approx(1e-4)
    assert merged(site)["Cost"] == pytest.approx(1e-4)


def test_a_refused_rebuild_is_not_carried_out_later(site):
    bare = site.yaml.read_text()
    site.yaml.write_text(f"{bare}price_per_kwh: 1\ncurrency: EUR\n")
    for number in (12, 13):
        job(site, number)
    site.out("merge")
    path = site.folder / "carbon.csv"
    path.write_text("2026-11-21T10:00:00,3\n2026-11-21T11:00:00,3\n")
    site.yaml.write_text(f"{bare}price_per_kwh: 1\ncurrency: CHF\ncarbon_g_per_kwh: {path}\n")
    assert "of which time zone" in site.refuses("merge", "--rebuild")
    job(site, 14)
    assert "of which time zone" in site.refuses("merge")
    site.yaml.write_text(f"{bare}price_per_kwh: 1\ncurrency: CHF\n")
    assert [line.split("\t")[0] for line in site.out("merge").splitlines()] == ["14"]
    assert [merged(site, number)["Currency"] for number in (12, 13)] == ["EUR", "EUR"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "time,value\n1,2\n",
            "has 1 values: must have two or more, for the last holds as long as the one before",
        ),
        ("1,2\n1,3\n", ":2: 1: must be after"),
        ("1,2\nyesterday,3\n", ":2: yesterday,3: must be `time,value`"),
        ("1,2\n2,nan\n", ":2: 2,nan: must be"),
        ("1,2\n2\n", ":2: 2: must be"),
        ("1,2\n2026-11-21T10:00:00,3\n", ":2: 2026-11-21T10:00:00: of which time zone"),
        ("2026-11-21,3\n", ":1: 2026-11-21: of which time zone"),
    ],
)
def test_bad_series_is_named(tmp_path, text, problem):
    path = tmp_path / "series.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=problem):
        rates.Series(path)


def test_a_series_of_a_spreadsheet(tmp_path):
    """It marks UTF-8 with a first character; in an older character set it is refused."""
    path = tmp_path / "series.csv"
    path.write_bytes(b"\xef\xbb\xbftime,value\r\n0,100\r\n10,300\r\n")
    assert rates.Series(path).mean(0, 20 * S) == pytest.approx(200)
    path.write_bytes(b"# \x80 a kWh\n0,100\n10,300\n")
    with pytest.raises(UserError, match=r"series\.csv:1: byte 0x80 is not UTF-8: save"):
        rates.Series(path)


def test_a_series_may_say_what_it_is_before_its_header(tmp_path):
    path = tmp_path / "series.csv"
    path.write_text("# EUR per kWh\n\ntime,value\n0,100\n10,300\n")
    assert rates.Series(path).mean(0, 20 * S) == pytest.approx(200)
    path.write_text("0,100\ntime,value\n10,300\n")
    with pytest.raises(UserError, match=r":2: time,value: must be `time,value`, such as"):
        rates.Series(path)


def test_a_time_without_a_zone_says_how_to_add_one(tmp_path):
    """Local time taken for UTC charges each job by another hour's price."""
    path = tmp_path / "series.csv"
    path.write_text("2026-11-21 10:00,100\n")
    with pytest.raises(UserError) as caught:
        rates.Series(path)
    utc, offset = "2026-11-21T10:00:00Z", "2026-11-21T10:00:00+01:00"
    fix = f"of which time zone? write {utc} for UTC, or with its offset {offset}"
    assert str(caught.value) == f"{path}:1: 2026-11-21 10:00: {fix}"
    path.write_text(f"2026-11-21T08:00:00Z,1\n{offset},1\n{utc},1\n")
    assert rates.Series(path).mean(1795255200 * S, 1795255200 * S) == 1


def test_times_may_be_iso(tmp_path):
    path = tmp_path / "series.csv"
    path.write_text("# grid\n2026-11-21T10:00:00Z,100\n2026-11-21T12:00:00+01:00,300\n")
    series = rates.Series(path)
    ten = 1795255200 * S
    assert series.mean(ten, ten + 2 * 3600 * S) == pytest.approx(200)
    assert series.mean(ten - 1, ten) is None and series.may_grow(ten + 7201 * S)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("carbon_g_per_kwh: much\n", ":5: carbon_g_per_kwh: 'much' is not a number, or"),
        ("carbon_g_per_kwh: -1\n", ":5: carbon_g_per_kwh: '-1' is not"),
        ("price_per_kwh: 0.3\n", ":5: price_per_kwh: of which money"),
        ("store_password_file: secret\n", ":5: store_password_file: 'secret' is not an absolute"),
    ],
)
def test_wrong_keys_name_file_and_line(site, text, problem):
    site.configure(text)
    with pytest.raises(UserError, match=r"joulemark\.yaml") as caught:
        config.load(site.yaml)
    assert problem in str(caught.value)


def test_faults_of_instruments_are_kept_and_shown(site, sacct_on_path):
    fault = {"what": "stuck", "count": 3, "seconds": 12.5, "last": "100 W for 12.5 s"}
    instruments = [
        {"name": "pdu", "type": "snmp", "faults": [fault]},
        {"name": "rapl", "type": "powercap", "faults": []},
    ]
    for node in ("n1", "n2"):
        job(site, 1, node, instruments=instruments)
    assert site.out("merge").endswith(", peak 20 W, faults: pdu stuck\n")
    both = {**fault, "instrument": "pdu", "count": 6, "nodes": ["n1", "n2"]}
    assert json.loads(site.job(1)["1"]["Faults"]) == [both]
    out = site.out("sacct", "-nPX", "-j", "1", "-o", "JobIDRaw,Faults")
    assert "1|pdu stuck 6 times, 12.5 s on n1, n2" in out
    assert "job 1: pdu stuck 6 times" in site.out("sacct")
