# Tables and plots from cooked output: columns, statistics, marks, formats.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import csv
import errno
import io
import itertools
import json
import math
import os
import pathlib
import re
import statistics

import pytest
from cooked_lines import PNG_HEAD, UNKNOWN, failed, line, manifest, markdown_rows
from joulemark.bench import cooked, stats
from joulemark.bench.stats import Value
from joulemark.plots import chart, kernels, model


def table_rows(site, kernel="mod2am"):
    """The cells of a table in Markdown."""
    return markdown_rows(site.out("report", "table", kernel, "--format", "markdown"))


def table_records(site, *words):
    return json.loads(site.out("report", "table", "mod2am", "--format", "json", *words))


def test_columns_are_exactly_the_annex_s(site, results):
    results(line())
    heads, _, values, *errors = table_rows(site)
    assert heads[:4] == ["Size", "N", "Time [ms]", "Power [W]"]
    assert heads[4:] == ["Energy [J]", "Perf. [MF/s]", "Eff. [MF/J]"]
    assert values == ["1000", "1", "50.0", "100", "5.00", "40000", "400"]
    assert errors == [
        ["± repetitions", "", "± 1.00%", "", "", "± 1.00%", ""],
        ["± instrument", "", "", "± 4.00%", "± 4.00%", "", "± 4.00%"],
    ]


def test_stream_has_prace_s_prefixes(site, results):
    stream = {"benchmark": "jm-stream", "kernel": "triad", "unit": "B/s", "variant": "omp"}
    results(line(**stream))
    plain, *named = (
        site.out("report", "table", "triad", *words)
        for words in ((), ("--prefixes", "prace"), ("--prefixes", "seeds"), ("--prefixes", "auto"))
    )
    assert named[:2] == [plain, plain] and named[2] != plain
    heads = table_rows(site, "triad")[0]
    assert heads[2:] == ["Time [μs]", "Power [W]", "Energy [mJ]", "Perf. [MB/s]", "Eff. [MB/J]"]


def test_terminal_shows_the_same_cells(site, results):
    results(line())
    lines = site.out("report", "table", "mod2am").splitlines()
    assert lines[0] == "mod2am, blas, 2 threads, x86_64, A CPU"
    assert lines[1].split("  ")[0] == "Size" and lines[1].endswith("Eff. [MF/J]")
    assert lines[2].split() == ["1000", "1", "50.0", "100", "5.00", "40000", "400"]


def test_n_runs_are_averaged_and_their_spread_told(site, results):
    times = [0.04, 0.05, 0.06]
    results(*(line(time_s=time_s, time_spread_s=0.0) for time_s in times))
    (record,) = table_records(site)
    assert record["runs"] == 3
    assert record["time_s"] == pytest.approx(0.05)
    assert record["time_s_spread"] == pytest.approx(statistics.stdev(times))
    interval = 4.302653 * statistics.stdev(times) / math.sqrt(3)  # Student's t of two degrees
    assert record["time_s_interval"] == pytest.approx(interval)
    assert record["energy_j_interval"] == pytest.approx(100 * interval)
    assert record["energy_j_spread"] == pytest.approx(100 * statistics.stdev(times))
    # A systematic error does not shrink with the number of runs.
    assert record["energy_j_uncertainty"] == pytest.approx(0.04 * record["energy_j"])


def test_n_tells_of_how_many_runs_the_energies_are(site, results):
    results(*(line(job=job) for job in "112"), {**line(job="3"), **UNKNOWN})
    (record,) = table_records(site)
    counts = [record[key] for key in ("runs", "jobs", "energy_runs", "energy_jobs")]
    assert counts == [4, 3, 3, 2]
    assert table_rows(site)[2][1] == "4 (3)"
    said = " ".join(site.out("report", "table", "mod2am").split())
    assert "4 (3): 3 of 4 with an energy" in said
    results({**line(), **UNKNOWN})
    assert table_rows(site)[2][1] == "1"
    assert (table_records(site)[0]["energy_runs"], table_records(site)[0]["energy_jobs"]) == (0, 0)


def test_several_runs_spread_is_theirs_alone(site, results):
    """Not with the standard error of each run's repetitions: time varied by more than the energy
    that it is a factor of."""
    times = (0.0500, 0.0502, 0.0498, 0.0501)
    results(*(line(time_s=time_s, time_spread_s=0.0005) for time_s in times))
    (record,) = table_records(site)
    assert record["time_s_spread"] == pytest.approx(statistics.stdev(times))
    label, _, time_s, power, *rest = table_rows(site)[3]
    assert (label, power, {time_s, *rest}) == ("± repetitions", "± 0.00%", {"± 0.34%"})


def test_a_single_run_s_spread_is_that_of_its_mean_and_the_legend_says_so(site, results):
    results(line(time_s=0.05, time_spread_s=0.003, repetitions=9))
    assert table_records(site)[0]["time_s_spread"] == pytest.approx(0.003)
    said = " ".join(site.out("report", "table", "mod2am").split())
    assert (
        "± repetitions: standard deviation of several runs, of a single run that of its mean by "
        "its repetitions (k=1);" in said
    )


def test_one_run_s_repetitions_are_all_that_is_known_of_it(results):
    """A cooked line's spread is that of its mean already."""
    folder = results(line(time_s=0.05, time_spread_s=0.003, repetitions=9))
    (series,) = stats.series_of(cooked.load([str(folder)]), "mod2am")
    row = series.rows[0]
    assert row.time_s.interval == pytest.approx(2.306004 * 0.003)
    assert row.energy_j.interval is None


@pytest.mark.parametrize(("degrees", "t"), [(1, 12.706), (30, 2.042), (40, 2.021), (120, 1.980)])
def test_student_s_t_is_that_of_the_tables(degrees, t):
    assert stats.student_t(degrees) == pytest.approx(t, abs=0.001)


def test_a_ratio_has_the_errors_of_both(site, results):
    one, other = Value(2.0, 0.2, 0.02, 0.06), Value(4.0, 0.4, 0.16, 0.16)
    ratio = other.over(one)
    assert (ratio.mean, ratio.interval, ratio.uncertainty) == pytest.approx(
        (2.0, 2 * math.hypot(0.03, 0.04), 2 * math.hypot(0.01, 0.04))
    )
    assert ratio.error == pytest.approx(math.hypot(ratio.interval, ratio.uncertainty))
    assert one.over(one) == Value(1.0)
    assert one.over(Value(4.0, None, 0.1, None)).interval is None  # of one side it is not known
    assert other.over(Value(2.0)).uncertainty == pytest.approx(2 * 0.04)  # the known side's
    plain, blas = (
        [line(variant=name, time_s=time_s) for time_s in times]
        for name, times in (("plain", (0.09, 0.10, 0.11)), ("blas", (0.05, 0.05, 0.05)))
    )
    results(*plain, *blas)
    out = site.out("report", "table", "mod2am", "--compare", "plain,blas")
    assert re.search(r"1000 .* 1\.99 ± 0\.50", out), out


def test_missing_power_is_a_dash(site, results):
    results(line(10, **UNKNOWN), line(1000))
    row = table_rows(site)[2]
    assert (row[0], row[3], row[4], row[6]) == ("10", "-", "-", "-")


def test_failed_result_has_no_performance(site, results):
    results(line(100), failed(200), failed(300))
    for name in ("terminal", "markdown"):
        out = site.out("report", "table", "mod2am", "--format", name)
        row = next(one for one in out.splitlines() if one.lstrip("| ").startswith("200 "))
        assert row.replace("|", " ").split() == ["200", "1", "failed", "-", "-", "failed", "-"]
    record = table_records(site)[1]
    assert record["verified"] is False and record["performance"] is None


def test_failed_line_with_a_performance_still_has_none(site, results):
    results(line(200, verified=False))
    assert table_records(site)[0]["performance"] is None


def test_estimates_are_marked_in_every_format(site, results):
    results(line(estimated=True), line(500, **UNKNOWN))
    for name in ("terminal", "markdown"):
        out = site.out("report", "table", "mod2am", "--format", name)
        assert "(energy ESTIMATED by a model, not measured)" in out.splitlines()[0]
        row = next(one for one in out.splitlines() if one.lstrip("| ").startswith("1000 "))
        cells = row.replace("|", " ").replace("\\", "").split()
        assert cells == ["1000", "1", "50.0", "~100", "~5.00", "40000", "~400"]
    assert [record["estimated"] for record in table_records(site)] == [None, True]
    as_csv = site.out("report", "table", "mod2am", "--format", "csv")
    assert [row["estimated"] for row in csv.DictReader(io.StringIO(as_csv))] == ["", "true"]


def test_one_estimated_run_makes_the_row_an_estimate(site, results):
    results(line(), line(estimated=True))
    assert table_records(site)[0]["estimated"] is True


def test_energy_that_hides_how_it_was_found_is_refused(site, results):
    results(line(estimated=None), line(500))
    _, out, err = site.run("report", "table", "mod2am", "--format", "json")
    assert [record["size"] for record in json.loads(out)] == [500]
    assert "mod2am.1.cooked.jsonl:1: estimated: must be true or false" in err


def test_csv_and_json_tell_the_same(site, results):
    results(line(), line(), line(500, **UNKNOWN), failed(200))
    records = table_records(site)
    as_csv = site.out("report", "table", "mod2am", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(as_csv)))
    assert len(rows) == len(records) == 3
    for row, record in zip(rows, records):
        assert {key: json_value(row[key], record[key]) for key in row} == record


def json_value(text, like):
    if text == "":
        return None
    return text if isinstance(like, str) else json.loads(text)


def test_each_variant_and_thread_count_has_its_table(site, results):
    results(line(), line(threads=1), line(variant="plain"))
    out = site.out("report", "table", "mod2am", "--format", "markdown")
    titles = [one for one in out.splitlines() if one.startswith("**")]
    assert len(titles) == 3
    assert "blas, 1 thread," in titles[0] and "plain, 2 threads" in titles[2]


def test_best_variant_at_each_size(site, results):
    results(
        line(100, variant="omp", time_s=0.1),
        line(100, variant="omp-nt", time_s=0.2),
        line(200, variant="omp", time_s=0.2),
        line(200, variant="omp-nt", time_s=0.1),
        {**failed(300), "variant": "omp"},
        line(100, variant="serial", threads=1),
    )
    found = table_records(site, "--best")
    found = [(one["variant"], one["size"], one["time_s"]) for one in found]
    assert found == [
        ("best of omp, omp-nt", 100, 0.1),
        ("best of omp, omp-nt", 200, 0.1),
        ("best of omp, omp-nt", 300, None),
        ("serial", 100, 0.05),
    ]


def test_the_best_of_variants_shows_what_failed_beside_it(site, results):
    results(
        line(variant="plain"), *2 * [{**failed(1000), "variant": "blas"}], line(2000), failed(2000)
    )
    found = table_records(site, "--best")
    told = [(one["variant"], one["size"], one["runs"], one["verified"]) for one in found]
    sizes = [(1000, 1, True), (1000, 2, False), (2000, 1, True), (2000, 1, False)]
    assert told == [("best of blas, plain", *size) for size in sizes]


def test_optimised_against_plain(site, results):
    results(line(time_s=0.01), line(variant="plain", time_s=0.1, threads=1))
    out = site.out("report", "table", "mod2am", "--compare", "plain,blas")
    rows = [one.split() for one in out.splitlines() if one.startswith("1000")]
    assert rows[-1] == ["1000", "20.0", "200", "10.0", "0.20", "2.00", "10.0", "±", "0.57"]
    assert (
        "Size 1000: blas (2 thr.) runs at 10.0 times the GF/s of plain (1 thr.) "
        "and gives 10.0 ± 0.57 times the GF/J." in " ".join(out.split())
    )
    results(
        *(line(time_s=t, variant="plain", estimated=True) for t in (0.099, 0.1, 0.101)),
        *(line(time_s=time_s, estimated=True) for time_s in (0.0099, 0.01, 0.0101)),
    )
    out = " ".join(site.out("report", "table", "mod2am").split())
    error, instrument = 10 * 2.776 * math.sqrt(2 / 3) * 0.01, 10 * math.sqrt(2) * 0.04
    both = math.hypot(error, instrument)
    assert f"runs at 10.0 ± {error:.2f} times the GF/s" in out
    assert f"gives ~10.0 ± {both:.2f} times the GF/J (energy ESTIMATED" in out
    assert "A ratio's ±, at 95 %" in out


def test_a_ratio_of_variants_is_of_energies_by_one_instrument(site, results):
    one, two = (manifest(channels=name) for name in ("rapl/package-0", "rapl/package-0 bmc"))
    words = ("report", "table", "mod2am", "--compare", "plain,blas", "--format", "markdown")
    for ours, has_ratio in ((one, True), (two, False)):
        results(line(variant="plain", manifest=one), line(manifest=ours))
        out = site.out(*words)
        assert (markdown_rows(out)[-1][-1] != "-") == has_ratio
        assert ("times the GF/J" in out) == has_ratio
    assert "-: by different instruments or channels" in " ".join(out.split())


@pytest.mark.parametrize("other", [{"estimated": True}, {"manifest": manifest(channels="bmc")}])
def test_a_mean_of_unlike_energies_is_marked(site, results, other):
    """A model's runs beside a meter's, a package's beside a node's."""
    known = {"manifest": manifest()} if "manifest" in other else {}
    results(line(**known), line(**{**known, **other}))
    assert table_records(site)[0]["several_instruments"] is True
    _, _, row, *_ = table_rows(site)
    assert [cell.endswith("*") for cell in row[2:7]] == [False, True, True, False, True]
    assert "*: the mean of energies by several instruments" in site.out(
        "report", "table", "mod2am"
    )
    results(line(), line())
    assert table_records(site)[0]["several_instruments"] is False
    assert "*" not in site.out("report", "table", "mod2am")


def test_the_legend_says_what_is_in_a_ratio_s_error(site, results):
    """Of a single run, GF/s has the scatter of repetitions, GF/J the instrument's error alone."""
    runs = [
        line(variant=name, time_spread_s=0.005, repetitions=9, energy_uncertainty_j=0.0)
        for name in ("plain", "blas")
    ]
    results(*runs)
    out = " ".join(site.out("report", "table", "mod2am", "--compare", "plain,blas").split())
    interval = math.sqrt(2) * 2.120 * 0.1  # Student's t of 16 degrees
    assert f"1.00 ± {interval:.2f}" in out and "1.00 ± 0.0" in out
    assert "of a single run by the instrument alone, for the energy of a repetition" in out
    results(runs[0])
    assert "A ratio's" not in site.out("report", "table", "mod2am")


def test_compare_with_a_variant_that_is_not_there(site, results):
    results(line())
    assert "variants: blas" in site.refuses("report", "table", "mod2am", "--compare", "plain,blas")


def test_compare_says_which_sizes_there_are_where_both_have_none(site, results):
    """Such as those of hpl, which are multiples of what the variant is named after."""
    results(line(1000), line(2000), failed(3000), line(3000, variant="plain"))
    out = " ".join(site.out("report", "table", "mod2am", "--compare", "plain,blas").split())
    assert "A CPU: no size was verified of both: plain has 3000; blas has 1000, 2000" in out


def test_unknown_kernel_lists_what_there_is(site, results):
    results(line())
    code, _, err = site.run("report", "table", "triad")
    assert code == 2 and "KERNEL triad: nothing was measured; there are: mod2am" in err


def test_no_results_says_how_to_name_them(site, results):
    folder = results("")
    (folder / "mod2am.1.cooked.jsonl").unlink()
    assert "name the place with --from" in site.refuses("report", "table", "mod2am")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"size": 0}, "size: 0: must be a whole number from 1 to"),
        ({"verified": None}, "verified: null: must be true or false"),
        ({"kernel": 3}, "kernel: 3: must be a text"),
        ({"time_s": -1.0}, "time_s: -1.0: must be a finite number"),
        ({"performance": None}, "time_s, performance: null: must be numbers"),
        ({"energy_j": True}, "energy_j: true: must be a finite number"),
        ({"time_s": 0.0}, "time_s: 0.0: must be above 0, for verified is true"),
        ({"performance": 0}, "performance: 0.0: must be above 0, for verified is true"),
        ({"performance": 1e-320}, "performance: 1e-320: must be 0, or from 1e-30 to 1e+30"),
        ({"energy_j": 10**400}, "energy_j: 1000"),
        ({"size": 10**400}, "size: 1000"),
        ({"cpu": "\ud800"}, 'cpu: "\\ud800": must be a text'),
    ],
)
def test_bad_line_is_named_and_left_out(site, results, changes, expected):
    results(line(500), {**line(), **changes}, '{"torn": \n')
    code, out, err = site.run("report", "table", "mod2am", "--format", "json")
    assert code == 0 and [record["size"] for record in json.loads(out)] == [500]
    assert f"mod2am.1.cooked.jsonl:2: {expected}" in err
    assert "mod2am.1.cooked.jsonl:3: not JSON" in err


def test_a_line_of_brackets_without_end_is_named_and_left_out(site, results):
    results(line(500), "[" * 100_000 + "\n")
    _, out, err = site.run("report", "table", "mod2am", "--format", "json")
    assert [record["size"] for record in json.loads(out)] == [500]
    assert "mod2am.1.cooked.jsonl:2: not JSON: " in err


def test_what_ends_no_line_is_not_read_on(site):
    err = site.refuses("report", "table", "mod2am", "--from", "/dev/zero")
    assert "--from /dev/zero:1: no line ends within 1048576 bytes: name other results" in err


def test_a_folder_below_that_cannot_be_read_is_not_passed_over(site, results, monkeypatch):
    folder = results(line(500))
    (folder / "closed" / "in").mkdir(parents=True)
    scandir = os.scandir

    def closed(path="."):
        if pathlib.Path(path) == folder / "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    err = site.refuses("report", "table", "mod2am", "--from", str(folder))
    assert f"--from {folder}/closed: Permission denied: name other results" in err


def test_a_line_that_is_no_text_is_named_and_left_out(site, results):
    folder = results(line(500), '{"cpu": "\u2028 is no end of a line')
    with open(folder / "mod2am.1.cooked.jsonl", "ab") as file:
        file.write(b'"}\n{"cpu": "\xff"}\n')
    code, out, err = site.run("report", "table", "mod2am", "--format", "json")
    assert code == 0 and [record["size"] for record in json.loads(out)] == [500]
    assert "cooked.jsonl:2: verified: null" in err
    assert "cooked.jsonl:3: not UTF-8: byte 10 is 0xff: line left out" in err


def test_a_figure_s_name_is_no_folder_for_figures(site, results, capsys):
    results(line())
    path = site.folder / "x.PDF"
    for words in (
        ("compare", "mod2am", "--with", "LRZ", "--plot"),
        ("report", "scaling", "mod2am", "--plot"),
        ("report", "plot", "mod2am", "--out"),
    ):
        with pytest.raises(SystemExit):
            site.run(*words, str(path))
        said = f"{words[-1]}: '{path}' is no folder: name one, such as {site.folder}, with"
        assert f"{said} --figures pdf" in capsys.readouterr().err
        assert not path.exists()


def test_a_file_named_twice_counts_once(site, results):
    folder = results(line())
    file = str(folder / "mod2am.1.cooked.jsonl")
    assert table_records(site, "--from", file, str(folder))[0]["runs"] == 1


def test_table_goes_to_a_file(site, results):
    results(line())
    path = site.folder / "table.md"
    words = ("report", "table", "mod2am", "--format", "markdown", "--out", str(path))
    assert site.out(*words) == ""
    assert path.read_text().startswith("**mod2am")


def test_plots_are_drawn_for_each_kernel(site, results):
    results(line(100), line(1000, estimated=True), failed(500))
    out = site.folder / "plots"
    text = site.out("report", "plot", "mod2am", "--out", str(out), "--peak", "96")
    names = ["mod2am-performance.png", "mod2am-efficiency.png", "mod2am-energy-efficiency.png"]
    assert text.split() == [str(out / name) for name in names]
    assert all((out / name).read_bytes().startswith(PNG_HEAD) for name in names)


@pytest.mark.parametrize(("kind", "head"), [("svg", b"<?xml"), ("pdf", b"%PDF-")])
def test_figures_are_of_the_kind_that_is_asked_for(site, results, kind, head):
    results(line(100), line(1000))
    words = ("--out", str(site.folder), "--figures", kind)
    paths = site.out("report", "plot", "mod2am", *words).split()
    assert len(paths) == 3
    for path in paths:
        assert path.endswith(f".{kind}") and pathlib.Path(path).read_bytes().startswith(head)


def test_our_own_errors_are_drawn_both_apart(site, results, axes_of_figures):
    results(*(line(time_s=time_s) for time_s in (0.04, 0.05, 0.06)))
    site.out("report", "plot", "mod2am", "--out", str(site.folder))
    time, energy = axes_of_figures[0], axes_of_figures[2]
    interval_only, both = (
        [container.lines[2][0].get_linewidth()[0] for container in axes.containers]
        for axes in (time, energy)
    )
    assert (interval_only, both) == ([0.9], [5, 0.9])
    (bar,) = time.containers[0].lines[2][0].get_segments()
    assert bar[1][1] - bar[0][1] > 0


@pytest.mark.parametrize("families", ["AAAAAAAAABBBBBBBBBCCCCCCCCC", "ABABAAAAABBABCCBCAAB"])
def test_lines_of_many_stay_apart(families):
    lines = [
        model.Line(str(number), [(Value(1), Value(1))], family)
        for number, family in enumerate(families)
    ]
    styles = [tuple(sorted(style.items())) for style in chart.styles([lines]).values()]
    assert len(set(styles)) == len(lines)


def test_lines_of_many_stay_apart_in_grey_print():
    lines = [model.Line(f"{family}{n}", [], family) for family in "ABCDEFG" for n in range(5)]
    looks = {(style["marker"], style["linestyle"]) for style in chart.styles([lines]).values()}
    assert len(looks) == len(lines)


def test_one_size_has_no_empty_decades(site, results, axes_of_figures):
    results(line(1000))
    site.out("report", "plot", "mod2am", "--out", str(site.folder))
    assert [axes.get_xlim() for axes in axes_of_figures] == [(500, 2000)] * 3


def test_sizes_within_a_decade_have_their_own_ticks(site, results, axes_of_figures):
    results(line(20), line(40))  # 22.5 or 27.5 is no matrix dimension
    site.out("report", "plot", "mod2am", "--out", str(site.folder))
    assert [axes.get_xticks().tolist() for axes in axes_of_figures] == [[20, 40]] * 3


@pytest.mark.parametrize("families", ["ABCDEFGGHIJK", "AAABCDEF", "AAABCDEFGGHIJK"])
@pytest.mark.parametrize("keys", [*itertools.combinations(("marker", "color", "linestyle"), 2)])
def test_families_of_many_stay_apart_by_any_two(families, keys):
    """As prototypes do, of which one has two lines, beside variants of this machine or not."""
    lines = [model.Line(str(n), [], family) for n, family in enumerate(families)]
    looks = {tuple(style[key] for key in keys) for style in chart.styles([lines]).values()}
    assert len(looks) == len(lines)


def test_no_colour_is_used_again_before_all_are():
    """Of this machine's variants and prototypes."""
    lines = [model.Line(str(n), [], family) for n, family in enumerate("AAABCDEFGGHIJK")]
    colours = [style["color"] for style in chart.styles([lines]).values()]
    assert {colours.count(colour) for colour in colours} == {2}


def test_ticks_are_1_2_5(site, results, axes_of_figures):
    results(*(line(size, time_s=2 * size**3 / 20e9) for size in (100, 1000)))
    site.out("report", "plot", "mod2am", "--out", str(site.folder))
    assert axes_of_figures[0].get_yticks().tolist() == [0, 5, 10, 15, 20, 25]


def test_a_figure_says_what_it_shows(site, results, texts_on_figures):
    results(line(100, repetitions=9), failed(200), line(1000, repetitions=9))
    site.out("report", "plot", "mod2am", "--out", str(site.folder))
    of_runs = "error bars: 95 % over jobs (of one, runs or repetitions), Student's t"
    bars = [of_runs, of_runs, "wide error bars: instrument, k=2"]
    assert texts_on_figures == [[f"{bar}; 1 failed, not drawn", "A CPU (x86_64)"] for bar in bars]


def test_a_figure_names_no_error_bars_that_it_has_not(site, results, texts_on_figures):
    """Or none to be seen is a small error."""
    unknown = {"time_spread_s": None, "energy_uncertainty_j": None}
    results(line(100, **unknown), line(1000, **unknown))
    site.out("report", "plot", "mod2am", "--out", str(site.folder))
    assert {texts[0] for texts in texts_on_figures} == {"no error bars: the errors are not known"}
    texts_on_figures.clear()
    results(*[line(100, 0.05), line(100, 0.06)] * 2, line(100, variant="plain", **unknown))
    site.out("report", "plot", "mod2am", "--out", str(site.folder))
    ours = "error bars: 95 % over jobs (of one, runs or repetitions), Student's t"
    both = f"{ours}; wide: instrument, k=2"
    assert [texts[0] for texts in texts_on_figures] == [
        f"{bars}; line without: unknown" for bars in (ours, ours, both)
    ]


def test_a_figure_with_published_lines_says_whose_they_are(site, results, texts_on_figures):
    results(line(100))
    site.out("report", "plot", "mod2am", "--with", "LRZ", "--out", str(site.folder))
    assert texts_on_figures and all(model.PUBLISHED in texts for texts in texts_on_figures)


def test_published_and_predicted_lines_are_no_part_of_our_peak(
    site, results, texts_on_figures, legends_of_figures
):
    """LRZ would be drawn at 0.06 % of 3 TF/s: its own peak is 128 GF/s."""
    results(line(100))
    words = ("report", "plot", "mod2am", "--with", "LRZ,JKU", "--out", str(site.folder))
    site.out(*words, "--peak", "3000")
    speed, part, _ = legends_of_figures
    assert len(speed) == 3 and part == speed[:1]
    said = [(model.PUBLISHED in texts, kernels.OTHER_PEAKS in texts) for texts in texts_on_figures]
    assert said == [(True, False), (False, True), (True, False)]
    assert "A CPU (x86_64)" in texts_on_figures[1]
    legends_of_figures.clear()
    site.out(*words)
    assert legends_of_figures[1] == speed


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_of_the_same_data_a_figure_has_the_same_bytes(tmp_path, results, monkeypatch, kind):
    series = stats.series_of(cooked.load([str(results(line(100), line(1000)))]), "mod2am")
    _, what, lines = next(iter(kernels.charts(series, None)))
    for day in ("1", "2"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", f"{day}00000")
        chart.draw(what, lines, chart.styles([lines]), tmp_path / f"{day}.{kind}")
    assert (tmp_path / f"1.{kind}").read_bytes() == (tmp_path / f"2.{kind}").read_bytes()


def test_a_long_name_of_a_machine_is_not_cut(site, results, drawn_axes):
    name = "A CPU whose firmware says " + ", ".join(["very much of itself"] * 8)
    results(*({**one, "cpu": name} for one in (line(100), failed(200))))
    site.out("report", "plot", "mod2am", "--out", str(site.folder))
    for axes in drawn_axes:
        said = " ".join(text.get_text() for text in reversed(axes.texts))
        assert said.startswith(f"{name} (x86_64)") and said.endswith("not drawn")
        boxes = [text.get_window_extent() for text in axes.texts]
        assert all(box.x1 <= axes.figure.bbox.x1 for box in boxes)
        ends = sorted((box.y0, box.y1) for box in boxes)
        assert all(low[1] <= high[0] + 1 for low, high in zip(ends, ends[1:]))


def test_an_axis_has_one_unit_that_reads_well(site, results, axes_of_figures):
    results(line(100, performance=4e9, time_s=0.5, energy_j=600.0), line(200, performance=3e9))
    site.out("report", "plot", "mod2am", "--out", str(site.folder))
    labels = [axes.get_ylabel() for axes in axes_of_figures]
    assert labels[0] == "Performance [GF/s]" and labels[2] == "Energy efficiency [MF/J]"


def test_the_axis_of_sizes_says_what_a_size_counts(site, results, axes_of_figures):
    results(*(line(size, benchmark="mod2f", kernel="mod2f") for size in (256, 512)))
    site.out("report", "plot", "mod2f", "--out", str(site.folder))
    assert {axes.get_xlabel() for axes in axes_of_figures} == {"Points of the transform"}


def test_lines_that_differ_in_target_alone_are_told_apart(site, results, legends_of_figures):
    results(line(), line(target="aarch64"))
    site.out("report", "plot", "mod2am", "--out", str(site.folder))
    names = ["blas, 2 threads, aarch64, A CPU", "blas, 2 threads, x86_64, A CPU"]
    assert legends_of_figures and all(legend == names for legend in legends_of_figures)


def test_the_legend_hides_no_point(site, results, axes_of_figures):
    results(*(line(size, variant=name) for size in (1, 10, 1000) for name in ("plain", "blas")))
    site.out("report", "plot", "mod2am", "--out", str(site.folder))
    assert len(axes_of_figures) == 3
    for axes in axes_of_figures:
        assert axes.get_legend().get_window_extent().y1 < axes.get_window_extent().y0


def test_without_energy_there_is_no_energy_plot(site, results):
    results(line(100, **UNKNOWN), line(1000, **UNKNOWN))
    text = site.out("report", "plot", "mod2am", "--out", str(site.folder / "plots"))
    assert len(text.split()) == 2


@pytest.mark.parametrize(
    ("peak", "time_s", "label"),
    [
        (96.0, 0.05, "of peak, 96 GF/s]"),
        (None, 0.05, "of best measured, 40 GF/s]"),
        (None, 100.0, "of best measured, 20 MF/s]"),
    ],
)
def test_efficiency_says_what_it_is_a_part_of(results, peak, time_s, label):
    series = stats.series_of(cooked.load([str(results(line(time_s=time_s)))]), "mod2am")
    _, drawn, (one,) = list(kernels.charts(series, peak))[1]
    assert label in drawn.up.label
    ((_, value),) = one.points
    assert value.mean == pytest.approx(100 * 40 / peak if peak else 100)


def test_estimate_is_written_on_the_figure(site, results, texts_on_figures, legends_of_figures):
    results(line(estimated=True))
    site.out("report", "plot", "mod2am", "--out", str(site.folder))
    assert model.HOLLOW in texts_on_figures[-1]  # of energy
    assert "blas, 2 threads (estimated)" in legends_of_figures[-1]


def test_published_and_predicted_lines_can_be_drawn_and_printed_beside(
    site, results, legends_of_figures
):
    results(line(100), line(1000))
    words = ("mod2am", "--with", "LRZ,JKU", "--out", str(site.folder / "plots"))
    assert len(site.out("report", "plot", *words).split()) == 3
    labels = ["blas, 2 threads, A CPU", "LRZ (table 64)", "JKU model, 49 tiles, 100 MHz"]
    assert legends_of_figures[0][:3] == labels
    out = site.out("report", "table", "mod2am", "--with", "JKU", "--format", "markdown")
    assert "PREDICTED by a model, nothing of it was measured" in out
