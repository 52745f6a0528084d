# `joulemark trend`: days and manifests in order, and a verdict on the last of them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import csv
import io
import json
import math
import os
import random
import statistics
import time

import pytest
from cooked_lines import FAILED, UNKNOWN, line, manifest, markdown_rows
from joulemark.bench import cooked, verdict
from joulemark.bench import trend as trend_module
from joulemark.store.days import Zone

JSON = ("--format", "json")
EARLIER = (0.0500, 0.0506, 0.0498, 0.0500)


def night(day, time_s, watts=100.0, **changes):
    """One run of a night at 4 % of instrument."""
    energies = {"energy_j": time_s * watts, "energy_uncertainty_j": time_s * watts * 0.04}
    return {
        **line(time_s=time_s, power_w=watts, node="n1", manifest=manifest()),
        **energies,
        "start": f"2026-03-{day:02}T02:00:00+00:00",
        "job": str(day),
        **changes,
    }


def nights(*times, **changes):
    return [night(day, time_s, **changes) for day, time_s in enumerate(times, 1)]


@pytest.fixture
def trend(site, results):
    def run(lines, *words):
        results(*lines)
        return site.run("trend", "mod2am", *words)

    return run


def last(out):
    record = json.loads(out)[-1]
    return record["time_s_verdict"], record["energy_j_verdict"]


@pytest.mark.parametrize(
    ("time_s", "watts", "expected", "code"),
    [
        (0.0501, 100, ("not told apart", "not told apart"), 0),
        (0.0508, 100, ("not told apart", "not told apart"), 0),  # as one more day may be
        (0.0550, 100, ("slower", "costlier"), 1),
        (0.0450, 100, ("faster", "thriftier"), 0),
        (0.0501, 110, ("not told apart", "costlier"), 1),
        (0.0450, 112, ("faster", "not told apart"), 0),
    ],
)
def test_the_last_night_is_judged_by_the_scatter_of_the_earlier(
    trend, time_s, watts, expected, code
):
    lines = [*nights(*EARLIER), night(5, time_s, watts)]
    done, out, _ = trend(lines, "--format", "json")
    assert (last(out), done) == (expected, code)


def test_the_ratio_is_to_the_median_within_one_more_day_s_interval(trend):
    _, out, _ = trend(nights(*EARLIER, 0.055), "--format", "json")
    records = json.loads(out)
    ratio = 0.055 / statistics.median(EARLIER)
    interval = 3.182446 * statistics.stdev(EARLIER) * math.sqrt(1 + math.pi / 8)  # t of 3 degrees
    assert records[-1]["energy_j_ratio"] == pytest.approx(ratio)
    expected = ratio * interval / statistics.median(EARLIER)
    assert records[-1]["energy_j_ratio_error"] == pytest.approx(expected)
    assert [one["time_s_verdict"] for one in records[:-1]] == [None] * 4
    assert [one["time_s"] for one in records] == [*EARLIER, 0.055]


def test_the_last_night_s_own_scatter_counts_too(trend):
    lines = [*nights(*EARLIER), night(5, 0.03), night(5, 0.08, job="6")]
    code, out, _ = trend(lines, "--format", "json")
    assert (code, last(out)) == (0, ("not told apart", "not told apart"))


def test_of_many_sizes_that_are_alike_one_night_in_20_has_a_verdict():
    """30 sizes over ten nights; also that one which is slower by a tenth is found."""
    chance, trials = random.Random(30), 60

    def judged(last):
        lines = [
            night(day, chance.gauss(last if (day, size) == (10, 200) else 1, 0.01), size=size)
            for day in range(1, 11)
            for size in range(100, 400, 10)
        ]
        measured = [cooked.parse(json.dumps(one)) for one in lines]
        found = trend_module.find(measured, "mod2am", threshold=0.0, zone=Zone())
        return [one.last.row.size for one in found if one.verdict("time_s") != verdict.ALIKE]

    assert sum(bool(judged(1)) for _ in range(trials)) <= 0.06 * trials
    assert [judged(1.1) for _ in range(5)] == [[200]] * 5


def judged(chance, earlier, last, slower=1.0):
    """The verdicts on a night of so many jobs, by nights of so many; all scatter by 2 %."""
    measured = [
        cooked.parse(json.dumps(night(day, chance.gauss(factor, 0.02), watts, job=f"{day}.{job}")))
        for day, jobs in enumerate([*earlier, last], 1)
        for job in range(jobs)
        for factor in (slower if day > len(earlier) else 1.0,)
        for watts in (chance.gauss(100, 2),)
    ]
    (found,) = trend_module.find(measured, "mod2am", threshold=0.01, zone=Zone())
    return [found.verdict(key) for key in verdict.WORDS]


@pytest.mark.parametrize("earlier", [[1] * 10, [3] * 10, [10] * 10, [10] * 5 + [1] * 5])
def test_a_last_night_of_one_job_scatters_as_one_job(earlier):
    """The means of ten jobs scatter by less than one job does."""
    chance, trials = random.Random(1), 200
    told = [judged(chance, earlier, 1) != [verdict.ALIKE] * 2 for _ in range(trials)]
    assert sum(told) <= 0.06 * trials
    found = [judged(chance, earlier, 1, slower=1.1)[0] for _ in range(20)]
    assert found.count("slower") >= 18


def test_one_night_of_two_jobs_does_not_blind_the_nights_of_one():
    chance = random.Random(1)
    found = [judged(chance, [*[1] * 9, 2], 1, slower=1.1)[0] for _ in range(20)]
    assert found.count("slower") >= 18


@pytest.mark.parametrize(("threshold", "code"), [("9", 1), ("11", 0)])
def test_what_is_below_the_threshold_does_not_count(trend, threshold, code):
    assert trend(nights(*EARLIER, 0.0551), "--threshold", threshold)[0] == code


@pytest.mark.parametrize("before", range(3))
def test_two_earlier_nights_are_too_few(trend, before):
    code, out, _ = trend(nights(*EARLIER[:before], 0.1), "--format", "json")
    expected = "too few earlier: not told apart" if before else None
    assert (code, last(out)) == (0, (expected, expected))
    _, out, _ = trend(nights(*EARLIER[:before], 0.1), "--format", "markdown")
    assert "1 of 1 not judged: that takes 3 earlier days." in out


def test_what_is_judged_is_not_said_to_want_days(trend):
    assert "not judged" not in trend(nights(*EARLIER), "--format", "markdown")[1]


def test_a_last_result_that_is_wrong_is_worse(trend):
    wrong = {**night(5, 0.05), **FAILED}
    code, out, _ = trend([*nights(*EARLIER), wrong], "--format", "json")
    assert (code, last(out)) == (1, ("failed", None))
    assert trend([{**wrong, "start": None}, wrong])[0] == 0  # it never was right
    code, out, _ = trend([{**night(1, 0.05), **FAILED}, *nights(*EARLIER)[1:], night(5, 0.09)])
    assert code == 1 and "slower" in out


def test_the_table_has_a_line_a_day_and_manifest_and_says_what_changed(trend):
    new = manifest(compiler="AOCC 4.2")
    lines = [
        *nights(*EARLIER),
        night(4, 0.0551, manifest=new, start="2026-03-04T03:00:00+00:00", job="9"),
        night(4, 0.0549, manifest=new, start="2026-03-04T04:00:00+00:00", job="10"),
    ]
    code, out, _ = trend(reversed(lines), "--format", "markdown")
    title = "**mod2am, blas, 2 threads, x86_64, A CPU, compiler {}, size 1000**"
    gnu, aocc = out.split(title.format("AOCC 4.2"))
    assert title.format("GNU 12.2.0") in gnu
    assert [row[0] for row in markdown_rows(gnu)[2:-2]] == [f"2026-03-0{n}" for n in range(1, 5)]
    heads, _, *days, ratio, verdict = markdown_rows(aocc)
    assert heads[:3] == ["Day", "N", "Time [ms]"] and heads[-1] == "manifest"
    assert [row[:2] for row in days[-2:]] == [["2026-03-04", "1"], ["2026-03-04", "2"]]
    assert [row[-1] for row in days] == [""] * 4 + ["compiler GNU 12.2.0 -> AOCC 4.2"]
    assert days[0][4] == "5.00 ± 0.20"
    assert ratio[0] == "last / median" and ratio[2].startswith("1.10 ± 0.0")
    assert verdict[:3] == ["verdict", "", "slower"] and verdict[4] == "costlier"
    assert "1 of 2 got worse" in out and code == 1


def builds(days, **times):
    """Builds one after the other each night, by compilers of these times, a little scattered."""
    chance = random.Random(9)
    return [
        night(
            day,
            time_s * chance.gauss(1, 0.002),
            manifest=manifest(compiler=compiler, os_kernel=kernel),
            start=f"2026-03-{day:02}T{hour:02}:00:00+00:00",
            job=f"{day}.{compiler}",
        )
        for day, kernel in days
        for hour, (compiler, time_s) in enumerate(times.items())
    ]


def said(out):
    """The verdict on the time of each build, by its compiler and kernel."""
    return {
        (one["compiler"], one["os_kernel"]): one["time_s_verdict"]
        for one in json.loads(out)
        if one["time_s_verdict"]
    }


def test_each_build_of_the_last_night_is_judged_by_its_own_nights(trend):
    days = [(day, "6.1") for day in range(1, 11)]
    lines = builds(days, gnu=0.05, clang=0.055, debug=0.2)
    code, out, _ = trend(lines, "--format", "json")
    alike = {(name, "6.1"): "not told apart" for name in ("gnu", "clang", "debug")}
    assert (code, said(out)) == (0, alike)
    slower = builds([(11, "6.1")], gnu=0.055, clang=0.055, debug=0.2)
    code, out, _ = trend([*lines, *slower], "--format", "json")
    assert (code, said(out)) == (1, {**alike, ("gnu", "6.1"): "slower"})
    assert len(json.loads(out)) == 33  # each line once


def test_a_build_s_nights_before_a_new_kernel_are_its_own(trend):
    lines = builds([(day, "6.1") for day in range(1, 11)], gnu=0.05, clang=0.055, debug=0.2)
    code, out, _ = trend(
        [*lines, *builds([(11, "6.12")], gnu=0.05, clang=0.055, debug=0.2)], *JSON
    )
    alike = {(name, "6.12"): "not told apart" for name in ("gnu", "clang", "debug")}
    assert (code, said(out)) == (0, alike)
    code, out, _ = trend([*lines, *builds([(11, "6.12")], gnu=0.05, clang=0.06, debug=0.2)], *JSON)
    assert (code, said(out)) == (1, {**alike, ("clang", "6.12"): "slower"})


def test_a_build_that_returns_is_judged_by_all_before(trend):
    """Nothing else ran that day: one line of builds that follow each other."""
    lines = [
        *builds([(day, "6.1") for day in (1, 2, 3)], gnu=0.05),
        *builds([(day, "6.1") for day in (4, 5, 6)], clang=0.0502),
        *builds([(7, "6.1")], gnu=0.06),
    ]
    code, out, _ = trend(lines, *JSON)
    assert (code, said(out), len(json.loads(out))) == (1, {("gnu", "6.1"): "slower"}, 7)


def test_a_new_build_beside_an_old_one_has_the_old_one_s_nights_until_it_has_three(trend):
    lines = builds([(day, "6.1") for day in range(1, 11)], gnu=0.05)
    words = []
    for day, count in ((11, 11 + 12), (12, 12 + 14), (13, 13 + 16), (14, 14 + 4)):
        lines += builds([(day, "6.1")], gnu=0.05, clang=0.08)
        out = trend(lines, *JSON)[1]
        assert len(json.loads(out)) == count
        words.append(said(out)[("clang", "6.1")])
    assert (words[0], words[-1]) == ("slower", "not told apart")


def test_an_empty_manifest_is_another_than_none(trend):
    both = [{"manifest": None}, {"manifest": {}, "job": "x"}]
    lines = [night(day, time_s, **one) for day, time_s in enumerate(EARLIER, 1) for one in both]
    code, out, _ = trend(lines, *JSON)
    assert (code, len(json.loads(out)), said(out)) == (0, 8, {(None, None): "not told apart"})


def test_a_line_without_a_start_has_its_file_s_day(site, results):
    folder = results(line(), name="old.cooked.jsonl")
    os.utime(folder / "old.cooked.jsonl", (86400 * 1.5, 86400 * 1.5))
    results(night(1, 0.05), name="new.cooked.jsonl")
    out = site.out("trend", "mod2am", "--format", "json")
    assert [one["day"] for one in json.loads(out)] == ["1970-01-02", "2026-03-01"]


def test_a_day_is_the_site_s(trend, site):
    """A night in two halves of UTC's days is one of Chicago's."""
    site.configure("timezone: America/Chicago\n")
    starts = ("2026-03-01T23:30:00+00:00", "2026-03-02T00:30:00+00:00")
    lines = [night(1, 0.05, start=start, job=start) for start in starts]
    (record,) = json.loads(trend(lines, "--format", "json")[1])
    assert (record["day"], record["runs"]) == ("2026-03-01", 2)
    assert "Days: America/Chicago." in trend(lines)[1]
    site.yaml.unlink()
    assert len(json.loads(trend(lines, "--format", "json")[1])) == 2
    site.yaml.write_text("timezone: Mars/Olympus\n")
    assert f"{site.yaml}:1: timezone: 'Mars/Olympus' is not known here" in trend(lines)[2]


def test_without_a_site_s_zone_a_day_is_utc_s(trend, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    _, out, _ = trend([night(1, 0.05, start="2026-03-01T00:30:00+02:00")], "--format", "json")
    monkeypatch.undo()
    time.tzset()
    assert json.loads(out)[0]["day"] == "2026-02-28"


def test_estimates_are_marked(trend):
    lines = nights(*EARLIER, 0.05, estimated=True)
    *_, day, ratio, _ = markdown_rows(trend(lines, "--format", "markdown")[1])
    for row in (day, ratio):
        assert [cell.startswith("\\~") for cell in row[2:6]] == [False, False, True, True]


OTHER_INSTRUMENTS = [
    {"manifest": manifest(instruments="redfish/node", channels="bmc/psu1")},
    {"manifest": manifest(channels="rapl/package-0 rapl/package-1 rapl/dram-0")},
    {"estimated": True},
]


@pytest.mark.parametrize("other", OTHER_INSTRUMENTS)
def test_energy_by_another_instrument_is_another_quantity(trend, other):
    lines = [*nights(*EARLIER), night(5, 0.0501, 200, **other)]
    code, out, _ = trend(lines, "--format", "json")
    assert code == 0
    assert last(out) == ("not told apart", "by another instrument: not told apart")
    records = json.loads(out)
    assert records[-1]["time_s_ratio"] and records[-1]["energy_j_ratio"] is None
    assert [one["other_instrument"] for one in records] == [True] * 4 + [False]
    _, out, _ = trend(lines, "--format", "markdown")
    *days, ratio, _ = markdown_rows(out)[2:]
    marked = [[cell.endswith("*") for cell in row[2:6]] for row in days]
    assert marked == [[False, False, True, True]] * 4 + [[False] * 4]
    assert ratio[2] != "-" and ratio[4:6] == ["-", "-"]
    assert "*: measured by other instruments or channels" in out


@pytest.mark.parametrize("other", OTHER_INSTRUMENTS)
def test_it_is_judged_by_the_days_that_it_measured_too(trend, other):
    after = [night(day, 0.05 + day * 1e-6, 200, **other) for day in range(5, 9)]
    lines = [*nights(*EARLIER), *after, night(9, 0.05, 230, **other)]
    code, out, _ = trend(lines, "--format", "json")
    assert (code, last(out)) == (1, ("not told apart", "costlier"))
    assert json.loads(out)[-1]["energy_j_ratio"] == pytest.approx(1.15, rel=1e-3)


def test_a_day_of_several_instruments_is_in_no_ratio_of_energies(trend):
    """Two packages' runs among those of one are no change."""
    two = {"manifest": manifest(channels="rapl/package-0 rapl/package-1")}
    mixed = [night(5, 0.0501), night(5, 0.0501, 200, job="x", **two)]
    records = json.loads(trend([*nights(*EARLIER), *mixed], "--format", "json")[1])
    assert records[-1]["energy_j_verdict"] == "by another instrument: not told apart"
    assert [one["other_instrument"] for one in records] == [True] * 5
    _, out, _ = trend([*nights(*EARLIER), *mixed, night(6, 0.0501)], "--format", "json")
    assert [one["other_instrument"] for one in json.loads(out)] == [False] * 4 + [True, False]
    assert last(out) == ("not told apart", "not told apart")


@pytest.mark.parametrize(("node", "expected"), [("n1", "costlier"), ("n2", "not told apart")])
def test_on_another_node_the_instrument_errs_otherwise(trend, node, expected):
    _, out, _ = trend([*nights(*EARLIER), night(5, 0.05, 105, node=node)], "--format", "json")
    assert last(out) == ("not told apart", expected)


def test_an_instrument_s_error_counts_where_the_last_night_s_is_not_known(trend):
    """4 % of the earlier nights' tell no 4 % on another node."""
    unknown = night(5, 0.05, 104, node="n2", energy_uncertainty_j=None)
    _, out, _ = trend([*nights(*EARLIER), unknown], "--format", "json")
    assert last(out) == ("not told apart", "not told apart")


def test_lines_that_do_not_tell_their_instrument_are_not_taken_for_one(trend):
    old = {"node": None, "manifest": None}
    _, out, _ = trend([*nights(*EARLIER), night(5, 0.05, 120, **old)], "--format", "json")
    assert last(out)[1] == "by another instrument: not told apart"
    _, out, _ = trend([*nights(*EARLIER, **old), night(5, 0.05, 105, **old)], "--format", "json")
    assert last(out)[1] == "not told apart"


def test_a_last_line_without_energy_marks_no_other(trend):
    lines = [*nights(*EARLIER), {**night(5, 0.05), **UNKNOWN}]
    _, out, _ = trend(lines, "--format", "json")
    assert last(out) == ("not told apart", None)
    assert [one["other_instrument"] for one in json.loads(out)] == [False] * 4 + [None]


@pytest.mark.parametrize(
    "start", ["yesterday", "2026-03-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
)
def test_a_start_that_is_none_is_named_and_its_line_left_out(trend, start):
    _, out, err = trend([night(1, 0.05), night(2, 0.05, start=start)], "--format", "json")
    assert len(json.loads(out)) == 1
    assert f'mod2am.1.cooked.jsonl:2: start: "{start}": must be a time since 1970' in err


def test_a_day_tells_of_how_many_runs_its_energy_is(trend):
    lines = [*nights(*EARLIER), {**night(4, 0.05, job="x"), **UNKNOWN}]
    record = json.loads(trend(lines, "--format", "json")[1])[-1]
    assert [record[key] for key in ("runs", "energy_runs", "energy_jobs")] == [2, 1, 1]
    days = markdown_rows(trend(lines, "--format", "markdown")[1])[2:-2]
    assert [row[1] for row in days] == ["1", "1", "1", "2 (1)"]


def test_sizes_and_variants_have_trends_of_their_own(trend):
    lines = [*nights(*EARLIER, 0.0551), *nights(*EARLIER, 0.0501, variant="plain")]
    lines += [{**line(500), "start": "2026-03-09T02:00:00+00:00"}]
    code, out, _ = trend(lines)
    assert "1 of 3 got worse" in out and code == 1
    assert "blas, 2 threads, x86_64, A CPU, size 500" in out


def test_a_day_of_other_options_is_no_earlier_day(trend):
    by_hand = [night(4, 0.08, option_nb=1), night(5, 0.05, option_nb=192)]
    lines = [*nights(0.05, 0.0506, 0.0498, option_nb=192), *by_hand]
    code, out, _ = trend(lines, *JSON)
    days = [(one["options"], one["day"][-2:]) for one in json.loads(out)]
    assert code == 0 and days == [("nb=192", day) for day in ("01", "02", "03", "05")]
    _, out, _ = trend(lines, "--format", "markdown")
    assert "A CPU, options nb=192, size 1000" in out
    assert "Lines by other options of the program" in out


def test_two_options_of_one_last_day_have_a_trend_each(trend):
    lines = [
        night(day, time_s, option_nb=nb)
        for day in (1, 2, 3, 4)
        for nb, time_s in ((1, 0.08), (192, 0.06 if day == 4 else 0.05 + day / 1e4))
    ]
    code, out, _ = trend(lines, "--format", "markdown")
    assert code == 1 and "options nb=1, size" in out and "options nb=192, size" in out
    assert "Lines by other options" not in out
    assert "1 of 2 got worse" in out


def test_options_that_were_mended_are_judged_no_more(trend):
    slow = nights(0.05, 0.0506, 0.0498, 0.05, 0.09, option_nb=192)
    code, _, _ = trend([*slow, night(6, 0.05, option_nb=256)])
    assert code == 0


def test_an_option_that_earlier_releases_did_not_know_hides_no_change(trend):
    new = {"option_nb": 192, "option_cold": "no", "manifest": manifest(version="0.2")}
    lines = [*nights(*EARLIER, option_nb=192), night(5, 0.06, **new)]
    code, out, _ = trend(lines, *JSON)
    assert code == 1 and last(out)[0] == "slower"


def test_days_that_tell_no_option_are_beside_none_of_several(trend):
    new = [night(5, 0.05 * fill, option_fill=fill) for fill in (1, 3)]
    code, out, _ = trend([*nights(*EARLIER), *new], *JSON)
    assert code == 0 and [one["options"] for one in json.loads(out)] == ["fill=1", "fill=3"]


def test_csv_and_json_tell_the_same(trend):
    lines = [*nights(*EARLIER), {**night(5, 0.05, manifest=None), **UNKNOWN}]
    records = json.loads(trend(lines, "--format", "json")[1])
    rows = list(csv.DictReader(io.StringIO(trend(lines, "--format", "csv")[1])))
    assert [row.keys() for row in rows] == [record.keys() for record in records]
    assert [row["energy_j"] for row in rows][3:] == [str(records[3]["energy_j"]), ""]
    assert records[0]["compiler"] == "GNU 12.2.0"
    assert records[4]["change"] == "with a manifest -> no manifest"


def test_a_kernel_that_was_not_measured_is_an_error(trend, site):
    trend([night(1, 0.05)])
    assert "KERNEL triad: nothing was measured" in site.refuses("trend", "triad")
