"""IO500 itself, by `joulemark app`, under a joulemarkd of which the power is known: each part's
joules, and a wrong byte that is planted while it runs."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT
from tests.peers.joulemarkd import Daemon, configure, connect, program, tell

WATTS = 100
SMALL = "seconds=1 block=64m easy_files=500 segments=500 hard_files=300"
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
#: Once files are written, before they are read.
SPOIL = """\
#!/bin/sh
if grep -q '^.find.$' {folder}/results/result.txt
then
    file=$(find {folder}/data/{where} -type f | sort | head -n 1)
    printf wrong | dd of="$file" bs=1 seek=1000 conv=notrunc
fi
"""


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Of a job whose node draws a power that is known."""
    if shutil.which("io500") is None:
        pytest.skip("io500 is not installed: its prepare.sh builds it")
    model = f"- {{type: model, idle_w: {WATTS - 0.01}, full_w: {WATTS}}}\n"
    cpus = os.cpu_count()
    with (
        Daemon(program(), configure(tmp_path, model)) as daemon,
        connect(daemon.socket) as link,
    ):
        tell(link, f"open job=7 step=extern uid=0 job_cpus={cpus} step_cpus={cpus}")
        path = f"{program().parents[1] / 'bin'}:{os.environ['PATH']}"
        yield {**os.environ, **MPI, "PATH": path, "JOULEMARK_SOCKET": str(daemon.socket)}


def run(
    env: dict[str, str], place: Path, definition: Path
) -> tuple[subprocess.CompletedProcess[str], dict[str, dict]]:
    command = [sys.executable, "-m", "joulemark", "app", "run", definition, "--folder", place]
    command += ["--ranks", "2", "--launcher", "mpirun -n 2", "--out", place / "out"]
    command += ["--cooked", place / "io500.cooked.jsonl"]
    command += [word for one in SMALL.split() for word in ("--set", one)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    lines = (place / "io500.cooked.jsonl").read_text().splitlines()
    return done, {line["kernel"]: line for line in map(json.loads, lines)}


def definition(place: Path, where: str) -> Path:
    """IO500's, which spoils a byte of a folder where its caches would be dropped."""
    text = (CHECKOUT / "packages/apps/io500.yaml").read_text()
    text = text.replace("{drop_caches}", "TRUE\n      drop-caches-cmd = sh {folder}/spoil")
    spoil = json.dumps(SPOIL.replace("{where}", where))
    path = place / "io500.yaml"
    path.write_text(text.replace("inputs:", f"inputs:\n  - {{file: spoil, text: {spoil}}}"))
    return path


def test_each_part_has_the_joules_of_its_time(env: dict[str, str], tmp_path: Path) -> None:
    done, lines = run(env, tmp_path, CHECKOUT / "packages/apps/io500.yaml")
    assert done.returncode == 0, done.stderr
    assert "io500 run: INVALID, as the variants say" in done.stderr
    assert {line["variant"] for line in lines.values()} == {"POSIX-INVALID"} and len(lines) == 15
    for line in lines.values():
        due_j = WATTS * line["region_seconds"]
        assert line["energy_j"] == pytest.approx(due_j, abs=line["energy_uncertainty_j"])
        assert line["performance"] > 0
    each = [line for key, line in lines.items() if key not in ("score", "blocks", "files")]
    assert len(each) == 12
    sum_j = sum(line["energy_j"] for line in each)
    assert lines["score"]["energy_j"] == pytest.approx(sum_j)
    # what the program prints of its own: all parts in as many seconds
    whole_s = sum(line["region_seconds"] for line in each)
    assert whole_s == pytest.approx(lines["score"]["time_s"], rel=0.02)
    whole = float((tmp_path / "out/run.energy.0").read_text().split()[1])
    assert sum_j < whole + lines["score"]["energy_uncertainty_j"]


@pytest.mark.parametrize("where", ["ior-easy", "ior-hard", "mdtest-hard"])
def test_a_wrong_byte_is_found(env: dict[str, str], tmp_path: Path, where: str) -> None:
    done, lines = run(env, tmp_path, definition(tmp_path, where))
    assert done.returncode == 1
    said = "mdtest-hard-read: 'ERROR: verifying" if where == "mdtest-hard" else "'Errors ("
    assert f"io500 run: {said}" in done.stderr
    assert not any(line["verified"] for line in lines.values())
    assert all(line["energy_j"] is None for line in lines.values())


def test_dropping_caches_spoils_nothing(env: dict[str, str], tmp_path: Path) -> None:
    """What the test before plants with, without a byte."""
    done, lines = run(env, tmp_path, definition(tmp_path, "nowhere"))
    assert done.returncode == 0 and all(line["verified"] for line in lines.values())
