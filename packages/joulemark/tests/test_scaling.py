# `joulemark report scaling`: cooked and published series over nodes, ranks and threads.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import math
import re

import pytest
from cooked_lines import PNG_HEAD, UNKNOWN, failed, line, manifest, markdown_rows
from joulemark.plots import model


def records(site, *arguments):
    return json.loads(site.out("report", "scaling", *arguments, "--format", "json"))


def ratios(found, key):
    return [one[key] and round(one[key], 3) for one in found]


def test_strong_series_over_ranks(site, results):
    results(
        line(time_s=0.1, variant="mpi", ranks=1, threads=1),
        line(time_s=0.05, variant="mpi", ranks=2, threads=1),
        line(time_s=0.05, variant="mpi", ranks=4, threads=1, energy_j=20.0),
    )
    found = records(site, "mod2am", "--peak", "40")
    assert {(one["scaling"], one["worker"]) for one in found} == {("strong", "ranks")}
    assert [one["workers"] for one in found] == [1, 2, 4]
    assert ratios(found, "parallel_efficiency") == [1.0, 1.0, 0.5]
    assert ratios(found, "relative_energy_efficiency") == [1.0, 2.0, 0.5]
    assert ratios(found, "peak_fraction") == [0.5, 0.5, 0.25]


def test_weak_series_is_the_largest_size_of_each_count(site, results):
    results(
        line(1000, time_s=0.1, ranks=1, threads=1),
        line(1260, time_s=0.1, ranks=2, threads=1),
        line(1587, time_s=0.2, ranks=4, threads=1),
    )
    found = records(site, "mod2am")
    assert {one["scaling"] for one in found} == {"weak"}
    assert ratios(found, "parallel_efficiency") == [1.0, 1.0, 0.5]


def test_one_failed_run_hides_no_verified_one_of_a_weak_series(site, results):
    results(
        line(1000, ranks=1, threads=1),
        *(line(1260, ranks=2, threads=1, job=str(job)) for job in (1, 2)),
        {**failed(1260), "ranks": 2, "threads": 1},
    )
    found = records(site, "mod2am", "--kind", "weak")
    told = [(one["workers"], one["size"], one["runs"], one["verified"]) for one in found]
    assert told == [(1, 1000, 1, True), (2, 1260, 2, True), (2, 1260, 1, False)]
    assert found[1]["parallel_efficiency"] and found[2]["parallel_efficiency"] is None


def test_kind_can_be_chosen_where_both_are_there(site, results):
    results(*(line(size, ranks=ranks, threads=1) for size in (100, 1000) for ranks in (1, 2)))
    assert len(records(site, "mod2am")) == 4
    weak = records(site, "mod2am", "--kind", "weak")
    assert [(one["workers"], one["size"]) for one in weak] == [(1, 1000), (2, 1000)]


def test_nodes_and_ranks_scale_apart(site, results):
    """Four ranks on one node and on two are two results, of one N each."""
    spread = [(1, 1), (2, 1), (4, 1), (4, 2), (8, 2), (16, 4)]
    results(
        *(line(ranks=r, nodes=n, threads=1, time_s=1 / r + (n > 1)) for r, n in spread),
        line(ranks=32, nodes=3, threads=1),
    )
    found = records(site, "mod2am")
    sets = {}
    for one in found:
        sets.setdefault((one["worker"], one["ranks"] / one["nodes"]), []).append(one["nodes"])
    assert sets["nodes", 2.0] == [1, 2] and sets["nodes", 4.0] == [1, 2, 4]
    ranks = [(one["nodes"], one["workers"]) for one in found if one["worker"] == "ranks"]
    assert ranks == [(1, 1), (1, 2), (1, 4), (2, 4), (2, 8)]
    assert {one["runs"] for one in found} == {1}
    out = site.out("report", "scaling", "mod2am", "--format", "markdown")
    assert "4 ranks a node, 1 thr. a rank" in out and "1 thr. a rank, on 2 nodes" in out
    table = site.out("report", "table", "mod2am", "--format", "markdown")
    assert "4 ranks, " in table and "4 ranks on 2 nodes, " in table


def test_a_given_peak_is_of_one_rank_over_nodes_too(site, results):
    results(*(line(ranks=4 * n, nodes=n, threads=1, time_s=0.05 / n) for n in (1, 2)))
    found = records(site, "mod2am", "--peak", "20")
    assert {one["worker"] for one in found} == {"nodes"}
    assert ratios(found, "peak_fraction") == [0.5, 0.5]
    assert {one["peak_source"] for one in found} == {"20 GF/s of one of the ranks: given"}


def test_ranks_that_were_spread_otherwise_keep_their_own_nodes(site, results):
    spread = [(48, 1), (64, 2), (64, 4), (72, 5)]
    results(*(line(ranks=r, nodes=n, threads=1, time_s=1 / r) for r, n in reversed(spread)))
    found = records(site, "mod2am")
    assert {one["worker"] for one in found} == {"ranks"}
    assert [(one["ranks"], one["nodes"]) for one in found] == spread
    assert " nodes" not in site.out("report", "scaling", "mod2am", "--format", "markdown")


def test_one_rank_stands_with_ranks_of_unknown_nodes_too(site, results):
    earlier = [line(ranks=ranks, threads=1) for ranks in (1, 2, 4)]
    results(*earlier, *(line(ranks=ranks, nodes=1, threads=1) for ranks in (1, 2)))
    found = records(site, "mod2am")
    counts = [(one["workers"], one["nodes"], one["runs"]) for one in found]
    assert counts == [(1, 1, 2), (2, None, 1), (4, None, 1), (1, 1, 2), (2, 1, 1)]
    out = site.out("report", "scaling", "mod2am", "--format", "markdown")
    assert out.count("1 thr. a rank, nodes unknown, x86_64, A CPU") == 1
    assert out.count("1 thr. a rank, x86_64, A CPU") == 1


def test_threads_are_the_workers_where_all_have_one_rank(site, results):
    results(line(threads=1, time_s=0.1), line(threads=2, time_s=0.08))
    found = records(site, "mod2am")
    assert {one["worker"] for one in found} == {"threads"}
    assert ratios(found, "parallel_efficiency") == [1.0, 0.625]


def test_ranks_of_different_threads_are_different_series(site, results):
    results(*(line(ranks=ranks, threads=threads) for ranks in (1, 2) for threads in (1, 4)))
    assert len({(one["threads"]) for one in records(site, "mod2am")}) == 2
    out = site.out("report", "scaling", "mod2am", "--format", "markdown")
    assert "1 thr. a rank" in out and "4 thr. a rank" in out


def test_a_wrong_result_has_no_efficiency(site, results):
    results(line(ranks=1, threads=1), {**failed(1000), "ranks": 2, "threads": 1})
    found = records(site, "mod2am")
    assert ratios(found, "parallel_efficiency") == [1.0, None]
    out = site.out("report", "scaling", "mod2am", "--format", "markdown")
    assert markdown_rows(out)[-1] == ["2", "1000", "1", "failed", *"--", "failed", *"---"]


def test_energy_by_other_channels_than_the_first_line_s_is_marked(site, results):
    """More GPUs are more channels; but a node's second package may be idle in the first line."""
    results(
        *(
            line(ranks=ranks, threads=1, manifest=manifest(channels=channels))
            for ranks, channels in ((1, "gpu/0"), (2, "gpu/0"), (4, "gpu/0 gpu/1"))
        )
    )
    found = records(site, "mod2am")
    assert [one["other_instrument"] for one in found] == [False, False, True]
    assert ratios(found, "relative_energy_efficiency") == [1, 1, 1]
    out = site.out("report", "scaling", "mod2am", "--format", "markdown")
    rows = markdown_rows(out)
    column = rows[0].index("Energy eff. [%]")
    marked = [row[column].endswith("*") for row in rows if row[0] in ("1", "2", "4")]
    assert marked == [False, False, True]
    assert "*: by other channels" in out


def test_estimates_stay_marked(site, results):
    results(*(line(ranks=ranks, threads=1, estimated=True) for ranks in (1, 2)))
    out = site.out("report", "scaling", "mod2am", "--format", "markdown")
    assert "ESTIMATED by a model" in out and "\\~100" in out


def test_one_count_is_no_series(site, results):
    results(line(**UNKNOWN))
    why = "no size was measured with two counts of nodes, ranks or threads"
    assert why in site.refuses("report", "scaling", "mod2am")


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "no *.cooked.jsonl below FOLDER: name the place with --from"),
        ([line()], "KERNEL hydro: nothing was measured; there are: mod2am"),
        ([line(benchmark="hydro", kernel="hydro")], "KERNEL hydro: no size was measured with two"),
    ],
)
def test_published_series_alone_are_said_to_be_alone(site, results, lines, why):
    folder = results()
    if lines:
        results(*lines)
    else:
        (folder / "mod2am.1.cooked.jsonl").unlink()
    why = why.replace("FOLDER", str(folder))
    code, out, err = site.run("report", "scaling", "hydro", "--with", "LRZ")
    assert code == 0 and "LRZ" in out
    assert err.startswith(f"joulemark: nothing of this machine stands beside: {why}")
    assert site.refuses("report", "scaling", "hydro").startswith(f"joulemark: {why}")


# Parallel efficiency of the last line; energy efficiency of it, as a part of the first.
PUBLISHED = [
    ("linpack", "BSC-1", "nodes", "weak", 12, 200 / 224 / 1.1, 101 / 142),
    ("linpack", "LRZ", "nodes", "weak", 6, 2225 / 32 / 108, 218 / 326),
    ("linpack", "CaSToRC", "nodes", "weak", 8, 3035 / 8 / 103, 676 / 689),
    ("hydro", "CaSToRC", "nodes", "strong", 7, 201327 / 8 / 24399, 64.0 / 63.1),
    ("hydro", "LRZ", "nodes", "weak", 5, 122141 / 16 / 14204, 28.4 / 55.4),
    ("hydro", "BSC-1", "nodes", "weak", 8, 26432 / 192 / 236, 15.2 / 29.3),
    ("mod2am", "BSC-1", "nodes", "weak", 3, 2282 / 16 / 212, 16.1 / 23.1),
    ("triad", "UiO", "threads", "strong", 6, 472961 / 24 / 63452, 94.2 / 15.3),
]


@pytest.mark.parametrize(
    ("kernel", "name", "worker", "kind", "count", "speed", "joules"), PUBLISHED
)
def test_published_series(
    site, tmp_path, monkeypatch, kernel, name, worker, kind, count, speed, joules
):
    monkeypatch.setenv("JOULEMARK_RESULTS", str(tmp_path))
    found = records(site, kernel, "--with", name)
    assert len(found) == count
    assert {(one["worker"], one["scaling"]) for one in found} == {(worker, kind)}
    assert found[-1]["parallel_efficiency"] == pytest.approx(speed)
    assert found[-1]["relative_energy_efficiency"] == pytest.approx(joules)


def test_published_caveats_and_peaks_are_printed(site, results):
    results(line())
    words = ("linpack", "--with", "CaSToRC", "--format", "markdown")
    out = site.out("report", "scaling", *words)
    assert "by mistake" in out and "peak 1158 GF/s" in out and "rvitals" in out
    rows = markdown_rows(out)
    assert rows[0][0] == "Nodes" and rows[0][-1] == "Of peak [%]"
    assert float(rows[-1][-1]) == pytest.approx(100 * 3035 / 8 / 1158, abs=0.05)


def test_figures_are_drawn(site, results):
    results(*(line(ranks=ranks, threads=1) for ranks in (1, 2)))
    out = site.folder / "figures"
    _, _, err = site.run("report", "scaling", "mod2am", "--with", "BSC-1", "--plot", str(out))
    names = ["performance", "parallel-efficiency", "energy-efficiency", "power"]
    # BSC-1 was published over nodes, which are no ranks
    drawn = [f"{worker}-{name}" for worker in ("ranks", "nodes") for name in names]
    assert err.split() == [str(out / f"scaling-mod2am-{name}.png") for name in drawn]
    assert all(path.read_bytes().startswith(PNG_HEAD) for path in out.iterdir())


def test_each_unit_of_a_kernel_has_its_own_figures(site, results):
    units = {"F/s": "flop", "B/s": "byte"}
    results(
        *(
            line(ranks=ranks, threads=1, unit=unit, operation=operation, variant=operation)
            for unit, operation in units.items()
            for ranks in (1, 2)
        )
    )
    out = site.folder / "figures"
    _, _, err = site.run("report", "scaling", "mod2am", "--plot", str(out))
    drawn = [path for path in err.split() if path.endswith("-performance.png")]
    assert sorted(drawn) == [
        str(out / f"scaling-mod2am-{unit}_s-performance.png") for unit in "BF"
    ]


def test_workers_are_named_and_ticked_and_what_would_be_ideal_is_drawn(
    site, results, axes_of_figures, legends_of_figures
):
    results(*(line(threads=threads, time_s=1 / threads**0.8) for threads in (1, 2, 4, 8)))
    site.run("report", "scaling", "mod2am", "--plot", str(site.folder / "figures"))
    performance, efficiency, energy, _ = axes_of_figures
    for axes in (performance, efficiency, energy):
        assert axes.get_xlabel() == "Threads"
        first, last = axes.get_xlim()
        ticks = [tick.get_text() for tick in axes.get_xticklabels()]
        assert [text for text in ticks if first <= float(text) <= last] == ["1", "2", "4", "8"]
    dotted = [line for line in performance.lines if line.get_linestyle() == ":"]
    (ideal,) = (line.get_xydata() for line in dotted)
    assert len(ideal) > 10 and ideal[-1].tolist() == pytest.approx([8, 16])
    assert all(gigaflops == pytest.approx(2 * threads) for threads, gigaflops in ideal)
    assert [["ideal" in labels for labels in legends_of_figures]] == [[True, True, False, False]]


@pytest.mark.parametrize(
    ("counts", "shown"),
    [
        ((1, 2, 3, 6), [1, 2, 3, 6]),
        ((1, 2, 3, 4, 5, 6, 7, 8, 100, 101), [1, 2, 4, 8, 16, 32, 64]),  # 100 on 101
        ((1, 3, 1024), [1, 3, 1024]),
        ((*range(1, 13),), [1, 2, 4, 8]),
    ],
)
def test_ticks_of_workers_do_not_overlap(site, results, axes_of_figures, counts, shown):
    results(*(line(threads=count) for count in counts))
    site.run("report", "scaling", "mod2am", "--plot", str(site.folder / "figures"))
    for axes in axes_of_figures[:3]:
        first, last = axes.get_xlim()
        assert [tick for tick in axes.get_xticks() if first <= tick <= last] == shown


def test_the_published_source_and_long_sizes_are_said(
    site, results, texts_on_figures, legends_of_figures
):
    results()
    words = ("report", "scaling", "triad", "--with", "UiO", "--plot")
    site.run(*words, str(site.folder / "figures"))
    assert texts_on_figures and legends_of_figures
    assert all(model.PUBLISHED in texts for texts in texts_on_figures)
    assert all(legend[0].endswith("strong, size 60 G") for legend in legends_of_figures)


def test_of_points_that_were_measured_none_passes_for_an_estimate(site, results, axes_of_figures):
    """Nor the other way round, whichever comes first."""
    results(line(ranks=1, threads=1), line(ranks=2, threads=1, estimated=True))
    rows = site.out("report", "scaling", "mod2am").splitlines()
    first, other = (next(row for row in rows if row.startswith(f"{count} ")) for count in (1, 2))
    assert "~" not in first and "~100 ± " in other
    site.run("report", "scaling", "mod2am", "--plot", str(site.folder / "figures"))
    (energy,) = (line for line in axes_of_figures[2].lines)
    assert energy.get_markerfacecolor() == "white"


def test_a_long_label_leaves_room_for_the_axes(site, results, axes_of_figures):
    cpu = "Intel(R) Xeon(R) Platinum 8480+ with words that a firmware might have put there, " * 2
    results(*(line(threads=threads, cpu=cpu, estimated=True) for threads in (1, 2)))
    site.run("report", "scaling", "mod2am", "--plot", str(site.folder / "figures"))
    for axes in axes_of_figures:
        assert axes.get_window_extent().width > axes.figure.bbox.width / 2


def test_ratios_have_their_errors(site, results):
    times = {1: (0.99, 1.0, 1.01), 2: (0.594, 0.6, 0.606)}
    results(*(line(threads=count, time_s=one) for count, found in times.items() for one in found))
    out = site.out("report", "scaling", "mod2am")
    (row,) = (one for one in out.splitlines() if one.startswith("2 "))
    assert re.search(r" 83\.3 ± 1\.89 ", row), out
    (*_, record) = json.loads(site.out("report", "scaling", "mod2am", "--format", "json"))
    relative = 2.776 * 0.01 / math.sqrt(3)  # Student's t of four degrees
    assert record["parallel_efficiency_error"] == pytest.approx(
        record["parallel_efficiency"] * relative * math.sqrt(2), rel=0.01
    )


def test_lines_that_are_estimated_say_so_and_no_others(site, results, legends_of_figures):
    results(*(line(threads=count, estimated=True) for count in (1, 2)))
    results(*(line(threads=count, variant="plain") for count in (1, 2)), name="b.cooked.jsonl")
    site.run("report", "scaling", "mod2am", "--plot", str(site.folder / "figures"))
    said = [[label for label in labels if label != "ideal"] for labels in legends_of_figures]
    names = [f"{name}, x86_64, A CPU, strong, size 1000" for name in ("blas", "plain")]
    of_energy = [f"{names[0]} (estimated)", names[1]]
    assert said == [names, names, of_energy, of_energy]


def test_estimates_are_said_on_the_figure(site, results, texts_on_figures):
    results(*(line(ranks=ranks, threads=1, estimated=True) for ranks in (1, 2)))
    site.run("report", "scaling", "mod2am", "--plot", str(site.folder / "figures"))
    of_energy = [model.HOLLOW in texts for texts in texts_on_figures]
    assert of_energy == [False, False, True, True]  # energy and power
