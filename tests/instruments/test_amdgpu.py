"""`amdgpu` on the kernel's folders of cards, whose accumulator a writer makes run."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from pathlib import Path

from tests.cluster import wait_for
from tests.peers.machines import (
    MI250X,
    MI300X,
    NAVI31,
    V1_3,
    V1_5,
    V1_6,
    Accumulator,
    Books,
    add_card,
)


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
