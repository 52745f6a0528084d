# `joulemark export thicket|reframe|benchpark`: what is read back is what was measured. The
# programs themselves read it in tests/long/test_exports.py.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import collections
import io
import json
import math
import sqlite3

import cooked_lines
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joulemark.bench import cooked
from joulemark.bench.export import benchpark, figures, reframe, thicket
from joulemark.bench.manifest import Manifest
from joulemark.commands.export import thicket as command

START = "2026-01-31T12:00:00+00:00"
NAMES = st.sampled_from(["mod2am", "triad", "a,b=c\\", "\nn", "", "é {}"])
AMOUNTS = st.floats(cooked.LEAST, cooked.MOST)
KNOWN = ("time_s", "time_spread_s", "operations", "performance")
OF_ENERGY = ("energy_j", "energy_uncertainty_j", "power_w")


def measurement(**changes):
    """A run of a job, as `load` has it."""
    told = {"nodes": 1, "node": "n12", "job": "7", "start": START}
    line = {**cooked_lines.line(), **told, "manifest": cooked_lines.manifest(), **changes}
    return cooked.parse(json.dumps(line))


@st.composite
def runs(draw):
    """Of several kernels, right and wrong, with an energy that was measured, estimated or not."""
    found = []
    for _ in range(draw(st.integers(1, 6))):
        texts = {key: draw(NAMES) for key in ("benchmark", "kernel", "variant", "cpu", "node")}
        counts = {key: draw(st.integers(1, 3)) for key in ("size", "ranks", "nodes")}
        numbers = {key: draw(AMOUNTS) for key in KNOWN}
        energies = {key: draw(st.none() | AMOUNTS) for key in OF_ENERGY}
        changes = {**texts, **counts, **numbers, **energies, "estimated": draw(st.booleans())}
        made = cooked_lines.manifest(version=draw(st.sampled_from(["0.1.0", "0.2.0"])))
        failure = draw(st.sampled_from([{}, {}, cooked_lines.FAILED, {"verified": False}]))
        found.append(measurement(**{**changes, "manifest": made, **failure}))
    return found


def bag(found):
    """Whatever their order."""
    return collections.Counter(repr(one) for one in found)


def expected(measurements, one_of):
    """Of each run what one_of says, its verdict, its figures and where its energy is from."""
    return bag(
        (
            *(getattr(one, key) for key in one_of),
            one.verified,
            values(figures.figures(one)),
            source(one),
        )
        for one in measurements
    )


def source(one):
    if one.energy_j is None:
        return ""
    return "estimated" if one.estimated else "measured"


def values(found):
    return {each.name: each.value for each in found}


# -- figures --------------------------------------------------------------------------------------


def test_figures_are_si_and_named_as_in_our_csv():
    found = {each.name: (each.unit, each.value) for each in figures.figures(measurement())}
    assert found == {
        "time_s": ("s", 0.05),
        "time_spread_s": ("s", 0.0005),
        "operations": ("F", 2e9),
        "performance": ("F/s", 4e10),
        "energy_j": ("J", 5.0),
        "energy_uncertainty_j": ("J", 0.2),
        "power_w": ("W", 100.0),
        "efficiency": ("F/J", 4e8),
    }


@settings(max_examples=40)
@given(runs())
def test_a_wrong_result_has_no_figure(found):
    for one in found:
        assert one.verified or not figures.figures(one)


# -- Thicket --------------------------------------------------------------------------------------


def profile(text):
    """A .cali file as Caliper's own reader has it: globals, and the metrics of each path."""
    caliperreader = pytest.importorskip("caliperreader")
    reader = caliperreader.CaliperReader()
    reader.read(io.StringIO(text))
    paths = {}
    for record in reader.records:
        path = tuple(record.pop("path"))
        del record["region"]
        assert path not in paths
        assert all(reader.attribute(name).is_value() for name in record)
        paths[path] = {name: float(value) for name, value in record.items()}
    return reader.globals, paths


@settings(max_examples=40)
@given(runs())
def test_a_profile_has_what_was_measured(found):
    read = []
    for _, text in thicket.files(found):
        metadata, paths = profile(text)
        benchmark = metadata.get("application_name", "")
        root = paths.pop((benchmark,))
        for path, metrics in [*paths.items(), *([((benchmark,), root)] if root else [])]:
            assert path[0] == benchmark
            is_verified = bool(metrics.pop("verified"))
            told = {0: "measured", 1: "estimated", None: ""}[metrics.pop("estimated", None)]
            if "sum#time.duration" in metrics:
                metrics = {"time_s": metrics.pop("sum#time.duration"), **metrics}
            variant, size = metadata.get("variant", ""), int(metadata["problem_size"])
            read.append((benchmark, path[-1], variant, size, is_verified, metrics, told))
    assert bag(read) == expected(found, ("benchmark", "kernel", "variant", "size"))


def test_metadata_is_by_adiak_s_names():
    one = measurement(ranks=4, nodes=2, node="n12.site", estimated=True)
    [(_, text)] = thicket.files([one])
    found, _ = profile(text)
    assert {
        key: found[key] for key in ("cluster", "hostname", "jobsize", "numhosts", "jobid")
    } == {
        **{"cluster": "n", "hostname": "n12.site", "jobsize": "4", "numhosts": "2", "jobid": "7"}
    }
    assert (found["compiler"], found["flags"]) == ("GNU 12.2.0", "-O2 -march=native")
    assert (found["performance_unit"], found["efficiency_unit"]) == ("F/s", "F/J")
    assert (found["energy_source"], found["launchdate"]) == ("estimated", "1769860800")
    assert "spack_hash" not in found  # nobody told
    assert all(key in command.EPILOG for key in Manifest._fields)


def test_kernels_of_a_run_are_a_tree_and_a_second_run_is_another_profile():
    stream = {"benchmark": "jm-stream", "unit": "B/s"}
    kernels = [measurement(**stream, kernel=kernel) for kernel in ("copy", "triad")]
    found = [profile(text)[1] for _, text in thicket.files([*kernels, *kernels])]
    tree = {("jm-stream",), ("jm-stream", "copy"), ("jm-stream", "triad")}
    assert [set(paths) for paths in found] == [tree, tree]


# -- ReFrame --------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(runs())
def test_a_session_has_what_was_measured(found):
    session = json.loads(json.dumps(reframe.report(found)))
    assert not set("{}") & set("".join(map(str, session["session_info"].values())))
    [run] = session["runs"]
    read = []
    for case in run["testcases"]:
        is_verified = case["result"] == "pass"
        assert (case["fail_phase"], case["fail_reason"]) == (
            (None, None) if is_verified else ("sanity", figures.FAILURE)
        )
        figures_read = {name.split(":")[-1]: told[0] for name, told in case["perfvalues"].items()}
        problem = (case["benchmark"], case["kernel"], case["variant"], case["size"])
        read.append((*problem, is_verified, figures_read, case["energy_source"]))
    assert bag(read) == expected(found, ("benchmark", "kernel", "variant", "size"))
    assert run["num_failures"] == sum(not one.verified for one in found)


def test_an_estimate_s_unit_says_so():
    [case] = reframe.report([measurement(estimated=True)])["runs"][0]["testcases"]
    units = {name.split(":")[-1]: told[4] for name, told in case["perfvalues"].items()}
    assert (units["energy_j"], units["efficiency"]) == ("J (estimated)", "F/J (estimated)")
    assert (units["time_s"], units["performance"]) == ("s", "F/s")


def test_a_session_is_stored_once(site, results):
    results(cooked_lines.line(), cooked_lines.failed(2000))
    database = str(site.folder / "results.db")
    words = ("export", "reframe", "--database", database)
    session = site.out(*words)
    assert site.out(*words) == session
    with sqlite3.connect(database) as stored:
        assert stored.execute("SELECT uuid FROM sessions").fetchall() == [(session.strip(),)]
        assert stored.execute("SELECT count(*) FROM testcases").fetchone() == (2,)
    results(cooked_lines.line(), name="other.cooked.jsonl")
    assert site.out(*words) != session
    with sqlite3.connect(database) as stored:
        assert stored.execute("SELECT count(*) FROM sessions").fetchone() == (2,)


def test_another_database_is_left_alone(site, results):
    results(cooked_lines.line())
    text, other = site.folder / "text", site.folder / "other.db"
    text.write_text("no database, of more than a hundred bytes" * 9)
    assert f"--database {text}: file is not a database" in site.refuses(
        *("export", "reframe", "--database", str(text))
    )
    with sqlite3.connect(other) as stored:
        stored.execute("CREATE TABLE metadata(schema_version TEXT)")
        stored.execute("INSERT INTO metadata VALUES ('9.0')")
    foreign = site.folder / "foreign.db"
    with sqlite3.connect(foreign) as stored:
        stored.execute("CREATE TABLE theirs(x TEXT)")
    assert "no table metadata" in site.refuses("export", "reframe", "--database", str(foreign))
    assert "schema_version 9.0" in site.refuses("export", "reframe", "--database", str(other))


# -- Benchpark ------------------------------------------------------------------------------------


def workspaces(found, scaling="throughput"):
    """Of each workspace its profiles and its results."""
    made = {}
    for path, text in benchpark.files(found, scaling):
        workspace, _, name = path.partition("/experiments/")
        if name:
            made.setdefault(workspace, ([], []))[0].append(profile(text))
        else:
            made.setdefault(path.rpartition("/")[0], ([], []))[1].append(json.loads(text))
    return made


@settings(max_examples=40)
@given(runs(), st.sampled_from(["throughput", "strong", "weak"]))
def test_a_workspace_has_what_was_measured_and_is_one_study(found, scaling):
    read, files = [], dict(benchpark.files(found, scaling))
    assert not [path for path in files if path.startswith("/") or "/../" in f"/{path}/"]
    for profiles, [results] in workspaces(found, scaling).values():
        names = [one["name"] for one in results["experiments"]]
        assert len(set(names)) == len(names)
        for one in results["experiments"]:
            is_right = all(context["foms"] for context in one["CONTEXTS"])
            assert one["RAMBLE_STATUS"] == ("SUCCESS" if is_right else "FAILED")
            for context in one["CONTEXTS"]:
                foms = {each["name"]: each["value"] for each in context["foms"]}
                units = {each["name"]: each["units"] for each in context["foms"]}.get("energy_j")
                told = {"J": "measured", "J (estimated)": "estimated", None: ""}[units]
                problem = (one["application_name"], one["workload_name"])
                read.append((*problem, int(one["n_ranks"]), bool(foms), foms, told))
        constant = {"strong": "total_problem_size", "weak": "process_problem_size"}
        constants = ["application_name", "version", "cluster", "benchpark_spec"]
        constants += [constant[scaling]] if scaling in constant else ["n_nodes", "n_resources"]
        for key in constants:
            assert len({metadata.get(key) for metadata, _ in profiles}) <= 1
        for _, paths in profiles:  # of a run that failed whole there is none
            times = [one[benchpark.TIME] for one in paths.values() if benchpark.TIME in one]
            assert times and not any(map(math.isnan, times))
    assert bag(read) == expected(found, ("benchmark", "variant", "ranks"))


def test_a_workspace_is_read_as_benchpark_reads_it():
    sizes = [measurement(size=size, ranks=2, threads=4) for size in (100, 100, 200)]
    [(path, (profiles, [results]))] = workspaces(sizes).items()
    assert path == "mod2am/blas-threads4/throughput-nodes1-ranks2/n"
    found = profiles[0][0]
    assert found["benchpark_spec"] == "[mod2am+throughput+openmp]"
    assert (found["n_nodes"], found["n_resources"], found["version"]) == ("1", "2", "0.1.0")
    assert found["total_problem_size"] == "100"
    assert float(found["process_problem_size"]) == pytest.approx(100 / math.sqrt(2))
    ramble = results["experiments"][0]["RAMBLE_VARIABLES"]  # an axis of its reports may be any
    for key in ("n_nodes", "n_resources", "total_problem_size", "process_problem_size"):
        assert ramble[key] == found[key]
    names = [path for path, _ in benchpark.files(sizes, "throughput") if path.endswith(".cali")]
    folders = {name.rsplit("/", 2)[1] for name in names}
    assert folders == {
        "mod2am-100-nodes1-ranks2-threads4",
        "mod2am-100-nodes1-ranks2-threads4-2",
        "mod2am-200-nodes1-ranks2-threads4",
    }


@pytest.mark.parametrize(
    ("variant", "device", "threads", "model"),
    [
        *(("blas", None, 1, ""), ("blas", None, 2, "+openmp")),
        *(("cublas", "NVIDIA H100", 16, "+cuda"), ("cuda", "NVIDIA H100", 1, "+cuda")),
        *(("hip-peer", "AMD Instinct MI300A", 1, "+rocm"), ("opencl", "NVIDIA H100", 16, "")),
    ],
)
def test_a_programming_model_is_that_of_what_computed(variant, device, threads, model):
    """Whatever a library's variant is called, and whatever threads its host has."""
    one = measurement(variant=variant, device=device, threads=threads)
    [([(metadata, _)], _)] = workspaces([one]).values()
    assert metadata["benchpark_spec"] == f"[mod2am+throughput{model}]"


@pytest.mark.parametrize(
    ("change", "count"),
    [
        ({"job": "8", "node": "n13", "start": "2026-02-01T12:00:00+00:00"}, 1),
        ({"size": 2000}, 1),
        ({"kernel": "other"}, 1),
        ({"manifest": cooked_lines.manifest(version="0.2.0")}, 2),
        ({"manifest": cooked_lines.manifest(flags="-O3")}, 2),
        ({"node": "m12"}, 2),
        ({"threads": 4}, 2),
        ({"ranks": 2}, 2),
        ({"nodes": 2}, 2),
        ({"estimated": True}, 2),
        ({"cpu": "Another"}, 2),
        ({"device": "A GPU"}, 2),
        ({"variant": "plain"}, 2),
    ],
)
def test_what_is_another_study_is_another_workspace(change, count):
    assert len(workspaces([measurement(), measurement(**change)])) == count


@pytest.mark.parametrize(
    ("benchmark", "sizes", "workspace"),
    [
        ("mod2am", {1: 8000, 2: 11314, 4: 16000}, "weak-8000"),
        ("hydro", {4: 5000, 8: 7071, 12: 8660}, "weak-2500"),
        ("jm-linpack", {2: 11314, 4: 16000, 8: 22627}, "weak-8000.21"),
        ("mod2f", {1: 4096, 2: 8192, 8: 32768}, "weak-4096"),
        ("jm-stream", {2: 1001, 4: 2002}, "weak-500.5"),
        ("qcd", {1: 16, 16: 32}, "weak-16"),
        ("qcd", {1: 32, 2: 40, 4: 48, 8: 56, 16: 64}, "weak-32"),
    ],
)
def test_a_weak_study_has_the_sizes_that_scaling_sbatch_gives(benchmark, sizes, workspace):
    """By the root of the ranks, rounded; Benchpark wants one process_problem_size, too."""
    series = [measurement(benchmark=benchmark, size=n, ranks=k) for k, n in sizes.items()]
    [(path, (profiles, [results]))] = workspaces(series, "weak").items()
    assert path == f"{benchmark}/blas-threads2/{workspace}/n"
    told = [one["RAMBLE_VARIABLES"] for one in results["experiments"]]
    for one in (*(metadata for metadata, _ in profiles), *told):
        assert f"{float(one['process_problem_size']):g}" == workspace.partition("-")[2]
    assert [int(one["total_problem_size"]) for one in told] == list(sizes.values())


def test_a_weak_study_of_multiples_has_no_size_of_the_strong_one():
    """As one job of scaling.sbatch leaves both."""
    runs = ((16, 32), (32, 32), (64, 32), (32, 40), (64, 48))
    series = [measurement(benchmark="qcd", ranks=ranks, size=size) for ranks, size in runs]
    found = workspaces(series, "weak")
    assert max(len(profiles) for profiles, _ in found.values()) == 3 and len(found) == 3


def test_a_weak_study_has_no_other_study_s_sizes():
    """Neither of a size that is one greater, nor of the same size on more ranks."""
    runs = ((1, 1000), (1, 1001), (4, 2000), (4, 1000))
    found = workspaces([measurement(ranks=ranks, size=size) for ranks, size in runs], "weak")
    assert {path.split("/")[2]: len(profiles) for path, (profiles, _) in found.items()} == {
        **{"weak-1000": 2, "weak-1001": 1, "weak-500": 1}
    }


def test_a_run_on_unknown_nodes_is_left_out_of_benchpark(capsys):
    assert workspaces([measurement(ranks=2, nodes=None)]) == {}
    assert "2 ranks: nodes: not told: left out" in capsys.readouterr().err


# -- where to -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["thicket", "benchpark"])
def test_a_folder_with_something_in_it_is_refused(site, results, kind):
    results(cooked_lines.line())
    folder = site.folder / "out"
    assert site.out("export", kind, "--out", str(folder)) == ""
    assert list(folder.rglob("*.cali"))
    assert "is not empty: name a new folder" in site.refuses("export", kind, "--out", str(folder))
    below = site.yaml / "out"
    assert "Not a directory" in site.fails("export", kind, "--out", str(below))


def test_nothing_measured_is_an_error(site, results):
    results("{}\n")
    assert "there are no measurements" in site.refuses("export", "reframe")
