# `joulemark compare`: this machine beside the published prototypes, their peaks and caveats.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import csv
import io
import json
import math
import re

import pytest
from cooked_lines import PNG_HEAD, UNKNOWN, failed, line, markdown_rows
from joulemark.bench import compare, cooked, fpga, peaks, published, stats
from joulemark.plots import model


def rows(site, *arguments):
    return json.loads(site.out("compare", *arguments, "--format", "json"))


def test_machine_stands_beside_the_prototypes(site, results):
    results(line(100), line(1000))
    out = site.out("compare", "mod2am", "--with", "LRZ,SNIC", "--format", "markdown")
    heads, _, *body = markdown_rows(out)[: 2 + 17 + 1]
    assert heads == ["Size", "blas, 2 thr.", "LRZ", "SNIC"]
    by_size = {row[0]: row[1:] for row in body}
    assert by_size["100"] == ["40.0", "6505", "289"]
    assert by_size["1000"] == ["40000", "3219", "275"]
    assert by_size["20000"] == ["-", "2079", "-"]
    assert "mod2am: fraction of peak [%]" in out and "mod2am: energy efficiency [MF/J]" in out


FILES = {"benchmark": "jm-io-bandwidth", "unit": "B/s"}


def test_files_stand_beside_the_storage_prototypes(site, results):
    """Tables 30 to 32: of CEA joules without seconds, of FZJ seconds without joules."""
    kernels = ("shared-write", "own-read")
    results(*(line(1 << 26, kernel=kernel, **FILES) for kernel in kernels))
    found = rows(site, "jm-io-bandwidth", "--with", "CEA,FZJ")
    sides = {(one["family"], one["side"]): one for one in found}
    assert sides["shared-write", "CEA CS3000"]["efficiency"] == pytest.approx(2.76e6)
    assert sides["shared-write", "CEA CS6000"]["efficiency"] == pytest.approx(3.69e6)
    assert sides["shared-write", "CEA CS6000"]["performance"] is None
    assert sides["shared-write", "FZJ"]["performance"] == pytest.approx(1929e6)
    assert sides["own-read", "FZJ"]["performance"] == pytest.approx(13056e6)
    assert sides["chunks-read", "FZJ"]["performance"] == pytest.approx(12379e6)
    assert "storage unit alone" in sides["shared-write", "CEA CS3000"]["caveats"]
    assert {one["family"] for one in found if one["origin"] == "here"} == set(kernels)
    shown = site.out("compare", "own-read", "--with", "FZJ", "--format", "markdown")
    assert "own-read: performance" in shown and "shared" not in shown.partition("table")[0]


SCHOENAUER = {"benchmark": "triad", "kernel": "packed", "unit": "F/s"}


def test_schoenauer_s_triad_does_not_stand_beside_stream_s(site, results):
    """Operations beside bytes, on one axis: 673 % of a peak, which was the memory's."""
    results(line(1000, **SCHOENAUER))
    found = rows(site, "triad", "--with", "LRZ,SNIC")
    assert {one["performance_unit"] for one in found} == {"F/s"}
    site.leave(1)
    site.out("merge")
    page = site.out("report", "html", "--from", str(site.folder / "results"))
    assert "triad-benchmark: performance" in page and "STREAM" not in page and "SNIC" not in page
    drawn = site.out("report", "plot", "triad", "--with", "LRZ", "--out", str(site.folder))
    paths = drawn.splitlines()
    assert paths and all("/triad-packed-" in path for path in paths)


def test_two_triads_have_tables_of_their_own(site, results):
    stream = {"benchmark": "jm-stream", "kernel": "triad", "unit": "B/s"}
    results(line(1000, **SCHOENAUER), line(1000, **stream))
    found = rows(site, "triad", "--with", "LRZ")
    units = {}
    for one in found:
        units.setdefault(one["family"], set()).add(one["performance_unit"])
    assert units == {"triad": {"B/s"}, "triad-benchmark": {"F/s"}}


def test_fraction_and_efficiency_are_those_of_the_tables(site, results):
    results(line(1000))
    found = rows(site, "mod2am", "--with", "SNIC", "--peak", "80")
    (here,) = [one for one in found if one["origin"] == "here"]
    assert here["peak_fraction"] == pytest.approx(0.5)
    assert here["efficiency"] == pytest.approx(400e6)
    (dsp,) = [one for one in found if one["side"] == "SNIC" and one["size"] == 1000]
    assert dsp["peak_fraction"] == pytest.approx(275e6 / 40e9)
    assert dsp["efficiency"] == pytest.approx(42.4e6)
    assert here["verified"] is True and dsp["verified"] is None
    assert "chip: DSP cores and DRAM" in dsp["caveats"] and "one core of eight" in dsp["caveats"]


def test_figures_of_this_machine_have_their_interval_and_the_instrument_s(site, results):
    results(*(line(time_s=time_s) for time_s in (0.0495, 0.05, 0.0505)))
    out = site.out("compare", "mod2am", "--with", "SNIC", "--peak", "80", "--format", "markdown")
    performance, fraction, efficiency = [row for row in markdown_rows(out) if row[0] == "1000"]
    interval = 4.303 * 0.01 / math.sqrt(3)  # of the mean, Student's t of two degrees
    assert performance == ["1000", f"40.0 ± {40 * interval:.2f}", "0.28"]
    assert fraction[1] == f"50.0 ± {50 * interval:.2f}"
    assert efficiency[1] == f"400 ± {400 * math.hypot(interval, 0.04):.1f}"
    assert "±: at 95 %, by Student's t over the jobs and by the instrument" in out
    (here,) = [
        one
        for one in rows(site, "mod2am", "--with", "SNIC", "--peak", "80")
        if one["origin"] == "here"
    ]
    assert here["peak_fraction_error"] == pytest.approx(0.5 * interval, rel=1e-3)


def test_a_table_with_errors_is_no_wider_than_a_line(site, results):
    times = (0.0495, 0.05, 0.0505)
    threads = (dict(time_s=time_s, threads=count) for count in range(1, 13) for time_s in times)
    results(*(line(size, **one) for one in threads for size in (10, 1000)))
    rows = site.out("compare", "mod2am", "--with", "LRZ,SNIC").splitlines()
    assert " 40.0 ± 0.99 kF/s " in " ".join(rows)
    assert max(len(row) for row in rows if row.startswith("10 ")) <= 132


def test_one_rank_of_an_earlier_program_was_on_one_node(site, results):
    results(line(1000), line(1000, nodes=1))
    (here,) = [one for one in rows(site, "mod2am", "--with", "SNIC") if one["origin"] == "here"]
    assert (here["runs"], here["nodes"]) == (2, 1)
    results(line(1000, nodes=1), line(1000, benchmark="hpl", kernel="linpack"))
    (here,) = [one for one in rows(site, "mod2am", "--with", "SNIC") if one["origin"] == "here"]
    assert "the best measured" in here["peak_source"]


def test_sides_of_unknown_nodes_have_columns_and_names_of_their_own(site, results):
    results(line(1000, ranks=4), line(1000, time_s=0.1, ranks=4, nodes=1))
    out = site.out("compare", "mod2am", "--with", "SNIC", "--format", "markdown")
    heads, *body = markdown_rows(out)
    names = ["blas, 2 thr., 4 ranks, nodes unknown", "blas, 2 thr., 4 ranks"]
    assert heads == ["Size", *names, "SNIC"]
    assert next(row for row in body if row[0] == "1000")[1:] == ["40.0", "20.0", "0.28"]


def test_sides_that_differ_in_target_alone_share_neither_name_nor_cell(site, results):
    results(line(1000), line(1000, time_s=0.1, target="aarch64"))
    out = site.out("compare", "mod2am", "--with", "SNIC", "--format", "markdown")
    heads, *rows = markdown_rows(out)
    row = next(row for row in rows if row[0] == "1000")
    assert sorted(row[1:]) == ["0.28", "20.0", "40.0"]
    assert sorted(heads[1:3]) == ["blas, 2 thr., aarch64", "blas, 2 thr., x86_64"]


def test_sides_of_other_kernels_or_hosts_have_names_of_their_own(site, results):
    gpu = {"device": "A GPU"}
    results(line(1000, **gpu), line(1000, cpu="B CPU", **gpu), line(1000, kernel="mod2am2", **gpu))
    out = site.out("compare", "mod2am", "--with", "SNIC", "--format", "markdown")
    heads = markdown_rows(out)[0][1:]
    assert "blas, 2 thr., mod2am, B CPU" in heads and len(set(heads)) == 4


def test_what_was_measured_and_what_is_wrong_is_printed(site, results):
    results(line(1000, **UNKNOWN))
    out = site.out("compare", "mod2am", "--with", "PSNC-IB,LRZ", "--format", "markdown")
    assert "here: no energy was measured" in out
    assert "PSNC-IB: peak 111 GF/s: table 4: without turbo" in out
    assert "ACML, which is made for AMD" in out
    assert "LRZ: table 64: Power only for the sizes in the middle" in out
    assert "caution" in out


def test_wrong_results_stay_out(site, results):
    results(line(100), failed(200))
    out = site.out("compare", "mod2am", "--with", "SNIC", "--format", "markdown")
    row = next(row for row in markdown_rows(out) if row[0] == "200")
    assert row[1:] == ["-", "290"]


def test_the_published_stand_alone_where_nothing_was_measured(site, tmp_path, monkeypatch):
    monkeypatch.setenv("JOULEMARK_RESULTS", str(tmp_path))
    assert {one["origin"] for one in rows(site, "hydro", "--with", "LRZ,BSC-1")} == {"published"}
    code, _, err = site.run("compare", "hydro", "--with", "LRZ", "--from", str(tmp_path))
    assert code == 2 and "no *.cooked.jsonl" in err


def test_unknown_names_are_refused(site, results):
    results(line())
    code, _, err = site.run("compare", "mod2am", "--with", "KTH")
    assert code == 2 and "no such prototype; table 21 has BSC-1, CaSToRC" in err
    assert "nothing was published of LRZ" in site.refuses("compare", "qcd", "--with", "LRZ")


@pytest.mark.parametrize("kernel", ["copy", "scale", "sum", "triad"])
def test_stream_largest_vectors_are_those_of_table_24(site, kernel, monkeypatch, tmp_path):
    monkeypatch.setenv("JOULEMARK_RESULTS", str(tmp_path))
    found = rows(site, kernel, "--with", "LRZ,SNIC,UiO")
    summary = {
        figure.prototype: figure.value
        for figure in published.figures()
        if (figure.table, figure.kernel, figure.quantity) == (24, kernel, "performance")
    }
    for name in ("LRZ", "SNIC", "UiO"):
        largest = max((one for one in found if one["side"] == name), key=lambda one: one["size"])
        assert largest["performance"] == pytest.approx(summary[name])


def test_dhrystones_are_passes_as_ours_are(site, results):
    passes = {"benchmark": "dhrystone", "kernel": "dhrystone", "unit": "pass/s"}
    results(line(1, variant="serial", **passes))
    found = rows(site, "dhrystone", "--with", "BSC-1")
    assert [one["family"] for one in found] == ["dhrystone"] * 2
    assert found[1]["performance"] == pytest.approx(2466 * 1757)


def test_transforms_count_operations_in_their_own_way(site, results):
    results(line(1 << 16, benchmark="mod2f", kernel="mod2f"))
    out = site.out("compare", "mod2f", "--with", "LRZ", "--format", "markdown")
    assert "here: mod2f counts 5 n log2 n" in out and "LRZ: table 66: Operations are n (6" in out


def test_csv_has_what_json_has(site, results):
    results(line(1000))
    out = site.out("compare", "mod2am", "--with", "SNIC", "--format", "csv")
    read = list(csv.DictReader(io.StringIO(out)))
    assert [one["side"] for one in read] == ["blas, 2 thr."] + ["SNIC"] * 7
    assert float(read[-1]["performance"]) == pytest.approx(275e6)


def test_figures_are_drawn(site, results):
    results(line(100), line(1000))
    out = site.folder / "figures"
    _, _, err = site.run("compare", "mod2am", "--with", "LRZ,SNIC,JKU", "--plot", str(out))
    names = ["performance", "efficiency", "energy-efficiency"]
    assert err.split() == [str(out / f"compare-mod2am-{name}.png") for name in names]
    assert all(path.read_bytes().startswith(PNG_HEAD) for path in out.iterdir())


def test_lines_that_are_estimated_say_so_and_no_others(site, results, legends_of_figures):
    results(*(line(size, estimated=True) for size in (100, 1000)), line(variant="plain"))
    site.run("compare", "mod2am", "--with", "SNIC,JKU", "--plot", str(site.folder / "figures"))
    names = ["blas, 2 thr.", "plain, 2 thr.", "SNIC", "JKU 49@100 (model)"]
    estimated = ["blas, 2 thr. (estimated)", *names[1:]]
    assert legends_of_figures == [names, names, estimated]


def test_estimates_are_said_on_the_figure(site, results, texts_on_figures):
    results(line(100, estimated=True), line(1000, estimated=True))
    site.run("compare", "mod2am", "--with", "SNIC", "--plot", str(site.folder / "figures"))
    assert [model.HOLLOW in texts for texts in texts_on_figures] == [
        False,
        False,
        True,
    ]  # of energy


@pytest.mark.parametrize(("kernel", "is_of_memory"), [("triad", True), ("mod2am", False)])
def test_a_part_of_the_memory_s_peak_is_said_to_be_that(
    site, results, texts_on_figures, kernel, is_of_memory
):
    """What a cache holds goes beyond it."""
    results(line())
    words = ("compare", kernel, "--with", "LRZ,UiO", "--plot", str(site.folder / "figures"))
    assert (compare.OF_MEMORY in " ".join(site.out(*words).split())) == is_of_memory
    said = [compare.OF_MEMORY in texts for texts in texts_on_figures]
    assert said == [False, is_of_memory, False]


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("mod2am", ("compare", "--plot")),
        ("jm-stream", ("report", "plot", "--out")),
        ("hydro", ("report", "scaling", "--plot")),
    ],
    ids=lambda value: value if isinstance(value, str) else value[-2],
)
def test_a_name_looks_the_same_in_all_figures(site, results, axes_of_figures, kernel, words):
    """Whichever of the lines before it has no energy."""
    *command, out = words
    first = {"variant": "a", "benchmark": kernel, "kernel": kernel, **UNKNOWN}
    first["unit"] = "U/s" if kernel == "hydro" else "F/s"
    results(*(line(ranks=nodes, nodes=nodes, **first) for nodes in (1, 2)), line())
    others = {"hydro": "BSC-1,CaSToRC,LRZ"}.get(kernel, "CaSToRC,PSNC-LL,LRZ,PSNC-BR,SNIC,UiO,JKU")
    site.out(*command, kernel, "--with", others, out, str(site.folder / "figures"))
    looks: dict[str, set] = {}
    for axes in axes_of_figures:
        of_figure = {
            re.sub(r" \((estimated|table \d+)\)", "", one.get_label()): (
                one.get_color(),
                one.get_marker(),
                one.get_linestyle(),
            )
            for one in axes.lines
            if not one.get_label().startswith("_")
        }
        assert len(set(of_figure.values())) == len(of_figure)
        for name, look in of_figure.items():
            looks.setdefault(name, set()).add(look)
    assert len(axes_of_figures) > 2 and len(looks) > 3
    assert all(len(found) == 1 for found in looks.values()), looks


# -- the multiplier's model ----------------------------------------------------------------------


def test_model_gives_table_25_back():
    tiles = {}
    for figure in published.figures():
        if figure.table == 25:
            tiles.setdefault(figure.threads, {})[figure.quantity] = figure.value
    size = fpga._fit().size
    for count, row in tiles.items():
        model = fpga.Multiplier(count, 250e6)
        assert model.time_s(size) == pytest.approx(row["time"], abs=0.5e-3)
        power = row["static_power"] + row["dynamic_power"]
        assert model.power_w() == pytest.approx(power, rel=0.02)


def test_model_is_marked_everywhere(site, results):
    results(line(1000))
    found = rows(site, "mod2am", "--with", "JKU,JKU:64@400")
    models = {one["side"]: one for one in found if one["origin"] == "model"}
    assert set(models) == {"JKU 49@100 (model)", "JKU 64@400 (model)"}
    assert all("a MODEL" in one["caveats"] and one["estimated"] for one in models.values())
    out = site.out("compare", "mod2am", "--with", "JKU", "--format", "markdown")
    assert "JKU 49@100 (model)" in out and "predicted or estimated by a model" in out
    row = next(row for row in markdown_rows(out) if row[0] == "2000")
    assert row[2] == "\\~9.80"


def test_model_s_options_are_judged(site, results):
    results(line())
    assert "JKU:TILES@MHZ" in site.refuses("compare", "mod2am", "--with", "JKU:0@100")


def test_prototypes_alone_are_said_to_be_alone(site, results):
    folder = results(line())
    assert site.run("compare", "mod2am", "--with", "LRZ")[2] == ""
    (folder / "mod2am.1.cooked.jsonl").unlink()
    code, out, err = site.run("compare", "mod2am", "--with", "LRZ")
    assert code == 0 and "LRZ" in out
    why = f"no *.cooked.jsonl below {folder}: name the place with --from"
    assert err == f"joulemark: nothing of this machine stands beside: {why}\n"


# -- peaks ---------------------------------------------------------------------------------------


def measurement(**changes):
    return cooked.parse(json.dumps(line(**changes)))


def peak_of(measured, given=None, wanted="auto"):
    (series,) = stats.series_of([measured[0]], measured[0].kernel)
    return peaks.of_machine(series, measured, given or {}, wanted)


@pytest.fixture
def cpuinfo(tmp_path, monkeypatch):
    """What /proc/cpuinfo would be; there is none."""
    monkeypatch.setattr(peaks, "CPUINFO", tmp_path / "cpuinfo")
    peaks.this_node.cache_clear()
    yield tmp_path / "cpuinfo"
    peaks.this_node.cache_clear()


@pytest.mark.usefixtures("cpuinfo")
def test_peak_of_a_known_processor():
    cpu = "AMD Opteron(tm) Processor 6128 HE"
    found = peak_of([measurement(cpu=cpu, threads=16)])
    assert found.value == pytest.approx(published.prototypes()["LRZ"].peak)
    assert "2 sockets assumed" in found.source and "table 4" in found.source
    stream = {"benchmark": "jm-stream", "kernel": "triad", "unit": "B/s"}
    found = peak_of([measurement(cpu=cpu, threads=16, **stream)])
    assert found.value == pytest.approx(published.prototypes()["LRZ"].bandwidth, rel=1e-3)


def test_cores_are_counted_where_the_processor_is_this_one(cpuinfo):
    model = "model name\t: AMD EPYC 7763 64-Core\n"
    cores = (f"{model}physical id\t: {core % 2}\ncore id\t: {core}\n\n" for core in range(6))
    cpuinfo.write_text("".join(cores))
    found = peak_of([measurement(cpu="AMD EPYC 7763 64-Core")])
    assert found.value == pytest.approx(6 * 2.45e9 * 16) and "as many as here" in found.source


OPTERON = {"cpu": "AMD Opteron(tm) Processor 6128 HE", "threads": 1}  # 8 cores, 64 GF/s


@pytest.mark.usefixtures("cpuinfo")
@pytest.mark.parametrize(("given", "node"), [((), 128e9), (("--peak", "160"), 160e9)])
def test_the_peak_of_several_nodes_is_that_of_them_all(site, results, given, node):
    """Each node's 16 ranks reach 100 GF/s."""
    results(
        *(line(time_s=0.02 / n, ranks=16 * n, nodes=n, **OPTERON) for n in (1, 2, 4)),
        line(time_s=0.08, ranks=4, nodes=1, variant="plain", **OPTERON),
    )
    found = rows(site, "mod2am", "--with", "SNIC", *given)
    parts = {one["ranks"]: one["peak_fraction"] for one in found if one["origin"] == "here"}
    expected = dict.fromkeys((16, 32, 64), 100e9 / node)
    assert parts == pytest.approx({**expected, 4: 25e9 / (node if given else 64e9)})
    out = site.out("compare", "mod2am", "--with", "SNIC", *given)
    assert f"here: peak {4 * node / 1e9:.4g} GF/s: 4 nodes x {node / 1e9:g} GF/s: " in out


@pytest.mark.usefixtures("cpuinfo")
def test_of_ranks_that_do_not_tell_their_nodes_no_peak_is_known(site, results):
    results(line(ranks=64, **OPTERON))
    for given in ("--peaks=table", "--peak=160"):
        found = rows(site, "mod2am", "--with", "SNIC", "--peaks=table", given)
        (here,) = [one for one in found if one["origin"] == "here"]
        assert (here["peak"], here["peak_fraction"]) == (None, None)
    out = " ".join(site.out("compare", "mod2am", "--with", "SNIC", "--peaks=table").split())
    assert "here: peak of blas, 1 thr., 64 ranks, nodes unknown: not known" in out
    assert "the best measured" in site.out("compare", "mod2am", "--with", "SNIC")


def test_a_given_peak_that_is_of_no_run_here_is_not_passed_over_in_silence(site, results):
    results(line(ranks=64, **OPTERON), line(ranks=16, nodes=1, **OPTERON))
    words = ("compare", "mod2am", "--with", "SNIC")
    assert site.run(*words)[2] == ""
    for_one = "--peak: not used for blas, 1 thr., 64 ranks, nodes unknown: it is of a node, and "
    (said,) = site.run(*words, "--peak", "160", "--format", "csv")[2].splitlines()
    assert said.startswith(f"joulemark: {for_one}its ranks did not tell")
    said = site.run(*words, "--peak-bandwidth", "80")[2]
    assert said == "joulemark: --peak-bandwidth: nothing of this machine is in B/s\n"


@pytest.mark.parametrize(("ranks", "nodes", "times"), [(1, 1, 1), (4, 4, 4), (4, 1, None)])
def test_gpus_are_as_many_as_nodes_or_not_known(ranks, nodes, times):
    found = peak_of([measurement(device="NVIDIA H200", ranks=ranks, nodes=nodes)], wanted="table")
    assert (found and found.value) == (times and times * 67e12)


def test_more_threads_than_here_were_on_more_sockets(cpuinfo):
    cpu = "AMD EPYC 7763 64-Core"
    cpuinfo.write_text(f"model name\t: {cpu}\nphysical id\t: 0\ncore id\t: 0\n\n" * 2)
    found = peak_of([measurement(cpu=cpu, threads=2)])
    assert found.value == pytest.approx(2.45e9 * 16) and "as many as here" in found.source
    found = peak_of([measurement(cpu=cpu, threads=1, ranks=128, nodes=1)])
    assert found.value == pytest.approx(128 * 2.45e9 * 16) and "2 sockets" in found.source


def test_peak_is_the_best_measured_of_an_unknown_processor():
    runs = [measurement(size=100), measurement(size=1000, time_s=0.01, variant="blas")]
    found = peak_of(runs)
    assert found.value == pytest.approx(200e9)
    assert "the best measured, mod2am blas, size 1000" in found.source
    assert peak_of(runs, wanted="table") is None
    assert peak_of(runs, {"F/s": 1e12}).source == "1000 GF/s: given on the command line"


def test_bandwidth_is_measured_with_the_longest_vectors():
    stream = {"benchmark": "jm-stream", "kernel": "copy", "unit": "B/s"}
    cached = measurement(size=1000, time_s=1e-3, **stream)
    longest = measurement(size=2000, time_s=1.0, **stream)
    assert peak_of([cached, longest]).value == pytest.approx(longest.performance)


def test_device_has_its_own_peak():
    found = peak_of([measurement(device="NVIDIA H200")])
    assert found.value == 67e12 and "tensor cores https://" in found.source


def test_every_row_of_the_table_has_a_source_that_can_be_looked_up():
    for row in published.rows_of("processors.csv"):
        assert "PRACE-1IP D9.3.3" in row["source"] or row["address"].startswith("http"), row
        assert bool(row["peak_giga"]) != bool(row["cores"]), row
        for address in row["address"].split():
            assert re.fullmatch(r"https?://[\w./%-]+", address), row


def test_a_device_without_a_bandwidth_has_what_was_measured():
    stream = {"benchmark": "jm-stream", "kernel": "triad", "unit": "B/s"}
    found = peak_of([measurement(device="Tesla V100-SXM2-16GB", **stream)])
    assert "the best measured" in found.source
