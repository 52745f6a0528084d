"""Runs stages in lanes, each in time, and reports on every one of them, whatever happened."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import collections
import os
import re
import shutil
import subprocess
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import CHECKOUT, end_children, run_child
from tests.cluster.supervisor import LATE
from tests.skips import forbidden
from tests.suite.outcome import Outcome, State, exit_status

SPARE = "spare"  # no lane of its own: the first phase's lanes take these when theirs have ended
LINES_OF_A_FAILURE = 60
SLOWEST = 10


class Late(Exception):
    """The stage's time is up; the log describes what hung."""


@dataclass(frozen=True)
class Stage:
    name: str
    lane: str
    limit_s: float  # far above its usual time
    run: Callable[[Run], Outcome]
    long: bool = False  # a part of `make test-long` alone


class Run:
    """One stage at work: its log, its time."""

    def __init__(self, stage: Stage, results: Path, deadline: float) -> None:
        self.stage = stage
        self.log = results / f"{stage.name.replace(' ', '-')}.log"
        self.junit = self.log.with_suffix(".xml")
        self.deadline = min(deadline, time.monotonic() + stage.limit_s)
        self.failures: list[str] = []  # known before the stage's end
        for old in (self.log, self.junit):
            old.unlink(missing_ok=True)

    def program(self, words: Sequence[str | Path], cwd: Path = CHECKOUT, **more: object) -> int:
        """A program's exit status; what it says is added to the log."""
        left_s = self.deadline - time.monotonic()
        with self.log.open("a") as output:
            status = run_child(
                words, left_s, cwd=cwd, stdout=output, stderr=subprocess.STDOUT, **more
            )
        if status == LATE and time.monotonic() >= self.deadline:
            raise Late
        return status

    def check(self, words: Sequence[str | Path], no_source: int | None = None) -> Outcome:
        """A program that passes or fails as one test; the exit status no_source skips it."""
        status = self.program(words)
        if not status:
            return Outcome(passed=1)
        if status == no_source:
            return Outcome(skips=[self.log.read_text().strip()])
        return Outcome(failures=[f"{self.stage.name}: {exit_status(status)}"])


class Suite:
    """Lanes run side by side, the stages of a lane one after the other. Those of SPARE are
    for whichever lane has ended its own."""

    def __init__(self, results: Path, limit_s: float) -> None:
        self.results = results
        self.deadline = time.monotonic() + limit_s
        self.began = time.monotonic()
        self.outcomes: dict[Stage, Outcome] = {}
        self.seconds_of_lane: dict[str, float] = {}

    def run(self, chosen: Sequence[Stage], phases: Sequence[Sequence[str]]) -> None:
        self.outcomes = {stage: Outcome() for stage in chosen}
        self.results.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.results / "unavailable", ignore_errors=True)
        # what one build cannot get, none waits for
        os.environ["JOULEMARK_RUN"] = str(self.results)
        os.environ["PYTHONFAULTHANDLER"] = "1"  # what hangs is asked where it stands
        spare = collections.deque(stage for stage in chosen if stage.lane == SPARE)
        for phase in phases:
            lanes = {lane: [stage for stage in chosen if stage.lane == lane] for lane in phase}
            with ThreadPoolExecutor(len(lanes)) as pool:
                running = [
                    pool.submit(self._lane, name, collections.deque(stages), spare)
                    for name, stages in lanes.items()
                    if stages or spare
                ]
                try:
                    for lane in running:
                        lane.result()
                except BaseException:
                    end_children()
                    raise

    def _lane(self, name: str, *queues: collections.deque[Stage]) -> None:
        began = time.monotonic()
        for queue in queues:
            while time.monotonic() < self.deadline:
                try:
                    stage = queue.popleft()
                except IndexError:  # another lane may have taken the last
                    break
                self.outcomes[stage] = self._stage(stage)
        self.seconds_of_lane[name] = time.monotonic() - began

    def _stage(self, stage: Stage) -> Outcome:
        began = time.monotonic()
        run = Run(stage, self.results, self.deadline)
        try:
            outcome = stage.run(run)
            for reason in forbidden(outcome.skips):
                outcome.failures.append(
                    f"{stage.name}: tests/skips.txt has no such skip: {reason}"
                )
            outcome.state = State.FAILED if outcome.failures else State.PASSED
        except Late:
            standing = ", ".join(hanging_tests(run.log)) or "see its log"
            # pytest's word and ctest's for those before it
            passed = len(re.findall(r" PASSED | Passed ", run.log.read_text(errors="replace")))
            failures = [*run.failures, f"{stage.name}: hung: {standing}"]
            outcome = Outcome(passed, failures, state=State.HUNG)
        except Exception:
            with run.log.open("a") as output:
                traceback.print_exc(file=output)
            outcome = Outcome(failures=[f"{stage.name}: the runner failed"], state=State.FAILED)
        outcome.seconds = time.monotonic() - began
        lines = [f"{stage.name}: {outcome}, {outcome.seconds:.1f} s"]
        lines += [f"    {line}" for tally in outcome.tallies for line in tally.splitlines()]
        if outcome.failures:
            lines += [*(f"    {line}" for line in end_of(run.log)), f"    log: {run.log}"]
        print("\n".join(lines), flush=True)  # one call: lanes do not mix their lines
        return outcome

    def report(self) -> Outcome:
        """Every stage that did not pass by name; the slowest tests; the sums."""
        total = Outcome()
        for outcome in self.outcomes.values():
            total.add(outcome)
        print(f"\nthe slowest {SLOWEST} tests:" if total.seconds_of else "")
        for title, seconds in collections.Counter(total.seconds_of).most_common(SLOWEST):
            print(f"    {seconds:6.1f} s  {title}")
        for reason, count in collections.Counter(total.skips).most_common():
            print(f"SKIPPED {count}: {reason}")
        for failure in total.failures:
            print(f"FAILED {failure}")
        for state in (State.FAILED, State.HUNG, State.NOT_BEGUN):
            names = [stage.name for stage, of in self.outcomes.items() if of.state is state]
            if names:
                print(f"stages {state.value}: {', '.join(names)}")
        lanes = ", ".join(f"{lane} {s:.0f} s" for lane, s in self.seconds_of_lane.items())
        print(f"{total}, in {time.monotonic() - self.began:.0f} s (lanes: {lanes})")
        return total

    @property
    def passed(self) -> bool:
        return all(outcome.state is State.PASSED for outcome in self.outcomes.values())


def end_of(log: Path) -> list[str]:
    """The last lines; of what hung, all that was found out about it and the lines before."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return lines[max(_hung(lines) - LINES_OF_A_FAILURE, 0) :]


def hanging_tests(log: Path) -> list[str]:
    """Those that the stacks of a stage that hung stand in."""
    lines = log.read_text(errors="replace").splitlines()
    return sorted(set(re.findall(r" in (test_\w+)", "\n".join(lines[_hung(lines) :]))))


def _hung(lines: Sequence[str]) -> int:
    """The line from which on a supervisor describes what is late."""
    return next((n for n, line in enumerate(lines) if line.startswith("HUNG: ")), len(lines))
