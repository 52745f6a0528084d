"""`joulemark io collect --mounts` on a real GlusterFS: three jobs' bytes, while a server dies."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import wait_for
from tests.peers.collector import Collector
from tests.peers.glusterfs import Brick, Mount

BLOCK, FILES = 1 << 16, 8
AWAY_S = 60.0  # a client connects again some seconds after its server is back


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    with Collector(tmp_path, tmp_path / "jobs") as running:
        yield running


class Job:
    """Writes and reads blocks of its files until it is told to end, however often it has to try;
    what was tried in vain a client may have counted or not."""

    def __init__(self, place: Path, *, writes: bool, reads: bool) -> None:
        self.place, self.kinds = place, (writes, reads)
        self.blocks, self.failed = [0, 0], [0, 0]
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        for number in range(FILES):
            self._until(0, number, self._write)
        while not self.ends.wait(0.01):
            number = (number + 1) % FILES
            for kind, do in enumerate((self._write, self._read)):
                if self.kinds[kind]:
                    self._until(kind, number, do)

    def end(self) -> None:
        self.ends.set()
        self.thread.join(2 * AWAY_S)
        assert not self.thread.is_alive()

    def _until(self, kind: int, number: int, do: Callable[[Path], None]) -> None:
        deadline_s = time.monotonic() + AWAY_S
        while True:
            try:
                do(self.place / f"file{number}")
            except OSError:
                self.failed[kind] += 1
                assert time.monotonic() < deadline_s
                time.sleep(0.1)
            else:
                self.blocks[kind] += 1
                return

    @staticmethod
    def _write(path: Path) -> None:
        number = os.open(path, os.O_CREAT | os.O_WRONLY)
        try:
            assert os.pwrite(number, b"j" * BLOCK, 0) == BLOCK
        finally:
            os.close(number)

    @staticmethod
    def _read(path: Path) -> None:
        number = os.open(path, os.O_RDONLY)
        try:
            assert len(os.pread(number, BLOCK, 0)) == BLOCK
        finally:
            os.close(number)


def test_three_jobs_at_once_to_the_byte(
    tmp_path: Path, bricks: list[Brick], collector: Collector
) -> None:
    """A server is killed and comes back meanwhile."""
    places = {job: Mount(bricks, tmp_path / "jobs" / str(job), tmp_path) for job in (1, 2, 3)}
    kinds = {1: (False, True), 2: (True, False), 3: (True, True)}
    with contextlib.ExitStack() as stack:
        for mount in places.values():
            stack.enter_context(mount)
        jobs = {
            job: Job(mount.place, writes=kinds[job][0], reads=kinds[job][1])
            for job, mount in places.items()
        }
        wait_for(lambda: collector.work(2)[1] > 30 * BLOCK, what="job 2 to have written")
        # GlusterFS 10.3's client may ask without end for a file that it made while a server died
        wait_for(lambda: all(j.blocks[0] >= FILES for j in jobs.values()), what="their files")
        bricks[1].kill()
        wait_for(lambda: any(sum(job.failed) for job in jobs.values()), what="a job to miss it")
        bricks[1].start()
        for number, job in jobs.items():
            job.end()
            collector.ask()
            places[number].unmount()
        collector.ask()
    for number, job in jobs.items():
        read, written, ops = collector.work(number)
        for counted, blocks, failed in zip((written, read), job.blocks, job.failed):
            assert blocks * BLOCK <= counted <= (blocks + failed) * BLOCK, number
        assert ops > sum(job.blocks)  # each opens a file
    assert collector.unread == 0
    assert any(len(line["jobs"]) == 3 for line in collector.lines())


def test_who_unmounts_without_asking_is_told_of(
    tmp_path: Path, bricks: list[Brick], collector: Collector
) -> None:
    with Mount(bricks, tmp_path / "jobs" / "4", tmp_path) as mount:
        job = Job(mount.place, writes=True, reads=False)
        wait_for(lambda: job.blocks[0] > 20, what="a job that writes")
        job.end()
        wait_for(lambda: collector.work(4)[1] == job.blocks[0] * BLOCK, what="all to be read")
        mount.unmount()
        wait_for(lambda: collector.unread == 1, what="a mount that is gone")
