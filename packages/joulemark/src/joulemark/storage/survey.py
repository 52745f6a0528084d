# `joulemark io survey`: each target of a file system alone, and which of them are slower.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence

from joulemark import ending, layout, workfolder
from joulemark.storage import rounds, targets
from joulemark.storage.rounds import KINDS, Measured


def run(options: argparse.Namespace) -> int:
    """Prints what each did; 1: one has failed, or is slower than the others."""
    with (
        ending.leaving(),
        workfolder.made(options.folder, "survey", rounds.removal_s(options)) as folder,
    ):
        rounds.check_room(folder, options.size)
        files, missing = targets.files(folder, options.size)
        found = rounds.measured(list(files), options, files.__getitem__)
    found.update({name: Measured(trouble=why) for name, why in missing.items()})
    return show(options, found)


def slower(found: Mapping[str, Measured], kind: str, share: float) -> set[str]:
    """Those that in their best round had less than that share of the median target's rate."""
    medians = [middle for one in found.values() if (middle := one.median(kind)) is not None]
    if not medians:
        return set()
    least = share * statistics.median(medians)
    return {
        name for name, one in found.items() if one.rates[kind] and max(one.rates[kind]) < least
    }


def show(options: argparse.Namespace, found: Mapping[str, Measured]) -> int:
    """The exit status."""
    slow = {kind: slower(found, kind, options.slower) for kind in KINDS}
    rows = [
        {
            "target": name,
            **rounds.columns(one),
            "slower": " ".join(kind for kind in KINDS if name in slow[kind]),
            "trouble": one.trouble,
        }
        for name, one in sorted(found.items())
    ]
    table = rounds.as_text(options, "Target", rows, said)
    layout.show(options, rows, [table], notes(rows, options.slower))
    return 1 if any(map(said, rows)) else 0


def said(row: Mapping[str, str]) -> str:
    """What is not well."""
    return row["trouble"] or (row["slower"] and f"slower: {row['slower']}")


def notes(rows: Sequence[dict], share: float) -> list[str]:
    """What `slower` is."""
    if not any(said(row).startswith("slower") for row in rows):
        return []
    return [f"slower: in its best round below {share:g} of the median target's rate."]
