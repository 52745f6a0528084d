# What each job did since the line before, from counters that expire, are reset and outlive us.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from joulemark.storage.source import Entry
from joulemark.storage.work import Work, add

NEVER_READ = "never read"  # the key of what stands for a target's entries
AGE_ERROR_S = 2


class Known(NamedTuple):
    """An entry as it was read last; times are rounds', s since the server's boot."""

    start: str
    work: Work
    seen_s: float
    changed_s: float  # when it was not as before
    digest: int | None = None  # of its lines; None: as a process before us left it
    doubt: bool = False  # it is gone, and may have worked unread before
    is_final: bool = False  # it has not worked since somebody asked for a round before its end
    name: str = ""  # whose it is, where its key does not say that

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
    is_jobs: Callable[[str], bool] = lambda _: True  # whether a name is of a job that is told

    def begin(self, targets: Iterable[str]) -> None:
        """The very first round: what is there was there before us."""
        self.to_begin = set(targets)

    def end(self, targets: Iterable[str]) -> None:
        """Those that are not among these are gone for good, perhaps with what they did after they
        were read last, if at all."""
        here = set(targets)
        for gone in self.targets.keys() - here:
            self.unread += sum(map(self._is_lost, self.targets.pop(gone).values()))
        self.to_begin &= here

    def _is_lost(self, one: Known) -> bool:
        """Whether a job may have worked there after it was read."""
        return not one.is_final and (not one.name or self.is_jobs(one.name))

    def leave_out(self, target: str, name: str) -> None:
        """A round could not read it, of that name, and perhaps none before."""
        known = self.targets.get(target) or {NEVER_READ: Known("", Work(), 0.0, 0.0, name=name)}
        self.targets[target] = {key: one._replace(is_final=False) for key, one in known.items()}

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
        before, now = {**self.away.pop(target, {}), **self.targets.get(target, {})}, {}
        before.pop(NEVER_READ, None)
        for entry in entries:
            known, digest = before.get(entry.key), entry.digest
            if known is not None and known.digest == digest:
                now[entry.key] = known._replace(seen_s=now_s, is_final=known.is_final or is_asked)
                continue
            name = entry.name if entry.name != entry.key else ""
            one = Known(entry.start, entry.work, now_s, now_s, digest, False, is_asked, name)
            is_same = known is not None and _is_same(one.start, known.start)
            if is_same and known.is_final and one.work[:2] == known.work[:2]:
                one = one._replace(is_final=True)  # our own reading may be an operation
            if is_same and one.work == known.work:
                one = one._replace(changed_s=known.changed_s)  # as a process before us left it
            now[entry.key] = one
            if not is_new:
                self._add(entry.name, one, known)
            if known is not None and not _goes_on(one, known):
                self.unread += (
                    known.doubt or known.may_be_unread(now_s, known.seen_s, expiry_s)
                    if expiry_s
                    else self._is_lost(known)
                )
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
                name: [one.start, *one.work, one.seen_s, one.changed_s]
                + ([one.is_final, one.name] if one.name else [])
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
                key: Known(start, Work(*more[:3]), *more[3:5], None, False, *more[5:])
                for key, (start, *more) in known.items()
                if is_same_boot
            }
            for target, known in kept.items()
        }
        lost = 0 if is_same_boot else sum(map(len, kept.values()))
        return cls(targets, unread=lost)


def _goes_on(one: Known, before: Known) -> bool:
    return _is_same(one.start, before.start) and one.work.since(before.work) is not one.work


def _is_same(one: str, other: str) -> bool:
    """Begins, of which one that is reckoned from an age, `@4711`, is some seconds uncertain."""
    if one[:1] == other[:1] == "@":
        return abs(int(one[1:]) - int(other[1:])) <= AGE_ERROR_S
    return one == other
