"""The laws of tests/faults catch what they are for."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from tests.chaos import books
from tests.chaos.books import (
    TICKS,
    UJ,
    Charge,
    Snapshot,
    charged_beyond_the_ledger,
    charged_beyond_the_truth,
    charged_twice,
    gained_more_than_true,
    lost_unstated,
    unbalanced,
)
from tests.e2e.waveform import NS, STEADY

FIRST = Charge(1, 0, 10 * NS, 600 * UJ, 0.0)
SECOND = Charge(2, 4 * NS, 12 * NS, 600 * UJ, 0.0)
LATER = Charge(3, 12 * NS, 13 * NS, 100 * UJ, 0.0)


def test_jobs_that_share_a_node_share_its_energy() -> None:
    assert charged_twice([FIRST, SECOND, LATER], STEADY.energy_j) == []
    more = replace(SECOND, energy_uj=SECOND.energy_uj + 10_000)
    assert "jobs 1, 2" in charged_twice([more, FIRST, LATER], STEADY.energy_j)[0]


def test_a_job_is_charged_more_by_no_more_than_it_says() -> None:
    more = replace(LATER, energy_uj=101 * UJ, uncertainty_uj=1.1 * UJ)
    assert charged_twice([more], STEADY.energy_j) == []
    assert charged_twice([replace(more, uncertainty_uj=0.9 * UJ)], STEADY.energy_j)


def test_a_job_alone_is_charged_no_more_than_its_own_time() -> None:
    assert charged_twice([replace(LATER, energy_uj=101 * UJ)], STEADY.energy_j)


def shots(*totals_j: float) -> list[Snapshot]:
    """A tick a second."""
    return [Snapshot(i * NS, round(j * UJ), round(j * UJ)) for i, j in enumerate(totals_j)]


def test_a_ledger_gains_no_more_than_was_used() -> None:
    good = [100.0 * i for i in range(4 * TICKS)]
    assert gained_more_than_true(shots(*good), STEADY.energy_j) == []
    late = [*good[:5], good[4], *good[6:]]
    assert gained_more_than_true(shots(*late), STEADY.energy_j) == []
    half = 2 * TICKS
    twice = [*good[:half], *(total + 0.1 for total in good[half:])]
    assert "more came in" in gained_more_than_true(shots(*twice), STEADY.energy_j)[0]
    held = [*good[:half], *(total + 90.0 for total in good[half : half + TICKS])]
    held += [max(held[-1], total) for total in good[half + TICKS :]]
    assert gained_more_than_true(shots(*held), STEADY.energy_j) == []
    assert "fell" in gained_more_than_true(shots(100, 50), STEADY.energy_j)[0]


def test_parts_that_do_not_sum_are_seen() -> None:
    assert unbalanced([Snapshot(0, 5, 5)]) == []
    assert unbalanced([Snapshot(0, 5, 6)])


def test_records_hold_no_more_than_the_ledger_charged() -> None:
    assert charged_beyond_the_ledger([FIRST, LATER], Snapshot(0, 0, 0, 700 * UJ)) == []
    assert charged_beyond_the_ledger([FIRST, LATER], Snapshot(0, 0, 0, 700 * UJ - 1))


def test_what_a_ledger_forgot_is_charged_all_the_same() -> None:
    """900 J were used, of which the ledger knows 300 J: 100 J of LATER, 200 J unallocated."""
    last = Snapshot(0, 300 * UJ, 300 * UJ, 100 * UJ)
    assert charged_beyond_the_truth([FIRST, LATER], last, 900) == []
    assert charged_beyond_the_truth([FIRST, LATER], last, 899)


def test_a_loss_must_be_stated() -> None:
    short = replace(FIRST, energy_uj=800 * UJ)
    span = (0, 10 * NS)
    assert lost_unstated(short, span, STEADY.energy_j, 100)
    assert lost_unstated(replace(short, gap_s=2.1), span, STEADY.energy_j, 100) == []


def test_a_ledger_is_seen_as_it_was_saved_last(monkeypatch) -> None:
    """A record is written after its tick, and a node at rest is not saved at the next one."""
    open_, written = Snapshot(NS, 5, 5, 0), Snapshot(NS, 5, 5, 3)
    earlier, later = Snapshot(0, 9, 9, 9), Snapshot(2 * NS, 6, 6, 3)
    seen = iter([open_, written, earlier, None, later])
    monkeypatch.setattr(books, "snapshot", lambda _: next(seen))
    watch = books.Watch([SimpleNamespace(name="n1", ledger=Path())])
    for _ in range(5):
        watch.look()
    assert watch.taken["n1"] == [written, later]
