"""`pm_counters` on the folder of an HPE Cray EX node, scanned as its controller does."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from tests.cluster import wait_for
from tests.peers.machines import write_files

STEMS = ("", "cpu_", "memory_", "accel0_", "accel1_")
CHANNELS = ("node", "cpu", "memory", "gpu-0", "gpu-1")


class Controller:
    """Counts joules at raw_scan_hz within its context; a scan's files bear one freshness."""

    def __init__(self, root: Path, scan_hz: int = 10) -> None:
        self.root, self.scan_hz, self.scan, self.joules = root, scan_hz, 0, 1000
        static = {"raw_scan_hz": scan_hz, "version": 2, "generation": 4, "power_cap": "0 W"}
        write_files(root, {**static, "power": "400 W"})
        self.files = {}
        for name in ("freshness", *(f"{stem}energy" for stem in STEMS)):
            self.files[name] = os.open(root / name, os.O_CREAT | os.O_WRONLY)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.write()

    def write(self) -> None:
        self.scan += 1
        self.joules += 5
        stamp_us = time.time_ns() // 1000
        for name, file in self.files.items():
            text = f"{self.joules:012d} J {stamp_us} us\n"
            if name == "freshness":
                text = f"{self.scan:012d}\n"
            os.pwrite(file, text.encode(), 0)

    def _run(self) -> None:
        while not self.stopped.wait(1 / self.scan_hz):
            self.write()

    def __enter__(self) -> Controller:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()


def text_of(root: Path) -> str:
    return f"  - {{type: pm_counters, name: cray, root: {root}, period_s: 0.2}}\nperiod_s: 0.2\n"


def test_scans_are_read_with_their_own_time(tmp_path, probe):
    with Controller(tmp_path / "pm") as controller:
        run = probe(text_of(controller.root), 3)
        assert run.status == 0, run.errors + str(run.faults())
        assert [r["channel"] for r in run.readings[:5]] == list(CHANNELS)
        for channel in CHANNELS:
            values = run.values(channel)
            assert len(set(values)) == 3 and values == sorted(values)
            assert all(value % 5 == 0 for value in values)
        assert all(abs(r["time"] - time.time()) < 60 for r in run.readings)


def test_the_node_holds_its_parts(tmp_path, daemon):
    controller = Controller(tmp_path / "pm")
    with daemon(text_of(controller.root)) as running:

        def counted() -> bool:
            controller.write()
            return running.books()["cray/node"] > 100_000_000

        wait_for(counted, what="the node's energy", poll_s=0.1)
        books = running.books()
        assert set(books) == {f"cray/{name}" for name in CHANNELS}
        assert running.node_uj() < 2 * books["cray/node"]


def test_a_controller_that_stops_is_a_fault(tmp_path, watch):
    with Controller(tmp_path / "pm") as controller, watch(text_of(controller.root)) as seen:
        seen.wait_value(channel="node")
        before = len(seen.faults("node"))
        controller.stopped.set()
        fault = seen.wait_fault("freshness has stood at", "node", before)
        assert "the blade controller has stopped" in fault
        known = set(seen.values("node"))
        controller.write()
        wait_for(lambda: set(seen.values("node")) - known, what="the controller to be back")
