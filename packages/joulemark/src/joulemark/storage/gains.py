# What each job did since the line before, from counters that expire, are reset and outlive us.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from joulemark.storage import jobstats
from joulemark.storage.work import Work


class Known(NamedTuple):
    """An entry as it was read last."""

    start: str
    work: Work
    changed_s: float  # the round in which it was not as before
    digest: int | None = None  # of its lines; None: as a process before us left it


@dataclass
class Gains:
    """Targets' entries of one boot of a server, and what jobs gained since the last line."""

    targets: dict[str, dict[str, Known]] = field(default_factory=dict)
    jobs: dict[str, Work] = field(default_factory=dict)
    unread: int = 0  # entries that may have worked and were gone before we looked
    is_first: bool = True  # what was there before us is nobody's gain

    def read(self, target: str, text: bytes, now_s: float, before_s: float, expiry_s: float):
        """A target's job_stats as they are now; the round before was at before_s, and entries
        expire after expiry_s without work (0: never)."""
        is_mdt, is_new = target.startswith("mdt."), self.is_first and target not in self.targets
        before, now = self.targets.get(target, {}), {}
        for entry in jobstats.entries(text):
            known, digest = before.get(entry.name), hash(entry.lines)
            if known is None or known.digest != digest:
                one = Known(entry.start, entry.work(is_mdt), now_s, digest)
                if not is_new:
                    self._add(entry.name, one, known)
                known = one
            now[entry.name] = known
        gone = (known for name, known in before.items() if name not in now)
        self.unread += sum(_may_be_unread(one, now_s, before_s, expiry_s) for one in gone)
        self.targets[target] = now

    def _add(self, name: str, one: Known, before: Known | None) -> None:
        goes_on = before is not None and before.start == one.start
        gained = one.work.since(before.work) if goes_on else one.work
        if any(gained):
            self.jobs[name] = self.jobs.get(name, Work()).plus(gained)

    def drained(self) -> tuple[dict[str, Work], int]:
        """What jobs gained, and entries that were not read, since this was asked last."""
        found, unread = self.jobs, self.unread
        self.jobs, self.unread, self.is_first = {}, 0, False
        return found, unread

    def kept(self) -> dict:
        """What the next process needs, as JSON has it."""
        return {
            target: {name: [one.start, *one.work] for name, one in known.items()}
            for target, known in self.targets.items()
        }

    @classmethod
    def of(cls, kept: dict, is_same_boot: bool) -> Gains:
        """Goes on from there; of another boot all counters have begun anew."""
        targets = {
            target: {
                name: Known(start, Work(*numbers), 0.0)
                for name, (start, *numbers) in known.items()
                if is_same_boot
            }
            for target, known in kept.items()
        }
        return cls(targets, is_first=False)


def _may_be_unread(one: Known, now_s: float, before_s: float, expiry_s: float) -> bool:
    """Not where it can only have expired, for then nothing came after what was read: rounds are
    closer than an entry lives, and the last work was so long ago."""
    gap_s = now_s - before_s
    if not expiry_s or gap_s >= expiry_s:
        return True
    return now_s - one.changed_s + gap_s < expiry_s
