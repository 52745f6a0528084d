# `joulemark diff`: verdicts where the ratio's interval excludes 1, nowhere else; its exit code.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import csv
import io
import json
import math

import pytest
from cooked_lines import FAILED, UNKNOWN, line, manifest, markdown_rows
from hypothesis import given
from hypothesis import strategies as some
from joulemark.bench import verdict
from joulemark.bench.stats import Value

BEFORE, AFTER = "before.cooked.jsonl", "after.cooked.jsonl"


def runs(*times, watts=100.0, uncertainty=0.0, **changes):
    """A run of each time, each a job of its own; energies by an instrument of so little error."""
    return [
        line(
            time_s=time_s,
            energy_j=time_s * watts,
            energy_uncertainty_j=time_s * watts * uncertainty,
            power_w=watts,
            **{"job": str(job), **changes},
        )
        for job, time_s in enumerate(times)
    ]


@pytest.fixture
def diff(site, results):
    """Lays lines beside others."""

    def run(before, after, *words):
        folder = results(*before, name=BEFORE)
        results(*after, name=AFTER)
        return site.run("diff", str(folder / BEFORE), str(folder / AFTER), *words)

    return run


def verdicts(out):
    return [(one["time_verdict"], one["energy_verdict"]) for one in json.loads(out)]


STEADY = (0.0500, 0.0501, 0.0499)


@pytest.mark.parametrize(
    ("after", "expected", "code"),
    [
        (runs(0.0400, 0.0401, 0.0399), ("faster", "thriftier"), 0),
        (runs(0.0600, 0.0601, 0.0599), ("slower", "costlier"), 2),
        (runs(*STEADY, watts=110), ("not told apart", "costlier"), 2),
        (runs(0.0400, 0.0401, 0.0399, watts=125), ("faster", "not told apart"), 0),
        (runs(0.02, 0.06, 0.10), ("not told apart", "not told apart"), 0),  # 20 % slower, or not
        (runs(*STEADY), ("not told apart", "not told apart"), 0),
    ],
)
def test_verdicts_and_the_exit_code(diff, after, expected, code):
    done, out, _ = diff(runs(*STEADY), after, "--format", "json")
    assert (verdicts(out), done) == ([expected], code)


def test_the_ratio_has_both_sides_errors(diff):
    _, out, _ = diff(runs(*STEADY), runs(0.0400, 0.0401, 0.0399), "--format", "json")
    (record,) = json.loads(out)
    error = 4.303 * 0.0001 / math.sqrt(3)
    assert record["time_s_a"] == pytest.approx(0.05)
    assert record["time_s_b_error"] == pytest.approx(error)
    assert record["time_s_ratio"] == pytest.approx(0.8)
    expected = 0.8 * math.hypot(error / 0.05, error / 0.04)
    assert record["time_s_ratio_error"] == pytest.approx(expected)
    assert record["performance_ratio"] == pytest.approx(1.25, rel=1e-4)
    assert (record["runs_a"], record["jobs_b"]) == (3, 3)


def test_a_poor_instrument_tells_no_small_change_in_energy(diff):
    """4 % on each side are 5.7 % of the ratio, however steady the runs."""
    before = runs(*STEADY, uncertainty=0.04)
    for watts, expected in ((105, "not told apart"), (107, "costlier")):
        _, out, _ = diff(before, runs(*STEADY, watts=watts, uncertainty=0.04), "--format", "json")
        assert verdicts(out) == [("not told apart", expected)]


@pytest.mark.parametrize(("threshold", "code"), [("19", 2), ("20", 0), ("25%", 0)])
def test_differences_below_the_threshold_do_not_count(diff, threshold, code):
    slower = runs(*(time_s * 1.2 for time_s in STEADY))
    done, out, _ = diff(runs(*STEADY), slower, "--threshold", threshold, "--format", "json")
    assert done == code
    assert verdicts(out) == [("slower", "costlier") if code else ("not told apart",) * 2]


@pytest.mark.parametrize(
    ("before", "few"),
    [(runs(0.05), "one run"), (runs(*STEADY, job="1"), "one job")],
)
def test_one_run_or_job_tells_nothing(diff, before, few):
    before = [{**one, "repetitions": 20} for one in before]
    for pair in ((before, runs(0.08, 0.0801)), (runs(0.08, 0.0801), before)):
        code, out, _ = diff(*pair, "--format", "json")
        assert (code, verdicts(out)) == (0, [(f"{few}: not told apart",) * 2])


def test_without_energy_there_is_no_verdict_on_it(diff):
    before, after = (
        [{**one, **UNKNOWN} for one in runs(*times)] for times in (STEADY, (0.1, 0.1))
    )
    code, out, _ = diff(before, after, "--format", "json")
    assert (code, verdicts(out)) == (2, [("slower", None)])


def test_a_result_that_became_wrong_is_worse(diff):
    wrong = [{**one, **FAILED} for one in runs(*STEADY)]
    code, out, _ = diff(runs(*STEADY), wrong, "--format", "json")
    assert (code, verdicts(out)) == (2, [("failed", None)])
    code, out, _ = diff(runs(*STEADY), [*runs(*STEADY), wrong[0]], "--format", "json")
    assert (code, verdicts(out)) == (2, [("failed", "not told apart")])
    both = [*runs(*STEADY), wrong[0]]
    assert diff(both, both)[0] == 0


def test_the_table_says_by_what_the_manifests_differ_and_both_times(diff):
    before, after = manifest(), manifest(compiler="GNU 13.1.0", flags="-O3 -march=native")
    code, out, _ = diff(
        runs(*STEADY, manifest=before),
        runs(0.0400, 0.0401, 0.0399, manifest=after),
        *("--format", "markdown"),
    )
    change = "compiler GNU 12.2.0 -> GNU 13.1.0, flags -O2 -> -O3"
    assert f"**mod2am, blas, 2 threads, x86_64, A CPU, {change}**" in out
    heads, _, time, performance, energy, efficiency = markdown_rows(out)
    assert heads == ["Size", "N", "", "A", "B", "B / A", "verdict"]
    assert time[:3] == ["1000", "3, 3", "Time [ms]"]
    assert time[3:] == ["50.0 ± 0.25", "40.0 ± 0.25", "0.80 ± 0.0064", "faster"]
    assert performance[2:4] == ["Perf. [GF/s]", "40.0 ± 0.20"] and performance[-1] == ""
    assert energy[2] == "Energy [J]" and energy[-1] == "thriftier"
    assert efficiency[2] == "Eff. [MF/J]"
    assert "0 of 1 sizes got worse" in out and code == 0


def test_the_terminal_has_the_same_cells(diff):
    _, out, _ = diff(runs(*STEADY), runs(0.0600, 0.0601, 0.0599))
    (row,) = [one for one in out.splitlines() if one.startswith("1000")]
    assert row.split()[-1] == "slower" and "1 of 1 sizes got worse" in out
    assert f"{BEFORE}; B: " in " ".join(out.split())


def test_estimates_are_marked(diff):
    _, out, _ = diff(runs(*STEADY, estimated=True), runs(*STEADY), "--format", "markdown")
    rows = {row[2]: row for row in markdown_rows(out)}
    assert "ESTIMATED by a model" in out
    assert [cell.startswith("\\~") for cell in rows["Energy [J]"][3:6]] == [True, False, True]
    assert not rows["Time [ms]"][3].startswith("\\~")


def test_csv_and_json_tell_the_same_with_both_manifests(diff):
    before = runs(*STEADY, manifest=manifest())
    after = [{**one, **UNKNOWN} for one in runs(*STEADY)]
    _, as_json, _ = diff(before, after, "--format", "json")
    _, as_csv, _ = diff(before, after, "--format", "csv")
    (record,), (row,) = json.loads(as_json), csv.DictReader(io.StringIO(as_csv))
    assert row.keys() == record.keys()
    assert float(row["time_s_ratio"]) == record["time_s_ratio"] == 1
    assert (record["compiler_a"], record["compiler_b"]) == ("GNU 12.2.0", None)
    assert record["change"] == "with a manifest -> no manifest"
    assert record["energy_j_a"] and record["energy_j_b"] is None


def test_what_one_side_alone_has_is_named(diff):
    before = [*runs(*STEADY), line(500), line(variant="plain")]
    _, out, err = diff(before, [*runs(*STEADY), line(2000)], "--format", "json")
    assert [one["size"] for one in json.loads(out)] == [1000]
    title = "2 threads, x86_64, A CPU"
    assert f"only in A: mod2am, blas, {title}: size 500\n" in err
    assert f"only in A: mod2am, plain, {title}: size 1000\n" in err
    assert f"only in B: mod2am, blas, {title}: size 2000\n" in err


def test_nothing_in_common_and_no_place_are_errors(diff, site):
    code, _, err = diff(runs(*STEADY), runs(*STEADY, cpu="Another CPU"))
    assert code == 1 and "have no size of a kernel in common" in err
    assert "A nowhere: no such file or folder" in site.fails("diff", "nowhere", "nowhere")


@pytest.mark.parametrize("threshold", ["-1", "much", "nan"])
def test_a_threshold_is_a_percentage(site, threshold):
    with pytest.raises(SystemExit):
        site.run("diff", "a", "b", "--threshold", threshold)


MEANS = some.floats(1e-3, 1e3)
VALUES = some.builds(
    lambda mean, relative: Value(mean, interval=mean * relative), MEANS, some.floats(0, 2)
)


@given(VALUES, VALUES, some.floats(0, 2))
def test_the_other_way_round_it_is_the_other_verdict(one, other, threshold):
    opposite = {"faster": "slower", "slower": "faster", verdict.ALIKE: verdict.ALIKE}
    there = verdict.of_ratio(one.over(other), "time_s", threshold)
    back = verdict.of_ratio(other.over(one), "time_s", threshold)
    assert back == opposite[there]


@given(VALUES, VALUES, some.floats(0, 2))
def test_a_verdict_needs_an_interval_without_1_and_a_difference_beyond_the_threshold(
    one, other, threshold
):
    ratio = one.over(other)
    if verdict.of_ratio(ratio, "energy_j", threshold) != verdict.ALIKE:
        assert not ratio.mean - ratio.error <= 1 <= ratio.mean + ratio.error
        assert max(ratio.mean, 1 / ratio.mean) - 1 > threshold
