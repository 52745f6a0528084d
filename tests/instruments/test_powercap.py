"""`powercap` on folders of real machines, with counters that run and wrap while it reads them."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import random
import threading
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.cluster import meanwhile, wait_for
from tests.peers.machines import AMD, INTEL_CLIENT, INTEL_SERVER, Books, Rapl

SLACK_UJ = 20_000_000  # what the test's start may use up before the first wrap

# name of the channel: (its zone, its domain)
CHANNELS = {
    "client": {
        "psys": ("intel-rapl:1", "node"),
        "package-0": ("intel-rapl:0", "cpu"),
        "dram": ("intel-rapl:0:2", "dram"),
        "core": ("intel-rapl:0:0", "cpu"),
        "uncore": ("intel-rapl:0:1", "cpu"),
    },
    "server": {
        "package-0": ("intel-rapl:0", "cpu"),
        "package-1": ("intel-rapl:1", "cpu"),
        "dram-0": ("intel-rapl:0:0", "dram"),
        "dram-1": ("intel-rapl:1:0", "dram"),
    },
    "amd": {"package-0": ("intel-rapl:0", "cpu")},  # `core` is one core
}
OUTERMOST = {
    "client": ["psys"],
    "server": ["package-0", "package-1", "dram-0", "dram-1"],
    "amd": ["package-0"],
}
ZONES = {"client": INTEL_CLIENT, "server": INTEL_SERVER, "amd": AMD}


def make(machine: str, tmp_path: Path, zones: dict | None = None) -> tuple[Rapl, str]:
    limits = machine != "amd"
    rapl = Rapl(tmp_path / "sys", zones or ZONES[machine], SLACK_UJ, limits)
    text = f"  - {{type: powercap, name: rapl, root: {rapl.root}, period_s: 0.1}}\nperiod_s: 0.1\n"
    return rapl, text


@pytest.mark.parametrize("machine", list(ZONES))
def test_a_machines_zones_are_its_channels(machine, tmp_path, probe):
    rapl, text = make(machine, tmp_path)
    run = probe(text, 2)
    assert run.status == 0, run.errors
    assert not run.faults()
    assert {(r["channel"], r["domain"]) for r in run.readings} == {
        (name, domain) for name, (_, domain) in CHANNELS[machine].items()
    }
    for name, (zone, _) in CHANNELS[machine].items():
        start_uj = rapl.counters[zone].start_uj
        assert run.values(name) == [start_uj / 1e6] * 2


def run_counters(books: Books, wraps: int, step_uj: int) -> None:
    """Energy comes in small writes; never so much that a slow daemon could miss a whole turn."""
    chance = random.Random(20130227)

    def done() -> bool:
        if not books.seen():
            return False
        for _ in range(20):
            for counter in books.counters.values():
                counter.advance(chance.randrange(step_uj // 20))
        return all(counter.wraps >= wraps for counter in books.counters.values())

    wait_for(done, 240, f"{wraps} wraps, and the books to follow")


@pytest.mark.parametrize("machine", list(ZONES))
def test_wraps_are_charged_exactly(machine, tmp_path, daemon):
    """The kernel's own max_energy_range_uj; the node's total counts each joule once."""
    rapl, text = make(machine, tmp_path)
    counters = {
        f"rapl/{name}": rapl.counters[zone] for name, (zone, _) in CHANNELS[machine].items()
    }
    with daemon(text) as running:
        books = Books(running, counters)
        run_counters(books, 1, 8_000_000)
        books.check()
        outermost = sum(running.books()[f"rapl/{name}"] for name in OUTERMOST[machine])
        assert running.node_uj() == outermost


def test_a_counter_that_wraps_each_second_is_charged_exactly(tmp_path, daemon):
    """Ten turns of a counter that holds 20 J only."""
    zones = {zone: (name, 20_000_000) for zone, (name, _) in AMD.items()}
    rapl, text = make("amd", tmp_path, zones)
    counters = {f"rapl/{name}": rapl.counters[zone] for name, (zone, _) in CHANNELS["amd"].items()}
    with daemon(text) as running:
        books = Books(running, counters)
        run_counters(books, 10, 8_000_000)
        books.check()


def drawing(rapl: Rapl, watts: dict[str, float]) -> AbstractContextManager[None]:
    """Zones' counters run meanwhile."""

    def run(over: threading.Event) -> None:
        while not over.wait(0.01):
            for zone, power_w in watts.items():
                rapl.counters[zone].advance(int(power_w * 10_000))

    return meanwhile(run)


@pytest.mark.parametrize(
    ("psys_w", "key", "taken"),
    [
        (0, "", False),
        (40, "", False),
        (98, "", True),
        (150, "", True),
        (0, "psys: true, ", True),
        (150, "psys: false, ", False),
    ],
)
def test_psys_that_counts_less_than_its_packages_is_left_out(
    psys_w, key, taken, tmp_path, described
):
    """Boards that do not wire it up count nothing, or a part: `package-0` is the node's, then."""
    rapl, text = make("client", tmp_path)
    with drawing(rapl, {"intel-rapl:0": 100, "intel-rapl:1": psys_w}):
        channels = described(text.replace("period_s", f"{key}period_s", 1))
    assert ("rapl/psys" in channels) == taken
    assert channels["rapl/package-0"]["outermost"] != taken
