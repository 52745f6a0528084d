# What each job did since the line before, from counters that expire, are reset and outlive us.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from joulemark.storage.source import Entry
from joulemark.storage.work import Work, add


class Known(NamedTuple):
    """An entry as it was read last; times are rounds', s since the server's boot."""

    start: str
    work: Work
    seen_s: float
    changed_s: float  # when it was not as before
    digest: int | None = None  # of its lines; None: as a process before us left it
    doubt: bool = False  # it is gone, and may have worked unread before
    is_final: bool = False  # it has not worked since somebody asked for a round before its end

    def may_be_unread(self, now_s: float, before_s: float, expiry_s: float) -> bool:
        """Gone since the round before: may it have worked after it was read? No where it can only
        have expired: rounds are closer than an entry lives, and the last work was so long ago."""
        gap_s = now_s - before_s
        if not expiry_s or gap_s >= expiry_s:
            return True
        return now_s - self.changed_s + gap_s < expiry_s


@dataclass
class Gains:
    """Targets' entries of one boot of a server, and what jobs gained since the last line."""

    targets: dict[str, dict[str, Known]] = field(default_factory=dict)
    jobs: dict[str, Work] = field(default_factory=dict)
    unread: int = 0  # entries that may have worked, and were gone before we looked
    away: dict[str, dict[str, Known]] = field(default_factory=dict)  # targets that are not here
    to_begin: set[str] = field(default_factory=set)  # what these have is nobody's gain
    never_read: set[str] = field(default_factory=set)  # of targets that were here

    def begin(self, targets: Iterable[str]) -> None:
        """The very first round: what is there was there before us."""
        self.to_begin = set(targets)

    def end(self, targets: Iterable[str], are_counted: Callable[[str], bool]) -> None:
        """Those that are not among these are gone for good, perhaps with what they did after they
        were read last, if at all; are_counted: whether a target's are."""
        for gone in self.targets.keys() - set(targets):
            known = self.targets.pop(gone)
            if are_counted(gone):
                self.unread += sum(not one.is_final for one in known.values())
        for gone in self.never_read - set(targets):
            self.never_read.remove(gone)
            self.unread += are_counted(gone)

    def leave_out(self, target: str) -> None:
        """A round could not read it."""
        if target in self.targets:
            known = self.targets[target]
            self.targets[target] = {
                name: one._replace(is_final=False) for name, one in known.items()
            }
        else:
            self.never_read.add(target)

    def keep(self, targets: Iterable[str]) -> None:
        """Of this server's targets: what is gone, to another server, has begun anew when it is
        back, and what it did in its last seconds nobody has read; or it was only not seen."""
        for gone in self.targets.keys() - set(targets):
            known = self.targets.pop(gone)
            # Of a Lustre that tells no start nobody could say that an entry is the same.
            self.unread += sum(not one.start for one in known.values())
            self.away[gone] = {
                name: one._replace(doubt=True) for name, one in known.items() if one.start
            }

    def read(
        self,
        target: str,
        entries: Iterable[Entry],
        now_s: float,
        before_s: float,
        expiry_s: float,
        is_asked: bool = False,
    ) -> None:
        """What a target has now; the round before was at before_s, and entries expire after
        expiry_s without work (0: never). is_asked: by who ends it next."""
        is_new = target in self.to_begin
        self.never_read.discard(target)
        before, now = {**self.away.pop(target, {}), **self.targets.get(target, {})}, {}
        for entry in entries:
            known, digest = before.get(entry.key), entry.digest
            if known is not None and known.digest == digest:
                now[entry.key] = known._replace(seen_s=now_s, is_final=known.is_final or is_asked)
                continue
            one = Known(entry.start, entry.work, now_s, now_s, digest, is_final=is_asked)
            if known is not None and known.is_final and one.work[:2] == known.work[:2]:
                one = one._replace(is_final=True)  # our own reading may be an operation
            if known is not None and one.start == known.start and one.work == known.work:
                one = one._replace(changed_s=known.changed_s)  # as a process before us left it
            now[entry.key] = one
            if not is_new:
                self._add(entry.name, one, known)
            if known is not None and not _goes_on(one, known):
                self.unread += known.doubt or known.may_be_unread(now_s, known.seen_s, expiry_s)
        for name in before.keys() - now.keys():
            one = before[name]
            if one.seen_s == before_s:
                one = one._replace(doubt=one.may_be_unread(now_s, before_s, expiry_s))
            # An older Lustre leaves entries out where others expire while it is read.
            if not expiry_s or now_s - one.seen_s < expiry_s:
                now[name] = one
            else:
                self.unread += one.doubt
        self.targets[target] = now
        self.to_begin.discard(target)

    def _add(self, name: str, one: Known, before: Known | None) -> None:
        gained = one.work.since(before.work) if before and _goes_on(one, before) else one.work
        if any(gained):
            add(self.jobs, name, gained)

    def drained(self) -> tuple[dict[str, Work], int]:
        """What jobs gained, and entries that were not read, since this was asked last."""
        found, unread = self.jobs, self.unread
        self.jobs, self.unread = {}, 0
        return found, unread

    def kept(self) -> dict:
        """What the next process needs, as JSON has it."""
        return {
            target: {
                name: [one.start, *one.work, one.seen_s, one.changed_s, one.is_final]
                for name, one in known.items()
            }
            for target, known in self.targets.items()
        }

    @classmethod
    def of(cls, kept: dict, is_same_boot: bool) -> Gains:
        """Goes on from there; of another boot all counters have begun anew, and what they had
        counted since they were read is lost."""
        targets = {
            target: {
                name: Known(start, Work(*numbers[:3]), *numbers[3:5], is_final=any(numbers[5:]))
                for name, (start, *numbers) in known.items()
                if is_same_boot
            }
            for target, known in kept.items()
        }
        lost = 0 if is_same_boot else sum(map(len, kept.values()))
        return cls(targets, unread=lost)


def _goes_on(one: Known, before: Known) -> bool:
    return one.start == before.start and one.work.since(before.work) is not one.work
