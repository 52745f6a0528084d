"""EnergyStorage of three jobs at once on a real GlusterFS of two servers with replayed power.

The servers' bytes are real, and so are their deaths. What they draw for them is computed here,
from what the programs did and when: not linear in the bytes, noisy, what is written seconds late.
Time runs for the books PACE times as fast as for the disks, so that minutes are hours.
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import subprocess
import threading
import time
from pathlib import Path

import builders

from tests.peers.collector import Collector
from tests.peers.glusterfs import Brick, Mount

PACE = 60
HISTORY_S, JOBS_S, REST_S = 420.0, 60.0, 6.0  # by our own clock
BLOCK = 1 << 16
NS = 1_000_000_000
#: of the servers, in the books' time: W idle, J a block read, a block written, an operation
IDLE_W, COSTS_J = 926.0, (55.0, 70.0, 15.0)
LATE_S, BEND, MOST_W, NOISE_W = 6.0, 0.15, 300.0, 6.0
OTHERS = 99


class Log:
    """What programs have done: job, kind and when, by our clock; an append is atomic."""

    def __init__(self) -> None:
        self.done: list[tuple[float, int, int]] = []
        self.failed: list[tuple[int, int]] = []

    def add(self, job: int, kind: int) -> None:
        self.done.append((time.time(), job, kind))


class Program(threading.Thread):
    """Reads and writes blocks of its own files and looks at them, at rates that it is told."""

    def __init__(self, place: Path, job: int, log: Log) -> None:
        super().__init__(daemon=True)
        self.place, self.job, self.log = place, job, log
        self.rates = (0.0, 0.0, 0.0)  # blocks read, blocks written, operations a second
        self.ends = threading.Event()
        self.files = [os.open(place / f"file{n}", os.O_CREAT | os.O_RDWR) for n in range(8)]
        for number in self.files:
            os.pwrite(number, b"j" * BLOCK, 0)
        self.start()

    def run(self) -> None:
        due = [time.monotonic()] * 3
        turn = 0
        while not self.ends.wait(0.002):
            now = time.monotonic()
            for kind, rate in enumerate(self.rates):
                due[kind] = max(
                    due[kind], now - 0.2
                )  # what a slow disk kept it from is not made up
                while rate and due[kind] <= now:
                    due[kind] += 1 / rate
                    turn += 1
                    self._do(kind, turn % len(self.files))
            if not any(self.rates):
                due = [now] * 3
        for number in self.files:
            with contextlib.suppress(OSError):
                os.close(number)

    def _do(self, kind: int, at: int) -> None:
        try:
            if kind == 0:
                assert len(os.pread(self.files[at], BLOCK, 0)) == BLOCK
            elif kind == 1:
                assert os.pwrite(self.files[at], b"k" * BLOCK, 0) == BLOCK
            else:
                os.stat(self.place / f"file{at}")
            self.log.add(self.job, kind)
        except OSError:  # its server is away
            self.log.failed.append((self.job, kind))
            self._open_again(at)

    def _open_again(self, at: int) -> None:
        """Closed first: one opened beside a dead one GlusterFS lets read from the cache."""
        number, self.files[at] = self.files[at], -1
        with contextlib.suppress(OSError):
            os.close(number)
        with contextlib.suppress(OSError):
            self.files[at] = os.open(self.place / f"file{at}", os.O_CREAT | os.O_RDWR)


class Power:
    """What the servers draw, second by second of the books, and for whom."""

    def __init__(self, log: Log, begin_s: float, end_s: float) -> None:
        seconds = int((end_s - begin_s) * PACE)
        asked = {job: [[0.0] * seconds for _ in COSTS_J] for job in (1, 2, 3, OTHERS)}
        for when, job, kind in log.done:
            at = int((when - begin_s) * PACE)
            if 0 <= at < seconds:
                asked[job][kind][at] += 1
        costs = {job: self._costs(kinds) for job, kinds in asked.items()}
        dice, noise_w = random.Random(7), 0.0
        self.truth_j = dict.fromkeys(costs, 0.0)
        self.drawn_w = []
        for second in range(seconds):
            load_w = sum(of_job[second] for of_job in costs.values())
            above_w = load_w * (1 - BEND * min(load_w, MOST_W) / MOST_W)
            noise_w = 0.9 * noise_w + dice.gauss(0, NOISE_W * math.sqrt(1 - 0.81))
            self.drawn_w.append(IDLE_W + above_w + noise_w)
            for job, of_job in costs.items():
                self.truth_j[job] += above_w * of_job[second] / load_w if load_w else 0.0

    @staticmethod
    def _costs(kinds: list[list[float]]) -> list[float]:
        """W; what is written wears off."""
        found, dirty = [], 0.0
        for read, written, ops in zip(*kinds):
            dirty += written
            flushed = dirty / LATE_S
            dirty -= flushed
            found.append(read * COSTS_J[0] + flushed * COSTS_J[1] + ops * COSTS_J[2])
        return found

    def write(self, folder: Path) -> None:
        """As a gateway does, once a minute."""
        energy_uj, lines = 0, []
        for second, power_w in enumerate(self.drawn_w):
            if second % 60 == 0:
                line = {"time_ns": builders.START_NS + second * NS, "energy_uj": energy_uj}
                line |= {"systematic_uj": energy_uj * 0.01, "random_uj": 0.0}
                lines.append({**line, "nodes": "n1", "split": "io", "run": "a"})
            energy_uj += round(power_w * 10**6)
        folder.mkdir()
        text = "".join(f"{json.dumps(one)}\n" for one in lines)
        (folder / "servers-power.jsonl").write_text(text)


def kill_now_and_then(
    bricks: list[Brick], ends: threading.Event, unneeded: threading.Event, killed: list[int]
) -> None:
    """Until `ends`; servers die with the thread that began them, and so with `unneeded`."""
    number = 0
    while not ends.wait(45):
        brick = bricks[number % 2]
        brick.kill()
        time.sleep(1)
        brick.start()
        killed.append(number)
        number += 1
    unneeded.wait()


def stretched(records: Path, begin_s: float) -> None:
    """The collector's times, as the books have them."""
    path = records / "io" / "nodes" / "n1.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        for name in ("time_ns", "from_ns"):
            line[name] = round(builders.START_NS + (line[name] - begin_s * NS) * PACE)
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))


def test_three_jobs_have_what_they_caused(tmp_path: Path, bricks: list[Brick]) -> None:
    jobs, dice, log, killed = tmp_path / "jobs", random.Random(5), Log(), []
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(Collector(tmp_path, jobs, 0.5))
        mounts = {
            job: stack.enter_context(Mount(bricks, jobs / str(job), tmp_path))
            for job in (1, 2, 3, OTHERS)
        }
        begin_s = time.time()
        programs = {job: Program(mount.place, job, log) for job, mount in mounts.items()}
        others, ends, unneeded = programs[OTHERS], threading.Event(), threading.Event()
        stack.callback(unneeded.set)
        words = (bricks, ends, unneeded, killed)
        threading.Thread(target=kill_now_and_then, args=words, daemon=True).start()
        while time.time() < begin_s + HISTORY_S:
            others.rates = tuple(dice.choice((0, 1)) * dice.uniform(0, 130) for _ in COSTS_J)
            time.sleep(dice.uniform(0.5, 6))
        others.rates = (6.0, 4.0, 10.0)
        jobs_s = time.time()
        for job, rates in ((1, (70, 0, 0)), (2, (0, 70, 0)), (3, (25, 20, 90))):
            programs[job].rates = rates
        time.sleep(JOBS_S)
        for one in programs.values():
            one.rates = (0, 0, 0)
        ended_s = time.time()
        ends.set()
        time.sleep(REST_S)  # servers work on for jobs that have ended
        for one in programs.values():
            one.ends.set()
            one.join()
        running.ask()
        end_s = time.time()
        for job in (1, 2, 3):
            mounts[job].unmount()
        counted = {job: running.work(job) for job in (1, 2, 3)}
    assert len(killed) > 6 and log.failed
    power = Power(log, begin_s, end_s)
    power.write(running.records / "shared")
    stretched(running.records, begin_s)
    start_s, seconds = (jobs_s - begin_s) * PACE, (ended_s - jobs_s) * PACE
    for job in (1, 2, 3):
        account = builders.account("job", seconds=round(seconds), start_s=round(start_s))
        builders.write(running.records, builders.record(job, "n1", [account]))
    rows = merged(running)
    for job, row in rows.items():
        blocks = [sum(1 for _, *one in log.done if one == [job, kind]) for kind in (0, 1)]
        failed = [log.failed.count((job, kind)) for kind in (0, 1)]
        print(
            job, blocks, counted[job], power.truth_j[job], row["storage_j"], row["storage_error_j"]
        )
        # What failed may be counted; the files were written before the jobs began.
        works = zip((row["read_bytes"], row["written_bytes"]), blocks, failed)
        for found, known, in_vain in works:
            assert known * BLOCK <= found <= (known + in_vain) * BLOCK
        assert "unread" not in (row["notes"] or "")
        assert row["storage_error_j"] <= 0.1 * row["storage_j"]
        assert abs(row["storage_j"] - power.truth_j[job]) <= row["storage_error_j"], job
    # The books: what is charged, and others' part, is what was drawn above idle, but for noise.
    begin, end = round(start_s), round(start_s + seconds)
    above_j = sum(power.drawn_w[begin:end]) - IDLE_W * (end - begin)
    charged_j = sum(row["storage_j"] for row in rows.values())
    assert 0.75 * above_j < charged_j < 1.05 * above_j


def merged(running: Collector) -> dict[int, dict]:
    def joulemark(*words: str) -> str:
        asked = [*running.words[:3], *words]
        env = {**os.environ, **running.env}
        return subprocess.run(asked, env=env, check=True, capture_output=True, text=True).stdout

    config = Path(running.env["JOULEMARK_CONFIG"])
    config.write_text(f"{config.read_text()}store: {config.parent}/store.sqlite\n")
    joulemark("merge")
    return {
        one["job_id_raw"]: one
        for one in json.loads(joulemark("report", "jobs", "--all", "--json"))
    }
