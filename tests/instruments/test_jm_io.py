"""jm-io on a real GlusterFS of two servers, and on a disk that fills up: what it measures is
right, and where it can't be measured it says so, soon, and leaves nothing."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Build, wait_for
from tests.peers.glusterfs import Brick, Mount
from tests.spack.lmod import Lmod, loading

PATIENCE_S = 120.0
MIB = 1 << 20
LOCAL = (
    ("checkpoint", "--quick", "--kernels", "local-checkpoint,local-restart"),
    ("collective", "--quick", "--kernels", "local-write,cached-write"),
)


CACHED = ("collective", "--kernels", "cached-write", "--sizes", "256")  # 128 MiB
FULL = {  # what writes to a disk of 256 MiB, and by which option
    "shared": (("bandwidth", "--kernels", "shared-write", "--sizes", f"{192 * MIB}"), "--folder"),
    "behind a cache": (CACHED, "--folder"),
    "a cache": (CACHED, "--local"),
}


@pytest.fixture
def program(build: Build, tmp_path: Path) -> str:
    """That of the module, as a job template finds it."""
    loaded = f"{loading('jm-io')} || exit"
    return Lmod(build.modules, tmp_path)(loaded, "command -v jm-io").strip()


@pytest.fixture
def volume(tmp_path: Path, bricks: list[Brick]) -> Iterator[Path]:
    with Mount(bricks, tmp_path / "volume", tmp_path) as mount:
        yield mount.place


class Run:
    """A jm-io with files in a folder, which ends in time."""

    def __init__(self, program: str, folder: Path, cooked: Path, *words: str) -> None:
        self.cooked = cooked
        command = [program, *words, "--folder", folder, "--cooked", cooked]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([*map(str, command)], **pipes)

    def end(self) -> tuple[int, str]:
        _, said = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, said

    def wait_for_bytes(self, least: int, folder: Path) -> None:
        def there() -> bool:
            found = 0
            for path in files_in(folder):
                with contextlib.suppress(FileNotFoundError):
                    found += path.stat().st_size
            return found >= least

        wait_for(there, what=f"{least} bytes in {folder}")

    def lines(self) -> list[dict]:
        return [json.loads(line) for line in self.cooked.read_text().splitlines()]


def files_in(folder: Path) -> list[Path]:
    return [Path(at, name) for at, _, names in os.walk(folder) for name in names]


def left_in(volume: Path) -> list[str]:
    return [name for name in os.listdir(volume) if name.startswith("jm-io.")]


def test_every_pattern_is_right_there(program: str, volume: Path, tmp_path: Path) -> None:
    run = Run(program, volume, tmp_path / "cooked.jsonl", "--quick")
    assert run.end() == (0, "")
    local = []
    for words in LOCAL:
        cooked = tmp_path / f"{words[0]}.jsonl"
        one = Run(program, volume, cooked, *words, "--local", str(tmp_path))
        assert one.end() == (0, "")
        local += one.lines()
    kernels = {"create", "stat", "remove", "block-write", "block-read"}
    kernels |= {f"{a}-{b}" for a in ("shared", "own", "chunks") for b in ("write", "read")}
    kernels |= {"shared-update", "own-update", "compute", "untraced", "traced"}
    kernels |= {"steps", "shared-restart", "own-restart", "shared-checkpoint", "own-checkpoint"}
    assert {line["kernel"] for line in run.lines()} == kernels
    for line in run.lines():
        assert line["verified"] and line["device"] == "fuse.glusterfs", line
    assert [line["verified"] for line in local] == [True] * 8
    assert not left_in(volume) and not left_in(tmp_path)


def test_a_server_that_dies_is_an_error_soon_and_no_result(
    program: str, volume: Path, bricks: list[Brick], tmp_path: Path
) -> None:
    words = ("bandwidth", "--kernels", "own-write", "--sizes", f"{64 * MIB}")
    run = Run(program, volume, tmp_path / "cooked.jsonl", *words, "--min-seconds", "60")
    run.wait_for_bytes(8 * MIB, volume)
    for brick in bricks:  # whichever has the file
        brick.kill()
    wait_for(lambda: "not connected" in said_by(run), what="the error")
    for brick in bricks:
        brick.start()
    status, said = run.end()
    assert status == 3, said
    assert run.lines() == []
    wait_for(lambda: not left_in(volume), what="an empty volume")


def said_by(run: Run) -> str:
    """What it has said up to now, and still says at its end."""
    line = run.process.stderr.readline()
    assert line, run.process.wait()
    return line


@pytest.mark.parametrize(("words", "option"), FULL.values(), ids=FULL)
def test_a_disk_that_others_fill_is_an_error(
    program: str, words: tuple[str, ...], option: str, tmp_path: Path
) -> None:
    disk, other = tmp_path / "disk", tmp_path / "other"
    disk.mkdir(), other.mkdir()
    places = {"--folder": other, "--local": other, option: disk}
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "none", disk], check=True)
    try:
        if "cached-write" in words:
            words = (*words, "--local", str(places["--local"]))
        folder, cooked = places["--folder"], tmp_path / "cooked.jsonl"
        run = Run(program, folder, cooked, *words, "--min-seconds", "60")
        run.wait_for_bytes(MIB, disk)
        with (disk / "another's").open("wb", buffering=0) as file:
            while run.process.poll() is None:
                with contextlib.suppress(OSError):  # it is full
                    file.write(bytes(MIB))
        status, said = run.end()
        mended = f"No space left on device; give smaller --sizes, or another {option}\n"
        assert status == 3 and said.endswith(mended), said
        assert os.listdir(disk) == ["another's"] and not left_in(other) and run.lines() == []
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)
