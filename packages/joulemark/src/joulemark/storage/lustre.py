# The targets (OST, MDT) of a Lustre server, and their job_stats.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from joulemark import output
from joulemark.storage import jobstats
from joulemark.storage.source import LIFE_S

KINDS = ("obdfilter", "mdt")


@dataclass(frozen=True)
class Lustre:
    """A joulemark.storage.source.Source."""

    root: Path  # / but in tests
    whose = "set the clients' jobid_var=session, or say their jobid_name with --names"
    comes_back = True
    life_s = math.inf  # its targets say it

    @property
    def what(self) -> str:
        """For who has none."""
        return (
            f"{self.root / 'proc/fs/lustre'}: has no obdfilter/*/job_stats and no "
            "mdt/*/job_stats: is this a Lustre server, and are its targets mounted?"
        )

    def targets(self) -> dict[str, Path]:
        """By names such as `mdt.lustre-MDT0000`."""
        place = self.root / "proc/fs/lustre"
        found = [path.parent for kind in KINDS for path in place.glob(f"{kind}/*/job_stats")]
        return {f"{one.parent.name}.{one.name}": one for one in sorted(found)}

    def name(self, target: str) -> str:
        """It has many jobs' entries."""
        return ""

    def read(
        self, targets: dict[str, Path]
    ) -> Iterator[tuple[str, Iterator[jobstats.Entry], float]]:
        """One after the other: a text may have half a million entries."""
        for target, place in targets.items():
            try:
                text = (place / "job_stats").read_bytes()
            except OSError as error:  # a target that fails over to another server
                output.tell([f"{error.filename}: {error.strerror}: left out of this round"])
                continue
            yield target, jobstats.entries(text, target.startswith("mdt.")), _expiry_s(place)


def _expiry_s(target: Path) -> float:
    """Newer Lustre has the file in /sys."""
    in_sys = Path(str(target).replace("/proc/fs/lustre/", "/sys/fs/lustre/"))
    for place in (in_sys, target):
        try:
            return float((place / "job_cleanup_interval").read_text())
        except (OSError, ValueError):
            continue
    return LIFE_S
