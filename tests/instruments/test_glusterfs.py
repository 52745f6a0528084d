"""`joulemark io collect --mounts` on a real GlusterFS: three jobs' bytes, while a server dies."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import wait_for
from tests.peers.collector import Collector
from tests.peers.glusterfs import Brick, Mount

BLOCK = 1 << 16
AWAY_S = 60.0  # a client connects again some seconds after its server is back


@pytest.fixture
def bricks(tmp_path: Path) -> Iterator[list[Brick]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Brick(tmp_path, f"brick{number}")) for number in (1, 2)]


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    with Collector(tmp_path, tmp_path / "jobs") as running:
        yield running


class Job:
    """Writes and reads blocks of its files until it has done so many, however often it has to try;
    what was tried in vain a client may have counted or not."""

    def __init__(self, place: Path, written: int, read: int) -> None:
        self.place, self.blocks = place, (written, read)
        self.failed = [0, 0]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        written, read = self.blocks
        for number in range(max(written, read)):
            path = self.place / f"file{number % 8}"
            if number < written:
                self._until(0, lambda path=path: self._write(path))
            if number < read:
                self._until(1, lambda path=path: self._read(path))
            time.sleep(0.01)

    def _until(self, kind: int, do) -> None:
        deadline_s = time.monotonic() + AWAY_S
        while True:
            try:
                return do()
            except OSError:
                self.failed[kind] += 1
                assert time.monotonic() < deadline_s
                time.sleep(0.1)

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
    asked = {1: (8, 150), 2: (150, 0), 3: (100, 100)}
    with contextlib.ExitStack() as stack:
        for mount in places.values():
            stack.enter_context(mount)
        jobs = {job: Job(mount.place, *asked[job]) for job, mount in places.items()}
        wait_for(lambda: collector.work(2)[1] > 30 * BLOCK, what="job 2 to have written")
        bricks[1].kill()
        wait_for(lambda: any(sum(job.failed) for job in jobs.values()), what="a job to miss it")
        bricks[1].start()
        for number, job in jobs.items():
            job.thread.join(2 * AWAY_S)
            assert not job.thread.is_alive()
            collector.ask()
            places[number].unmount()
        collector.ask()
    assert sum(sum(job.failed) for job in jobs.values())
    for number, job in jobs.items():
        read, written, ops = collector.work(number)
        for counted, blocks, failed in zip((written, read), job.blocks, job.failed):
            assert blocks * BLOCK <= counted <= (blocks + failed) * BLOCK, number
        assert ops > sum(job.blocks)  # each opens a file
    assert collector.unread == 0
    told = [line["jobs"] for line in collector.lines()]
    assert any(len(jobs) == 3 for jobs in told)


def test_who_unmounts_without_asking_is_told_of(
    tmp_path: Path, bricks: list[Brick], collector: Collector
) -> None:
    with Mount(bricks, tmp_path / "jobs" / "4", tmp_path) as mount:
        Job(mount.place, 3, 0).thread.join(AWAY_S)
        wait_for(lambda: collector.work(4)[1] == 3 * BLOCK, what="the job to be read")
        mount.unmount()
        wait_for(lambda: collector.unread == 1, what="a mount that is gone")
