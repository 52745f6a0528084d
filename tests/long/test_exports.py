"""What `joulemark export` writes, loaded by the programs that it is for: Thicket and ReFrame."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import cooked_lines
import pytest
from joulemark import cli

from tests import pypi
from tests.cluster import CHECKOUT, cache_folder

REQUIREMENTS = CHECKOUT / "tests" / "requirements-exports.txt"
READER = Path(__file__).with_name("read_by_thicket.py")
LIMIT_S = 300
BEFORE, AFTER = "2026-01-01", "2026-02-01"
FIGURES = ("time_s", "time_spread_s", "operations", "performance")
FIGURES += ("energy_j", "energy_uncertainty_j", "power_w")
WRONG = 3000


@pytest.fixture(scope="module")
def programs() -> Path:
    """Where they are, for this Python."""
    folder = cache_folder() / "exports-{}.{}".format(*sys.version_info)
    try:
        pypi.install("Thicket and ReFrame", REQUIREMENTS, folder)
    except pypi.Unavailable as why:
        pytest.skip(str(why))
    return folder


def lines(day: str, factor: float) -> list[dict]:
    """A day's results: right and wrong ones, and one whose energy a model estimated."""
    told = {"node": "n12", "nodes": 1, "job": "7", "start": f"{day}T12:00:00+00:00"}
    told["manifest"] = cooked_lines.manifest()
    found = [
        cooked_lines.line(
            size, size**3 * 1e-10 * factor / threads, variant=variant, threads=threads
        )
        for size in (100, 1000)
        for variant, threads in (("plain", 1), ("blas", 2))
    ]
    found.append(cooked_lines.line(2000, 0.8 * factor, estimated=True))
    found.append(cooked_lines.failed(WRONG))
    for kernel in ("copy", "triad"):
        stream = {"benchmark": "jm-stream", "kernel": kernel, "variant": "openmp", "unit": "B/s"}
        found.append(cooked_lines.line(500, 1e-3 * factor, **stream))
    return [{**one, **told} for one in found]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Cooked files of two days, the second twice as slow."""
    folder = tmp_path_factory.mktemp("results")
    found = {}
    for day, factor in ((BEFORE, 1.0), (AFTER, 2.0)):
        found[day] = folder / f"{day}.cooked.jsonl"
        found[day].write_text("".join(json.dumps(one) + "\n" for one in lines(day, factor)))
    return found


def export(*words: str | Path) -> None:
    assert cli.main(["export", *map(str, words)]) == 0


def run(programs: Path, *words: str | Path, **env: str) -> str:
    """What one of the programs prints."""
    env = {**os.environ, "PYTHONPATH": str(programs), "NO_COLOR": "1", **env}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# -- Thicket, and what Benchpark asks it for ------------------------------------------------------


def read_by_thicket(programs: Path, kind: str, folder: Path) -> dict:
    """The last line: it may have said before that it lacks what draws."""
    return json.loads(run(programs, sys.executable, READER, kind, folder).splitlines()[-1])


@pytest.fixture(scope="module")
def thicket(programs, results, tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("thicket") / "profiles"
    export("thicket", "--from", *results.values(), "--out", folder)
    return read_by_thicket(programs, "profiles", folder)


def measured(one: dict) -> tuple:
    """Its problem and figures."""
    figures = tuple(one.get(key) for key in FIGURES) if one["verified"] else ()
    return (one["kernel"], one["variant"], one["size"], one["start"], figures)


def test_thicket_has_what_was_measured(thicket: dict) -> None:
    metadata = {one["profile"]: one for one in thicket["metadata"]}
    found = []
    for row in thicket["rows"]:
        of_run = metadata[row["profile"]]
        day = BEFORE if of_run["launchdate"] < 1769000000 else AFTER
        start = f"{day}T12:00:00+00:00"
        problem = {"kernel": row["name"], "variant": of_run["variant"], "start": start}
        problem["size"] = of_run["problem_size"]
        found.append(measured({**row, **problem, "time_s": row.get("time")}))
        if row["verified"]:
            assert row["estimated"] == (row["energy_j"] > 50)
            assert row["efficiency"] == row["operations"] / row["energy_j"]
        else:
            assert not {"time", "energy_j", "performance"} & set(row)
    all_lines = [
        one for day, factor in ((BEFORE, 1.0), (AFTER, 2.0)) for one in lines(day, factor)
    ]
    assert sorted(found) == sorted(map(measured, all_lines))


def test_thicket_tells_runs_apart_by_metadata(thicket: dict) -> None:
    assert thicket["roots"] == ["jm-stream", "mod2am"] and thicket["default_metric"] == "time"
    assert thicket["groups"] == {"blas": 8, "openmp": 2, "plain": 4}
    assert thicket["mean_energy_j"]["triad"] == pytest.approx(0.15)
    one = thicket["metadata"][0]
    assert (one["cluster"], one["jobsize"], one["numhosts"], one["jobid"]) == ("n", 1, 1, 7)
    assert (one["compiler"], one["flags"]) == ("GNU 12.2.0", "-O2 -march=native")
    assert {one.get("energy_source", "") for one in thicket["metadata"]} == {
        *("measured", "estimated", "")
    }


@pytest.mark.parametrize(
    ("study", "seconds", "joules", "failures"),
    [
        ("", {"100": 5e-05, "1000": 0.05}, {"100": 0.005, "1000": 5.0}, [WRONG]),
        ("-estimated", {"2000": 0.8}, {"2000": 80.0}, []),
    ],
)
def test_benchpark_finds_a_study(
    programs: Path, results: dict, tmp_path: Path, study: str, seconds, joules, failures
) -> None:
    export("benchpark", "--from", results[BEFORE], "--out", tmp_path / "study")
    below = f"mod2am/blas-threads2/throughput-nodes1-ranks1{study}/n"
    workspace = tmp_path / "study" / below
    found = read_by_thicket(programs, "benchpark", workspace)
    assert found["spec"] == "mod2am+throughput+openmp" and "mod2am" in found["tree"]
    single = {"application_name": ["mod2am"], "version": ["0.1.0"], "cluster": ["n"]}
    assert found["single"] == single
    for metric, expected in (("Avg time/rank (exc)", seconds), ("energy_j", joules)):
        points = found["points"][metric]
        assert {size: point["mod2am"] for size, point in points.items()} == expected
    ramble = json.loads((workspace / "results.latest.json").read_text())["experiments"]
    wrong = [one for one in ramble if one["RAMBLE_STATUS"] == "FAILED"]
    assert [int(one["RAMBLE_VARIABLES"]["problem_size"]) for one in wrong] == failures
    assert len(ramble) == len(seconds) + len(failures)


# -- ReFrame --------------------------------------------------------------------------------------


class Stored:
    """A database with both days' sessions, and `reframe` on it."""

    def __init__(self, programs: Path, results: dict[str, Path], folder: Path) -> None:
        self.programs, self.folder, self.database = programs, folder, folder / "results.db"
        self.sessions = {}
        for day, path in results.items():
            report = folder / f"{day}.json"
            export("reframe", "--from", path, "--out", report)
            self.sessions[day] = json.loads(report.read_text())["session_info"]["uuid"]
            export("reframe", "--from", path, "--database", self.database)

    def reframe(self, *options: str) -> str:
        """What it says; tables with a row a line."""
        env = {"RFM_ENABLE_RESULTS_STORAGE": "1", "RFM_SQLITE_DB_FILE": str(self.database)}
        env |= {"RFM_PREFIX": str(self.folder), "RFM_SAVE_LOG_FILES": "0"}
        words = [sys.executable, self.programs / "bin" / "reframe", "--table-format=csv"]
        return run(self.programs, *words, *options, **env)

    def table(self, *options: str) -> list[list[str]]:
        return [line.split(",") for line in self.reframe(*options).splitlines() if "," in line]


@pytest.fixture(scope="module")
def stored(programs, results, tmp_path_factory) -> Stored:
    return Stored(programs, results, tmp_path_factory.mktemp("reframe"))


def test_reframe_lists_our_sessions(stored: Stored) -> None:
    found = stored.table("--list-stored-sessions=20260101:now")
    heads, rows = found[0], found[1:]
    by_id = {row[heads.index("UUID")]: dict(zip(heads, row)) for row in rows}
    assert set(by_id) == set(stored.sessions.values())
    first = by_id[stored.sessions[BEFORE]]
    assert (first["Start time"], first["Num cases"]) == ("20260101T120000+0000", "8")


def test_reframe_lists_what_was_measured(stored: Stored) -> None:
    found = stored.table(f"--list-stored-testcases={stored.sessions[BEFORE]}/mean:/")
    read = {(name, variable, unit): float(value) for name, _, variable, unit, value in found[1:]}
    name = "{benchmark} %kernel={kernel} %variant={variant} %size={size} %threads={threads}"
    count = 0
    for one in lines(BEFORE, 1.0):
        case = f"{name.format(**one)} %ranks=1 %nodes=1"
        if not one["verified"]:
            assert case not in {key[0] for key in read}
            continue
        operation = one["unit"].partition("/")[0]
        mark = " (estimated)" if one["estimated"] else ""
        units = ("s", "s", operation, one["unit"], f"J{mark}", f"J{mark}", f"W{mark}")
        for key, unit in zip(FIGURES, units):
            assert read[case, key, unit] == pytest.approx(one[key])
        efficiency = read[case, "efficiency", f"{operation}/J{mark}"]
        assert efficiency == pytest.approx(one["operations"] / one["energy_j"])
        count += len(units) + 1
    assert len(read) == count


def test_reframe_compares_two_days(stored: Stored) -> None:
    days = f"{stored.sessions[AFTER]}/{stored.sessions[BEFORE]}"
    heads, *rows = stored.table(f"--performance-compare={days}/mean:/")
    changes = {}
    for row in rows:
        variable, change = row[heads.index("pvar")], row[-1]
        changes.setdefault(variable, set()).add(float(change.rstrip("%")))
    assert changes["energy_j"] == {100.0} and changes["performance"] == {-50.0}
    assert changes["power_w"] == {0.0}


def test_reframe_tells_failures_and_manifests(stored: Stored) -> None:
    said = stored.reframe(f"--describe-stored-testcases={stored.sessions[BEFORE]}")
    found = json.loads(said[said.index("[") :])
    [wrong] = [case for case in found if case["result"] == "fail"]
    assert (wrong["size"], wrong["fail_phase"], wrong["perfvalues"]) == (WRONG, "sanity", {})
    assert {case["flags"] for case in found} == {"-O2 -march=native"}
    assert {case["energy_source"] for case in found} == {"measured", "estimated", ""}


def test_the_report_is_one_of_reframe_s(stored: Stored) -> None:
    """By its own reader, which takes it as a session to go on with."""
    code = "import sys; from reframe.frontend import reporting; "
    code += "print(reporting.restore_session(sys.argv[1])['session_info']['uuid'])"
    report = stored.folder / f"{BEFORE}.json"
    said = run(stored.programs, sys.executable, "-c", code, report)
    assert said.strip() == stored.sessions[BEFORE]
