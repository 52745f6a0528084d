"""What came of a stage: counts of its tests, by the JUnit file that its test runner left."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import enum
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.supervisor import LEFT_BEHIND
from tests.skips import reason_of


class State(enum.Enum):
    NOT_BEGUN = "not begun"
    PASSED = "passed"
    FAILED = "failed"
    HUNG = "hung"


@dataclass
class Outcome:
    """Of a stage, or of many, added up."""

    passed: int = 0
    failures: list[str] = field(default_factory=list)
    skips: list[str] = field(default_factory=list)  # reasons
    seconds_of: dict[str, float] = field(default_factory=dict)  # by test
    tallies: list[str] = field(default_factory=list)  # what tests tell beside whether they passed
    state: State = State.NOT_BEGUN
    seconds: float = 0.0

    def add(self, other: Outcome) -> None:
        self.passed += other.passed
        self.failures += other.failures
        self.skips += other.skips
        self.seconds_of.update(other.seconds_of)
        self.tallies += other.tallies

    def __str__(self) -> str:
        return f"{self.passed} passed, {len(self.failures)} failed, {len(self.skips)} skipped"


def exit_status(status: int) -> str:
    return f"exit {status}" + (": it left processes behind" if status == LEFT_BEHIND else "")


def read_junit(path: Path, name: str, status: int) -> Outcome:
    """A test runner that fails without naming a test has failed, too."""
    outcome = Outcome()
    if path.exists():
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            _count(case, f"{name}: {case.get('name')}", path.with_suffix(".log"), outcome)
    if status and not outcome.failures:
        outcome.failures.append(f"{name}: {exit_status(status)}")
    return outcome


def _count(case: ElementTree.Element, title: str, log: Path, outcome: Outcome) -> None:
    outcome.seconds_of[title] = float(case.get("time") or 0)
    told = case.findall("properties/property[@name='tally']")
    outcome.tallies += [str(one.get("value")) for one in told]
    skipped = case.find("skipped")
    if case.find("failure") is not None or case.find("error") is not None:
        outcome.failures.append(title)
    elif skipped is not None:
        reason = reason_of(skipped)
        # a test that only returned 77 is named: its output said why
        named = not reason or reason.startswith("SKIP_RETURN_CODE")
        outcome.skips.append(f"{title}: see {log}" if named else reason)
    elif case.get("status") in ("notrun", "disabled"):
        outcome.skips.append(f"{title} {case.get('status')}")
    else:
        outcome.passed += 1
