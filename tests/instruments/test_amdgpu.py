"""`amdgpu` on the kernel's folders of cards, whose accumulator a writer makes run."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import struct
from pathlib import Path

from tests.cluster import wait_for
from tests.peers.machines import Books, write_files

MI300X, MI250X, NAVI31 = 0x74A1, 0x740C, 0x744C
#: content revision, bytes, place of the energy; their source: slurm-plugins/tests/test_amdgpu.c
V1_3, V1_5, V1_6 = (3, 120, 24), (5, 360, 88), (6, 1664, 16)


def metrics(layout: tuple[int, int, int], units: int) -> bytes:
    """A gpu_metrics of format 1; what a card does not support is all ones, as in the driver."""
    content, length, offset = layout
    table = bytearray(b"\xff" * length)
    struct.pack_into("<HBB", table, 0, length, 1, content)
    struct.pack_into("<Q", table, offset, units)
    return bytes(table)


class Accumulator:
    """A card's gpu_metrics, whose energy runs in units of 2^-16 J."""

    def __init__(self, path: Path, layout: tuple[int, int, int], units: int) -> None:
        self.layout, self.units, self.total_uj = layout, units, 0
        self.file = os.open(path, os.O_CREAT | os.O_WRONLY)
        self.advance(0)

    def advance(self, energy_uj: int) -> None:
        """Whole units only: 1024 of them are 15625 uJ."""
        steps = -(-energy_uj // 15625)
        self.units += 1024 * steps
        self.total_uj += 15625 * steps
        os.pwrite(self.file, metrics(self.layout, self.units), 0)


def add_card(root: Path, number: int, device_id: int, hwmon: dict[str, object]) -> Path:
    folder = root / f"card{number}" / "device"
    write_files(folder, {"vendor": "0x1002", "device": f"{device_id:#06x}"})
    write_files(folder / "hwmon" / f"hwmon{number + 3}", {"name": "amdgpu", **hwmon})
    write_files(root / f"card{number}-DP-1", {"status": "disconnected"})
    return folder


def text_of(root: Path) -> str:
    return f"  - {{type: amdgpu, name: amd, root: {root}, period_s: 0.1}}\nperiod_s: 0.1\n"


def test_each_card_has_the_best_it_offers(tmp_path, probe):
    root = tmp_path / "drm"
    add_card(root, 0, NAVI31, {"power1_average": 31000000, "power1_label": "PPT"})
    Accumulator(add_card(root, 1, MI300X, {"power1_input": 1}) / "gpu_metrics", V1_5, 3 << 16)
    add_card(root, 2, MI300X, {"energy1_input": 4500000, "power1_input": 1})
    run = probe(text_of(root))
    assert run.status == 0, run.errors
    assert [(r["channel"], r["value"], r["unit"], r["domain"]) for r in run.readings] == [
        ("gpu-0", 31, "W", "gpu"),
        ("gpu-1", 3, "J", "gpu"),
        ("gpu-2", 4.5, "J", "gpu"),
    ]


def test_the_dies_of_a_module_share_its_first_ones_counter(tmp_path, probe):
    root = tmp_path / "drm"
    for number in range(4):
        units = 0 if number % 2 else 65536 * (number + 1)
        Accumulator(add_card(root, number, MI250X, {}) / "gpu_metrics", V1_3, units)
    run = probe(text_of(root))
    found = [(r["channel"], r["value"]) for r in run.readings]
    assert found == [("gpu-0.1-pair", 1), ("gpu-2.3-pair", 3)]


def test_energy_is_charged_exactly(tmp_path, daemon):
    root = tmp_path / "drm"
    cards = {
        f"amd/gpu-{number}": Accumulator(
            add_card(root, number, MI300X, {}) / "gpu_metrics", V1_6, 1024 * (number + 7)
        )
        for number in range(2)
    }
    with daemon(text_of(root)) as running:
        books = Books(running, cards)
        for _ in range(10):
            for card in cards.values():
                card.advance(700_000)
            wait_for(books.seen, what="the books to follow")
        books.check()
