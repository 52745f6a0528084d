# `joulemark merge --ended FOLDER`: merges jobs as they end, and sees that Slurm hears of it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""EpilogSlurmctld leaves a notice a run, FOLDER/JOB.RESTART; its lines are the job's nodes, user,
account and partition. It goes when the job is merged, its comment is in record_dir/comments, and
its profile is made; whatever is killed before leaves it to the next merge."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from joulemark import folders, hostlist, output
from joulemark.accounting import merge
from joulemark.config import Config
from joulemark.errors import UsageError, UserError
from joulemark.profile import hdf5
from joulemark.store import nodes

LOOK_S = 0.05
LINGER_S = 1.0  # after the last job: another one's end costs less than another process
LIFE_S = 60.0  # then another process takes over, which reads the configuration anew
AGAIN_S = (1.0, 3.0, 10.0)  # slurmdbd may hear of the job's end later than we do
YOUNG_S = 60.0
AWAY = 3  # the teller's exit code: slurmdbd answers nobody,
AWAY_S = 30.0  # and is asked again after this time, whoever ends meanwhile,
AWAY_MOST_S = 86400.0  # for so long; after that, when another job ends
NEVER_S = math.inf
AT_ONCE = 1000  # jobs in one merge
ANEW = 3  # exit code: jobs still ended when its life was over
JOBS_MAX, RESTARTS_MAX = 1 << 32, 1 << 31


@dataclass(frozen=True, eq=False)
class Notice:
    """A job's end, as EpilogSlurmctld told of it."""

    path: Path
    run: merge.JobRun
    until_s: float  # time.monotonic(): no longer are its nodes' records waited for

    @classmethod
    def read(cls, path: Path, wait_s: float) -> Notice | None:
        """None where it is none, which is said; an empty file, as a crash leaves it, is one."""
        try:
            job, restart = (int(number) for number in path.name.split("."))
            if not (0 < job < JOBS_MAX and 0 <= restart < RESTARTS_MAX):
                raise ValueError
            lines = [*path.read_text(errors="replace").split("\n"), "", "", "", ""]
            facts = path.stat()
            age_s = min(max(0.0, time.time() - facts.st_mtime), wait_s)
        except FileNotFoundError:  # another merge has taken it
            return None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "its name is not JOB.RESTART"
            output.tell([f"{path}: {why}: not merged"])
            return None
        named, user, account, partition, *_ = lines
        said = nodes.SlurmRun(
            restart=restart,
            nodes=_expand(path, named),
            why_missing=nodes.why_missing(wait_s),
            user=user,
            account=account,
            partition=partition,
        )
        run = merge.JobRun(job, said, facts.st_mtime_ns)
        return cls(path, run, time.monotonic() + wait_s - age_s)


def _expand(path: Path, named: str) -> tuple[str, ...]:
    """One notice that is not sound holds up none of the others."""
    try:
        return tuple(hostlist.expand(named)) if named else ()
    except UserError as error:
        output.tell([f"{path}: {error}: merged with what nodes have sent"])
        return ()


class Notices:
    """Those in the folders; each file is read once."""

    def __init__(self, config: Config, places: Sequence[Path], wait_s: float):
        self._places, self._wait_s = places, wait_s
        self._arrivals = merge.Arrivals(config)
        self._known: dict[Path, Notice | None] = {}

    def look(self) -> list[Notice]:
        """All that wait."""
        for folder in self._places:
            for name in os.listdir(folder) if folder.is_dir() else []:
                path = folder / name
                if path not in self._known and not name.startswith("."):
                    self._known[path] = Notice.read(path, self._wait_s)
        return [notice for notice in self._known.values() if notice]

    def due(self, waiting: Sequence[Notice]) -> list[Notice]:
        """Those whose records have all come, or will come no more."""
        now_s = time.monotonic()
        late = [one for one in waiting if one.until_s <= now_s]
        awaited = [one for one in waiting if one.until_s > now_s]
        whole = set(self._arrivals.whole([one.run for one in awaited])) if awaited else set()
        return [*late, *(one for one in awaited if one.run in whole)][:AT_ONCE]

    def settle(self, notices: Iterable[Notice]) -> None:
        """All is done that they ask for."""
        for notice in notices:
            notice.path.unlink(missing_ok=True)
            del self._known[notice.path]


def _stat(path: Path) -> os.stat_result | None:
    """None: it has gone; a teller may outlive who began it."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


class Comments:
    """record_dir/comments: JOULES<tab>TEXT in a file a job, until `program FOLDER` has told it."""

    def __init__(self, record_dir: Path, program: str | None):
        self._folder = record_dir / "comments"
        self._command = [program, str(self._folder)] if program else None
        self._teller: subprocess.Popen | None = None
        self._due_s = time.monotonic() if self._command and self._waiting() else NEVER_S
        self._again_s: list[float] = []
        self._away_until_s = 0.0
        self._n_before = 0

    def leave(self, lines: Iterable[str]) -> None:
        """Each a job's, as `joulemark merge` prints it."""
        folders.make(self._folder, self._folder.parent)
        for line in lines:
            job, _, energy = line.partition("\t")
            new = self._folder / f".{job}.new"
            new.write_text(energy, encoding="utf-8")
            new.replace(self._folder / job)
            if self._command:
                self._due_s, self._again_s = time.monotonic(), list(AGAIN_S)

    def _waiting(self) -> list[Path]:
        """JOB, and .JOB, which is being told or was refused."""
        return list(self._folder.glob("*[0-9]")) if self._folder.is_dir() else []

    def spoilt(self) -> list[Path]:
        """Files that a power cut has left empty."""
        found = [(path, _stat(path)) for path in self._waiting()]
        return [path for path, facts in found if facts and facts.st_size == 0]

    def tell(self, begin: bool) -> bool:
        """True while there is more to do; begin: a process may be begun for it."""
        if self._teller and (status := self._teller.poll()) is not None:
            self._teller = None
            if status == AWAY:
                self._away_until_s = time.monotonic() + AWAY_S
            if status == AWAY and self._is_any_younger(AWAY_MOST_S):
                self._due_s = self._away_until_s
            elif status and self._due_s == NEVER_S:
                self._due_s = self._when_again()
        due_s = max(self._due_s, self._away_until_s)
        if begin and not self._teller and due_s <= time.monotonic():
            self._n_before = len(self._waiting())
            self._teller = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)
            self._due_s = NEVER_S
        return self._teller is not None or (begin and self._due_s != NEVER_S)

    def _when_again(self) -> float:
        """At once where some were told; who is refused for longer waits for another job's end."""
        waiting, now_s = self._waiting(), time.monotonic()
        if len(waiting) < self._n_before:
            return now_s
        again = self._again_s and self._is_any_younger(YOUNG_S)
        return now_s + self._again_s.pop(0) if again else NEVER_S

    def _is_any_younger(self, age_s: float) -> bool:
        least_s = time.time() - age_s
        return any(found.st_mtime > least_s for found in map(_stat, self._waiting()) if found)


class Profiles:
    """Jobs' profiles, made by a process of their own: one may take minutes."""

    def __init__(self, config: Config):
        self._config = config
        self._waiting: set[Notice] = set()
        self._making: set[Notice] = set()
        self._maker = 0

    def add(self, merged: Iterable[Notice]) -> None:
        """Notices of jobs whose records are merged."""
        self._waiting.update(merged)

    def __contains__(self, notice: Notice) -> bool:
        return notice in self._waiting or notice in self._making

    @property
    def busy(self) -> bool:
        """A process makes some."""
        return self._maker != 0

    def make(self, begin: bool) -> set[Notice]:
        """Those that are done with; begin: others may be begun."""
        done: set[Notice] = set()
        if self._maker and os.waitpid(self._maker, os.WNOHANG)[0]:
            done, self._making, self._maker = self._making, set(), 0
        if self._waiting and begin and not self._maker:
            jobs = {notice.run.job for notice in self._waiting}
            if hdf5.waiting(self._config, jobs):
                self._making, self._maker = self._waiting, self._fork(jobs)
            else:
                done |= self._waiting
            self._waiting = set()
        return done

    def wait(self) -> None:
        """For those that are being made: another process would make them, too."""
        if self._maker:
            os.waitpid(self._maker, 0)

    def _fork(self, jobs: set[int]) -> int:
        child = os.fork()
        if child == 0:
            try:
                hdf5.merge(self._config, jobs)
            finally:  # what could not be made waits, and is said
                sys.stderr.flush()
                os._exit(0)
        return child


def run(config: Config, places: Sequence[Path], program: str | None, wait_s: float) -> int:
    """Merges until no job has ended for LINGER_S: 0, for what was rejected is said and kept; or
    for LIFE_S: ANEW."""
    if not any(folder.is_dir() for folder in places):
        raise UsageError(f"--ended: {places[0]}: no such folder: EpilogSlurmctld makes it")
    notices, profiles = Notices(config, places, wait_s), Profiles(config)
    comments = Comments(config.record_dir, program)
    _mend(config, comments)
    try:
        return _merge_until_quiet(config, notices, comments, profiles)
    finally:
        profiles.wait()


def _mend(config: Config, comments: Comments) -> None:
    """Comments that a power cut spoilt are made again, where the store has such jobs."""
    if spoilt := comments.spoilt():
        jobs = {int(path.name.lstrip(".")) for path in spoilt}
        asked = tuple(merge.JobRun(job, nodes.SlurmRun()) for job in jobs)
        merge.merge(config, merge.Request(asked, print_comment=True), comments.leave)
        for path in comments.spoilt():
            path.unlink(missing_ok=True)


def _merge_until_quiet(
    config: Config, notices: Notices, comments: Comments, profiles: Profiles
) -> int:
    busy_s = time.monotonic()
    end_s = busy_s + LIFE_S
    while (now_s := time.monotonic()) < busy_s + LINGER_S:
        is_over = now_s >= end_s  # then only what is under way is waited for
        waiting = [notice for notice in notices.look() if notice not in profiles]
        if due := [] if is_over else notices.due(waiting):
            request = merge.Request(tuple(one.run for one in due), print_comment=True)
            merge.merge(config, request, comments.leave)
            profiles.add(due)
        notices.settle(profiles.make(begin=not is_over))
        telling = comments.tell(begin=not is_over)
        if is_over and not (telling or profiles.busy):
            return ANEW
        if waiting or telling or profiles.busy:
            busy_s = time.monotonic()
        time.sleep(LOOK_S)
    return 0
