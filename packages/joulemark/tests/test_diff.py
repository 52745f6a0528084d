# `joulemark diff`: verdicts where the ratio's interval excludes 1, nowhere else; its exit code.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import csv
import io
import json
import math
import random
from statistics import NormalDist

import pytest
from cooked_lines import FAILED, UNKNOWN, line, manifest, markdown_rows
from hypothesis import given
from hypothesis import strategies as some
from joulemark.bench import cooked, stats, verdict
from joulemark.bench import diff as diff_module
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
JSON = ("--format", "json")


@pytest.mark.parametrize(
    ("after", "expected", "code"),
    [
        (runs(0.0400, 0.0401, 0.0399), ("faster", "thriftier"), 0),
        (runs(0.0600, 0.0601, 0.0599), ("slower", "costlier"), 1),
        (runs(*STEADY, watts=110), ("not told apart", "costlier"), 1),
        (runs(0.0400, 0.0401, 0.0399, watts=125), ("faster", "not told apart"), 0),
        (runs(0.02, 0.06, 0.10), ("not told apart", "not told apart"), 0),  # 20 % slower, or not
        (runs(*STEADY), ("not told apart", "not told apart"), 0),
    ],
)
def test_verdicts_and_the_exit_code(diff, after, expected, code):
    done, out, _ = diff(runs(*STEADY), after, "--format", "json")
    assert (verdicts(out), done) == ([expected], code)


def test_what_is_small_beside_the_other_side_is_not_nothing(diff):
    """0.00 ± 0.00030 had no digit of those that its error leaves known."""
    for watts, told in ((0.3, "0.0030 ± 0.00030"), (1.5, "0.015 ± 0.0015"), (2, "0.020 ± 0.0020")):
        _, out, _ = diff(runs(*STEADY), runs(*STEADY, watts=watts, uncertainty=0.1))
        (line,) = (line for line in out.splitlines() if "Energy [" in line)
        assert f"  {told}  " in line


def test_the_ratio_has_both_sides_errors(diff):
    _, out, _ = diff(runs(*STEADY), runs(0.0400, 0.0401, 0.0399), "--format", "json")
    (record,) = json.loads(out)
    error = 4.302653 * 0.0001 / math.sqrt(3)
    assert record["time_s_a"] == pytest.approx(0.05)
    assert record["time_s_b_error"] == pytest.approx(error)
    assert record["time_s_ratio"] == pytest.approx(0.8)
    variances = [(0.0001 / mean) ** 2 / 3 for mean in (0.05, 0.04)]
    degrees = sum(variances) ** 2 / sum(one**2 / 2 for one in variances)  # 3.8, by Welch
    expected = 0.8 * stats.student_t(degrees) * math.sqrt(sum(variances))
    assert record["time_s_ratio_error"] == pytest.approx(expected)
    assert record["performance_ratio"] == pytest.approx(1.25, rel=1e-4)
    assert (record["runs_a"], record["jobs_b"]) == (3, 3)


def test_a_poor_instrument_tells_no_small_change_in_energy(diff):
    """4 % on each side are 5.7 % of the ratio, however steady the runs."""
    before = runs(*STEADY, uncertainty=0.04)
    for watts, expected in ((105, "not told apart"), (107, "costlier")):
        _, out, _ = diff(before, runs(*STEADY, watts=watts, uncertainty=0.04), "--format", "json")
        assert verdicts(out) == [("not told apart", expected)]


@pytest.mark.parametrize("side", range(2))
def test_an_instrument_s_error_counts_where_the_other_side_s_is_not_known(diff, side):
    """10 % tell no 4 %, whatever the other's error is."""
    sides = [runs(*STEADY, uncertainty=0.10), runs(*STEADY, watts=104, uncertainty=0.10)]
    sides[side] = [{**one, "energy_uncertainty_j": None} for one in sides[side]]
    _, out, _ = diff(*sides, "--format", "json")
    (record,) = json.loads(out)
    assert record["energy_verdict"] == "not told apart"
    assert record["energy_j_ratio_error"] > 0.10


def test_a_difference_of_a_percent_does_not_count_unless_asked_for(diff):
    slower = runs(*(time_s * 1.009 for time_s in (0.05, 0.0500001, 0.0499999)))
    before = runs(0.05, 0.0500001, 0.0499999)
    assert diff(before, slower)[0] == 0
    assert diff(before, slower, "--threshold", "0.2")[0] == 1


SIZES = range(100, 400, 10)  # 30, so 60 ratios of times and energies


def scattered(chance, relative, jobs=3, **factors):
    """Jobs of 30 sizes, whose time and power scatter; factors: of the time, by `sSIZE`."""
    return [
        line(
            size,
            time_s=(time_s := chance.gauss(factors.get(f"s{size}", 1.0), relative)),
            energy_j=time_s * chance.gauss(100, 100 * relative),
            energy_uncertainty_j=0.0,
            job=str(job),
        )
        for size in SIZES
        for job in range(jobs)
    ]


def pairs(before, after):
    ours, theirs = (
        stats.series_of([cooked.parse(json.dumps(one)) for one in lines])
        for lines in (before, after)
    )
    (found,) = diff_module.between(ours, theirs, threshold=0.0)
    return found.pairs


@pytest.mark.parametrize("jobs", [(3, 3), (3, 10), (2, 10)])
def test_of_many_sizes_that_are_alike_one_comparison_in_20_has_a_verdict(jobs):
    chance, trials = random.Random(30), 60
    told = [
        any(pair.word(key) != verdict.ALIKE for pair in found for key in verdict.WORDS)
        for found in (
            pairs(*(scattered(chance, 0.02, count) for count in jobs)) for _ in range(trials)
        )
    ]
    assert sum(told) <= 0.06 * trials


def test_of_many_sizes_the_one_that_is_slower_by_a_tenth_is_found():
    chance, trials = random.Random(30), 20
    for _ in range(trials):
        found = pairs(scattered(chance, 0.002), scattered(chance, 0.002, s200=1.1))
        words = {pair.before.size: pair.word("time_s") for pair in found}
        assert words.pop(200) == "slower" and set(words.values()) == {"not told apart"}


def test_how_many_were_tested_together_is_said(diff):
    chance = random.Random(30)
    before = scattered(chance, 0.002)
    code, out, _ = diff(before, scattered(chance, 0.002, s200=1.1))
    assert code == 1 and "1 of 30 sizes got worse" in out
    assert "60 ratios were tested together by Holm's method" in " ".join(out.split())


def test_holm_s_level_is_that_of_the_first_that_is_not_told_apart():
    """Of p = 0.001, 0.02 and 0.03 at 0.05: 0.001 < 0.05 / 3, 0.02 < 0.05 / 2, 0.03 < 0.05 / 1."""

    def ratio(p):
        return Value(1.1, uncertainty=0.1 * 1.959964 / NormalDist().inv_cdf(1 - p / 2))

    assert verdict.chance(ratio(0.001)) == pytest.approx(0.001, rel=1e-4)
    assert verdict.level(map(ratio, (0.03, 0.001, 0.02))) == 0.05
    assert verdict.level(map(ratio, (0.03, 0.001, 0.026))) == 0.025
    assert verdict.level([None, ratio(0.03), ratio(0.04), ratio(0.02)]) == 0.05 / 3
    assert verdict.level([]) == 0.05


@pytest.mark.parametrize(("threshold", "code"), [("19", 1), ("20", 0), ("25%", 0)])
def test_differences_below_the_threshold_do_not_count(diff, threshold, code):
    slower = runs(*(time_s * 1.2 for time_s in STEADY))
    done, out, _ = diff(runs(*STEADY), slower, "--threshold", threshold, "--format", "json")
    assert done == code
    assert verdicts(out) == [("slower", "costlier") if code else ("not told apart",) * 2]


def test_one_run_tells_nothing(diff):
    before = [{**one, "repetitions": 20} for one in runs(0.05)]
    for pair in ((before, runs(0.08, 0.0801)), (runs(0.08, 0.0801), before)):
        code, out, _ = diff(*pair, "--format", "json")
        assert (code, verdicts(out)) == (0, [("one run: not told apart",) * 2])


@pytest.mark.parametrize(
    ("times", "words", "code"),
    [
        ((0.08, 0.0801), ("slower", "costlier"), 1),
        ((0.04, 0.0401), ("faster", "thriftier"), 0),
        (STEADY, ("not told apart", "not told apart"), 0),
    ],
)
def test_several_runs_of_one_job_tell_what_they_show_and_that_it_is_one_job(
    diff, times, words, code
):
    before = runs(*STEADY, job="1")
    done, out, _ = diff(before, runs(*times), "--format", "json")
    assert (done, verdicts(out)) == (code, [tuple(f"{one}, within one job" for one in words)])
    _, out, _ = diff(before, runs(*times))
    assert f"{words[0]}, within one job" in out


def test_an_energy_that_one_job_alone_has_is_within_one_job(diff):
    """The fault: the verdict on it named the jobs of all runs, most of them without an energy."""

    def side(watts):
        return [
            {**one, **(UNKNOWN if job > 1 else {})}
            for job in (1, 2, 3)
            for one in runs(*STEADY, watts=watts, job=str(job))
        ]

    sides = side(100), side(120)
    _, out, _ = diff(*sides, *JSON)
    assert verdicts(out) == [("not told apart", "costlier, within one job")]
    (record,) = json.loads(out)
    assert [record[f"{key}_a"] for key in ("runs", "jobs")] == [9, 3]
    assert [record[f"energy_{key}_b"] for key in ("runs", "jobs")] == [3, 1]
    rows = {row[2]: row[1] for row in markdown_rows(diff(*sides, "--format", "markdown")[1])[2:]}
    assert list(rows.values()) == ["9, 9", "", "3, 3", ""]


HERE = {"node": "n1", "manifest": manifest()}
BY_ANOTHER = "by another instrument: not told apart"


@pytest.mark.parametrize(
    ("after", "same", "expected"),
    [
        (HERE, True, "costlier"),
        ({**HERE, "node": "n2"}, False, "not told apart"),
        ({**HERE, "manifest": manifest(channels="rapl/package-1")}, False, BY_ANOTHER),
        ({**HERE, "manifest": manifest(channels=None)}, False, BY_ANOTHER),
        ({**HERE, "ranks": 2, "nodes": 2}, False, "not told apart"),
        ({**HERE, "estimated": True}, False, BY_ANOTHER),
    ],
)
def test_an_instrument_errs_alike_on_both_sides_only_where_it_is_the_same(
    diff, after, same, expected
):
    """An instrument of 4 % tells 2 %, on one node."""
    wide = {key: after[key] for key in ("ranks", "nodes") if key in after}
    before = runs(*STEADY, uncertainty=0.04, **{**HERE, **wide})
    _, out, _ = diff(before, runs(*STEADY, watts=102, uncertainty=0.04, **after), *JSON)
    (record,) = json.loads(out)
    assert (record["energy_verdict"], record["same_instrument"]) == (expected, same)
    _, out, _ = diff(before, runs(*STEADY, watts=102, uncertainty=0.04, **after))
    assert f"{int(same)} of 1 sizes: the same channels of the same node" in " ".join(out.split())


@pytest.mark.parametrize(
    "other",
    [
        {"manifest": manifest(instruments="redfish/node", channels="bmc/psu1")},
        {"manifest": manifest(channels="rapl/package-1")},
        {"manifest": manifest(instruments="powercap/cpu")},
        {"estimated": True},
    ],
)
def test_energy_by_another_instrument_is_another_quantity(diff, other):
    """A package's energy beside its node's is no change, nor is a model's beside a meter's."""
    before = runs(*STEADY, **HERE)
    for sides in ((before, runs(*STEADY, watts=200, **{**HERE, **other})), (before, before)):
        code, out, _ = diff(*sides, *JSON)
        (record,) = json.loads(out)
        is_other = sides[1] is not before
        assert (code, record["time_verdict"]) == (0, "not told apart")
        assert record["energy_verdict"] == (BY_ANOTHER if is_other else "not told apart")
        assert (record["energy_j_ratio"] is None) == is_other
        assert (record["efficiency_ratio"] is None) == is_other
        notes = " ".join(diff(*sides)[1].split())
        assert ("another quantity" in notes) == is_other


@pytest.mark.parametrize(
    "other",
    [
        {"manifest": manifest(channels="rapl/package-0 rapl/package-1")},
        {"estimated": True},
    ],
)
def test_other_proportions_of_the_same_instruments_are_no_change(diff, other):
    """The fault: 12 runs of a package and one of two were beside one and 12, and costlier."""

    def side(ones, twos):
        jobs = iter(range(20))
        return [
            line(energy_j=energy_j + next(jobs) / 1000, job=str(next(jobs)), **{**HERE, **how})
            for count, energy_j, how in ((ones, 10.0, {}), (twos, 20.0, other))
            for _ in range(count)
        ]

    code, out, _ = diff(side(7, 1), side(1, 7), *JSON)
    (record,) = json.loads(out)
    assert (code, record["energy_verdict"]) == (0, BY_ANOTHER)
    assert record["energy_j_ratio"] is None and record["efficiency_ratio"] is None
    assert record["time_s_ratio"] == 1
    said = " ".join(diff(side(7, 1), side(1, 7))[1].split())
    assert "or those of one side by several" in said


def test_runs_of_several_nodes_have_no_instrument_in_common(diff):
    before = runs(*STEADY, uncertainty=0.04, **HERE)
    before[1]["node"] = "n2"
    _, out, _ = diff(before, before, *JSON)
    assert json.loads(out)[0]["same_instrument"] is False


def test_without_energy_there_is_no_verdict_on_it(diff):
    before, after = (
        [{**one, **UNKNOWN} for one in runs(*times)] for times in (STEADY, (0.1, 0.1))
    )
    code, out, _ = diff(before, after, "--format", "json")
    assert (code, verdicts(out)) == (1, [("slower", None)])


def test_a_result_that_became_wrong_is_worse(diff):
    wrong = [{**one, **FAILED} for one in runs(*STEADY)]
    code, out, _ = diff(runs(*STEADY), wrong, "--format", "json")
    assert (code, verdicts(out)) == (1, [("failed", None)])
    code, out, _ = diff(runs(*STEADY), [*runs(*STEADY), wrong[0]], "--format", "json")
    assert (code, verdicts(out)) == (1, [("failed", "not told apart")])
    both = [*runs(*STEADY), wrong[0]]
    assert diff(both, both)[0] == 0
    code, out, _ = diff(both, wrong, "--format", "json")  # some of A's were right, none of B's
    assert (code, verdicts(out)) == (1, [("failed", None)])


def test_what_is_wrong_in_a_is_named_and_what_became_of_it(diff):
    """The fault: it was in no table and in no word, as if neither side had it."""
    wrong = [{**one, **FAILED} for one in runs(*STEADY, size=500)]
    before = [*runs(*STEADY), *wrong]
    for after, told in ((runs(*STEADY, size=500), "right in B"), (wrong, "wrong in B")):
        code, out, err = diff(before, [*runs(*STEADY), *after], *JSON)
        assert (code, len(json.loads(out))) == (0, 1)
        assert err.startswith("joulemark: wrong in A, so not compared: mod2am, blas, 2 threads")
        assert err.endswith(f": size 500, {told}\n") and err.count("\n") == 1
    code, _, err = diff(wrong, runs(*STEADY, size=500))
    assert code == 2 and "size 500, right in B" in err


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
    assert time[3:] == ["50.0 ± 0.25", "40.0 ± 0.25", "0.80 ± 0.0042", "faster"]
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
    estimated = runs(*STEADY, estimated=True)
    for after, marked in ((runs(*STEADY), [True, False, False]), (estimated, [True] * 3)):
        _, out, _ = diff(estimated, after, "--format", "markdown")
        rows = {row[2]: row for row in markdown_rows(out)}
        assert "ESTIMATED by a model" in out
        assert [cell.startswith("\\~") for cell in rows["Energy [J]"][3:6]] == marked
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


GNU_13, AOCC = manifest(compiler="GNU 13.1.0"), manifest(compiler="AOCC 4.2")


def test_equal_manifests_stand_beside_each_other_and_beside_no_other(diff):
    """Or a set with a fast and a slow build would be slower than itself."""
    both = [*runs(*STEADY, manifest=GNU_13), *runs(0.09, 0.0901, 0.0899, manifest=AOCC)]
    code, out, err = diff(both, both, *JSON)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [one["compiler_a"] for one in found] == ["AOCC 4.2", "GNU 13.1.0"]
    assert [one["compiler_b"] for one in found] == ["AOCC 4.2", "GNU 13.1.0"]


def test_what_has_no_equal_manifest_stands_beside_what_has_none(diff):
    before = [*runs(*STEADY, manifest=manifest()), *runs(0.09, 0.0901, 0.0899, manifest=AOCC)]
    after = [*runs(*STEADY, manifest=GNU_13), *runs(0.09, 0.0901, 0.0899, manifest=AOCC)]
    code, out, err = diff(before, after, *JSON)
    found = {(one["compiler_a"], one["compiler_b"]) for one in json.loads(out)}
    assert (code, err) == (0, "")
    assert found == {("GNU 12.2.0", "GNU 13.1.0"), ("AOCC 4.2", "AOCC 4.2")}
    other = manifest(compiler="clang 16")
    _, out, _ = diff(before, [*after, *runs(*STEADY, manifest=other)], *JSON)
    assert {(one["compiler_a"], one["compiler_b"]) for one in json.loads(out)} == {
        *found,
        ("GNU 12.2.0", "clang 16"),
    }


def test_options_stand_beside_their_equals_after_a_new_compiler_too(diff):
    new = manifest(compiler="GNU 13.1.0")
    before, after = (
        [one for nb in (1, 2, 4, 8) for one in runs(*STEADY, option_nb=nb, manifest=build)]
        for build in (manifest(), new)
    )
    _, out, _ = diff(before, after, *JSON)
    assert [one["options"] for one in json.loads(out)] == ["nb=1", "nb=2", "nb=4", "nb=8"]
    _, out, _ = diff(before, after, "--format", "markdown")
    assert "compiler GNU 12.2.0 -> GNU 13.1.0, options nb=8" in out


def test_other_options_are_no_other_side(diff):
    nb = {name: runs(*STEADY, option_nb=value) for name, value in (("a", 192), ("b", 256))}
    code, _, err = diff(nb["a"], nb["b"])
    assert code == 2 and "in common, by the same options" in err
    code, out, _ = diff([*nb["a"], *nb["b"]], [*nb["b"], *runs(0.1, size=2000)], *JSON)
    assert code == 0 and [one["options"] for one in json.loads(out)] == ["nb=256"]
    other = runs(*STEADY, size=7)
    _, out, err = diff([*nb["a"], *other], [*nb["b"], *other])
    assert "only in A: " in out + err and "size 1000 (nb=192)" in out + err
    assert "size 1000 (nb=256)" in out + err


def test_an_option_that_an_earlier_release_did_not_know_hides_no_change(diff):
    before = runs(*STEADY, option_nb=192, manifest=manifest())
    new = {"manifest": manifest(version="0.2"), "option_cold": "no"}
    code, out, _ = diff(before, runs(0.06, 0.0601, 0.0599, option_nb=192, **new), *JSON)
    assert code == 1 and [one["time_verdict"] for one in json.loads(out)] == ["slower"]


def test_what_tells_no_option_stands_beside_none_of_several(diff):
    new = {"manifest": manifest(version="0.2")}
    fills = [runs(*(t * fill for t in STEADY), option_fill=fill, **new) for fill in (1, 3)]
    code, _, err = diff(runs(*STEADY, manifest=manifest()), [*fills[0], *fills[1]])
    assert code == 2 and "in common, by the same options" in err


def test_a_build_that_stands_beside_none_is_named(diff):
    before = runs(*STEADY, manifest=GNU_13)
    code, out, err = diff(before, [*before, *runs(0.09, 0.0901, manifest=AOCC)], *JSON)
    assert (code, len(json.loads(out))) == (0, 1)
    assert err == (
        "joulemark: only in B: mod2am, blas, 2 threads, x86_64, A CPU, compiler AOCC 4.2: "
        "size 1000\n"
    )


def test_a_manifest_has_its_equal_at_the_sizes_that_both_have(diff):
    before = [*runs(*STEADY, manifest=GNU_13), line(500, manifest=GNU_13)]
    after = [*runs(*STEADY, manifest=GNU_13), line(500, manifest=AOCC)]
    _, out, err = diff(before, after, *JSON)
    found = [(one["size"], one["compiler_b"]) for one in json.loads(out)]
    assert (found, err) == ([(500, "AOCC 4.2"), (1000, "GNU 13.1.0")], "")


def test_nothing_in_common_and_no_place_are_errors(diff, site):
    code, _, err = diff(runs(*STEADY), runs(*STEADY, cpu="Another CPU"))
    assert code == 2 and "have no size of a kernel in common" in err
    assert "A nowhere: no such file or folder" in site.refuses("diff", "nowhere", "nowhere")


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


def covers(chance, is_same_node, jobs, watts=(100.0, 70.0)):
    """Whether the interval of a ratio of energies holds the truth, by an instrument whose gain and
    offset are wrong by up to 4 % and 3 W, and whose readings scatter by 0.5 %."""
    gain, offset_w = chance.uniform(-0.04, 0.04), chance.uniform(-3, 3)
    rows = []
    for node, power_w in zip(("n1", "n1" if is_same_node else "n2"), watts):
        if not is_same_node:
            gain, offset_w = chance.uniform(-0.04, 0.04), chance.uniform(-3, 3)
        lines = [
            line(
                node=node,
                manifest=manifest(),
                job=str(run) if jobs > 1 else "1",
                energy_j=power_w * (1 + gain + chance.gauss(0, 0.005)) + offset_w,
                energy_uncertainty_j=2 / math.sqrt(3) * (0.04 * power_w + 3),
                time_s=1.0,
            )
            for run in range(max(jobs, 3))
        ]
        (series,) = stats.series_of([cooked.parse(json.dumps(one)) for one in lines], "mod2am")
        rows += series.rows
    pair = diff_module.Pair(*rows, broken=False, threshold=0.0)
    assert pair.is_same_instrument == is_same_node
    ratio = pair.ratio("energy_j")
    return abs(ratio.mean - watts[1] / watts[0]) <= ratio.error, ratio.error


@pytest.mark.parametrize("is_same_node", [True, False])
@pytest.mark.parametrize("jobs", [1, 5])
def test_the_interval_of_a_ratio_holds_the_truth(is_same_node, jobs):
    chance, trials = random.Random(12), 600
    held, errors = zip(*(covers(chance, is_same_node, jobs) for _ in range(trials)))
    assert sum(held) >= 0.93 * trials
    assert (math.fsum(errors) / trials < 0.03) == is_same_node
