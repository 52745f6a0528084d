"""`joulemark io survey` of a real GlusterFS: bricks that are well, slow, ill, full and dead."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import wait_for
from tests.peers.collector import SOURCES
from tests.peers.glusterfs import Brick, Mount

WORDS = (sys.executable, "-m", "joulemark", "io", "survey")
ENV = {**os.environ, "PYTHONPATH": str(SOURCES)}
SIZE = 1 << 20
KINDS = ("write", "read")
DELAY_US = 50_000  # of a call; a whole round is otherwise done within it


class Volume:
    """Bricks, of which the last has a fault, as a user's file system."""

    def __init__(self, bricks: list[Brick], place: Path) -> None:
        self.bricks, self.place = bricks, place
        self.hangs = False

    def survey(self, *options: str) -> tuple[int, dict[str, dict]]:
        """Its exit status, and a row for each brick, by its folder's name."""
        words = [*WORDS, self.place, "--size", str(SIZE), "--rounds", "2", "--json", *options]
        done = subprocess.run(words, env=ENV, capture_output=True, text=True, timeout=120)
        assert done.returncode in (0, 1), done.stderr
        assert self.is_empty() or self.hangs or not self.is_whole()
        assert self.is_empty() == ("could not be removed" not in done.stderr)
        rows = json.loads(done.stdout)
        return done.returncode, {Path(row["target"].rpartition(":")[2]).name: row for row in rows}

    def is_empty(self) -> bool:
        return not any(list(brick.disk.glob("joulemark-*")) for brick in self.bricks)

    def is_whole(self) -> bool:
        """Of a folder that lies on a dead brick, too, the others' parts cannot be removed."""
        return all(brick.alive for brick in self.bricks)


@contextlib.contextmanager
def volume(
    folder: Path, fault: str = "", shard: str | None = None, **options: object
) -> Iterator[Volume]:
    with contextlib.ExitStack() as stack:
        well = [Brick(folder, f"brick{number}") for number in (1, 2)]
        bricks = [*well, Brick(folder, "brick3", fault, **options)]
        for brick in bricks:
            stack.enter_context(brick)
        mount = stack.enter_context(Mount(bricks, folder / "volume", folder, shard))
        yield Volume(bricks, mount.place)


def test_each_brick_is_measured(tmp_path: Path) -> None:
    with volume(tmp_path) as well:
        status, rows = well.survey("--slower", "0.001")
    assert status == 0
    assert list(rows) == ["brick1", "brick2", "brick3"]
    for row in rows.values():
        assert (row["rounds"], row["slower"], row["trouble"]) == (2, "", "")
        assert all(row[f"{kind}_bytes_per_s"] > 0 for kind in KINDS)


def test_a_slow_brick_is_named_and_no_other(tmp_path: Path) -> None:
    options = {"delay_duration": DELAY_US, "delay_percentage": 100, "enable": "write,read"}
    with volume(tmp_path, "delay-gen", **options) as slow:
        status, rows = slow.survey("--slower", "0.3")
    assert status == 1
    assert [name for name, row in rows.items() if row["slower"]] == ["brick3"]
    assert rows["brick3"]["slower"] == "write read"
    assert rows["brick3"]["write_bytes_per_s"] < SIZE / (1e-6 * DELAY_US)


@pytest.mark.parametrize("call", KINDS)
def test_a_brick_whose_disk_fails_is_named(tmp_path: Path, call: str) -> None:
    """Which of errno's reasons debug/error-gen gives is its own choice."""
    options = {"failure": 100, "enable": call}
    with volume(tmp_path, "error-gen", **options) as ill:
        status, rows = ill.survey("--slower", "0.001")
    assert status == 1
    reasons = {os.strerror(number) for number in errno.errorcode}
    assert [name for name, row in rows.items() if row["trouble"] in reasons] == ["brick3"]
    assert (rows["brick1"]["rounds"], rows["brick3"]["rounds"]) == (2, 0)


def test_full_bricks_are_named(tmp_path: Path) -> None:
    """Together they have room for a file that none has: of one alone GlusterFS does not tell."""
    disks = [tmp_path / f"brick{number}" for number in (1, 2, 3)]
    with contextlib.ExitStack() as stack:
        for disk in disks:
            disk.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk], check=True)
            stack.callback(subprocess.run, ["umount", "--lazy", disk], check=True)
        status, rows = stack.enter_context(volume(tmp_path)).survey("--size", "24m")
    assert status == 1
    assert {row["trouble"] for row in rows.values()} == {"No space left on device"}


def test_a_dead_brick_is_named(tmp_path: Path) -> None:
    with volume(tmp_path) as dying:
        dying.bricks[1].kill()
        status, rows = dying.survey("--slower", "0.001")
    assert status == 1
    assert rows["brick2"]["trouble"] == "is not connected"
    assert [rows[name]["rounds"] for name in ("brick1", "brick3")] == [2, 2]


def test_one_that_hangs_is_given_up(tmp_path: Path) -> None:
    """Who waits for it in the kernel does not even die of SIGKILL; nor does GlusterFS' client then
    answer others."""
    options = {"delay_duration": 90_000_000, "delay_percentage": 100, "enable": "write"}
    began_s = time.monotonic()
    with volume(tmp_path, "delay-gen", **options) as hanging:
        hanging.hangs = True
        status, rows = hanging.survey("--slower", "0.001", "--limit", "2")
        assert time.monotonic() - began_s < 60
    assert status == 1
    assert rows["brick3"]["trouble"] == "not done within 2 s, nor to be ended"


def test_a_sharded_volume_is_refused(tmp_path: Path) -> None:
    """Of a file beyond a shard each brick has a part."""
    with volume(tmp_path, shard="4MB") as sharded:
        assert sharded.survey("--slower", "0.001", "--size", "4m")[0] == 0
        done = subprocess.run([*WORDS, sharded.place], env=ENV, capture_output=True, text=True)
        assert sharded.is_empty()
    assert done.returncode == 2
    assert "puts each 4194304 bytes on another brick: give a --size of one" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing(tmp_path: Path, number: int) -> None:
    options = {"delay_duration": 2_000_000, "delay_percentage": 100, "enable": "write"}
    with volume(tmp_path, "delay-gen", **options) as slow:
        words = [*WORDS, slow.place, "--size", str(SIZE)]
        running = subprocess.Popen(words, env=ENV, stdout=subprocess.PIPE, text=True)
        wait_for(lambda: not slow.is_empty(), what="its folder")
        running.send_signal(number)
        assert running.wait(60) == 128 + number
        assert slow.is_empty()


def test_where_it_cannot_be(tmp_path: Path) -> None:
    for words, why in (
        ([tmp_path], "give one on Lustre or GlusterFS"),
        ([tmp_path / "none"], "give a folder to write in"),
        ([tmp_path, "--size", "1024g"], "its file system has room for"),
    ):
        done = subprocess.run([*WORDS, *words], env=ENV, capture_output=True, text=True)
        assert done.returncode == 2
        assert why in done.stderr and str(tmp_path) in done.stderr + " ".join(map(str, words))
        assert not list(tmp_path.iterdir())
