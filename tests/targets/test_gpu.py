"""tests/bench/gpu on a GPU that is not there: programs and driver are small scripts."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.targets import backends, cuda

PROGRAM = """#!{python}
import json, sys
name, quick = {name!r}, "--quick" in sys.argv
sizes = sys.argv[sys.argv.index("--sizes") + 1] if "--sizes" in sys.argv else "8000"
rate = 17e9 if name == "hydro" else 1e14
line = dict(benchmark=name, kernel="k", variant="cuda", device="A GPU", verified=True,
            operations=1.0, performance=rate, unit="U/s")
with open(sys.argv[sys.argv.index("--cooked") + 1], "w") as cooked:
    for size in map(int, sizes.split(",")):
        print(json.dumps(dict(line, size=size)), file=cooked)
print("as it should be")
sys.exit(0 if quick else {status})
"""
PEERS = """#!{python}
import sys
what = sys.argv[1]
for size in {sizes}[what]:
    print(what, *size, 4e12)
"""


SIZES = {
    "copy": [[]],
    "dgemm": [[4096], [8192]],
    "fft": [[1 << 18], [1 << 21], [1 << 24]],
    "getrf": [[8063], [20000], [40000]],
}
# There is no joulemarkd among the programs, and none is mod2as's cusparse.
NOT_MEASURED = {"joules: measured", "mod2as k cuda 10000", "mod2as k cuda 20000"}

BENCH = backends.CHECKOUT / "tests" / "bench" / "gpu"


def put(path: Path, text: str, **words) -> None:
    path.write_text(text.format(python=sys.executable, **words))
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path):
    """A driver in tmp_path/bin; programs in tmp_path/built, all right but qcd, whose timed run
    fails, and thermal, which is missing."""
    for folder in ("bin", "built/bin"):
        (tmp_path / folder).mkdir(parents=True)
    put(tmp_path / "bin" / "nvidia-smi", "#!/bin/sh\necho A GPU\n")
    put(tmp_path / "built" / "bin" / "gpu_peers", PEERS, sizes=SIZES)
    for source in backends.having("cuda"):
        status = 1 if source.name == "qcd" else 0
        put(tmp_path / "built" / "bin" / source.name, PROGRAM, name=source.name, status=status)
    (tmp_path / "built" / "bin" / "thermal").unlink()
    (tmp_path / "built" / "about.json").write_text('{"cuda": "13.0"}')
    return tmp_path


def run_bench(machine: Path, *options: str) -> tuple[subprocess.CompletedProcess, dict]:
    out = machine / "results.json"
    words = [sys.executable, BENCH, "--out", out, *options, "--prebuilt", machine / "built"]
    environment = {**os.environ, "PATH": f"{machine / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=120)
    return done, json.loads(out.read_text())


def not_met(found: dict) -> set[str]:
    """But for the counter: the driver is a script, its library may be a real one's."""
    names = {figure["name"] for figure in found["figures"] if figure["met"] is False}
    return {name for name in names if not name.startswith("counter")}


def test_what_fails_does_not_keep_the_rest_from_running(machine):
    done, found = run_bench(machine)
    assert done.returncode == 1, done.stderr
    met = {figure["name"]: figure["met"] for figure in found["figures"]}
    failed = {"qcd: cuda", "thermal: --quick", "thermal: ran on the GPU"}
    assert not_met(found) == failed | NOT_MEASURED
    assert met["hydro k cuda 8000"] is True, "17 Gupdate/s of the 31 that 4 TB/s allow"
    assert found["date"] and found["device"] == "A GPU" and found["cuda"] == "13.0"
    assert found["peers"]["copy"] == 4e12
    assert "hydro k cuda 8000" in done.stdout and "results.json" in done.stderr


def test_only_what_is_asked_for_runs(machine):
    done, found = run_bench(machine, "--only", "hydro")
    assert not_met(found) == {"joules: measured"}, done.stderr
    assert {line["benchmark"] for line in found["cooked"]} == {"hydro"}


def test_a_goal_whose_peer_tells_nothing_is_not_met(machine):
    put(machine / "built" / "bin" / "gpu_peers", PEERS, sizes={**SIZES, "dgemm": [[8192]]})
    _, found = run_bench(machine, "--only", "mod2am")
    assert not_met(found) >= {"dgemm: ran", "mod2am k cuda 4096", "mod2am k cuda 8192"}


def test_a_size_that_did_not_run_is_a_failure(machine):
    program = PROGRAM.replace("sizes.split", 'sizes[:5].strip(",").split')
    put(machine / "built" / "bin" / "mod2am", program, name="mod2am", status=0)
    _, found = run_bench(machine, "--only", "mod2am")
    assert "mod2am: cuda" in not_met(found)


def test_what_there_is_no_time_for_is_said(machine):
    done, found = run_bench(machine, "--only", "hydro", "--limit", "0")
    assert done.returncode == 1 and "the time is up" in done.stderr
    assert found["cooked"] == []


@pytest.mark.skipif(cuda.find() is not None, reason="nvcc is here")
def test_without_a_compiler_it_says_what_is_missing(machine):
    words = [sys.executable, BENCH, "--build-only", machine / "new"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "CUDACXX" in done.stderr
