"""The runner of `make test`: what it says of a stage that hangs, and when failures end one."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest

from tests.suite.outcome import Outcome, State
from tests.suite.runner import SPARE, Run, Stage, Suite
from tests.suite.stages import ctest, python_tests

TESTS = """
import time

def test_before(record_property):
    record_property("tally", "jobs 52\\nlost 0 J")

def test_that_hangs():
    time.sleep(600)
"""

C_TESTS = """
cmake_minimum_required(VERSION 3.18)
project(planted NONE)
enable_testing()
foreach(n RANGE 1 FAILING)
  add_test(NAME passes.${n} COMMAND ${CMAKE_COMMAND} -E true)
  add_test(NAME fails-${n} COMMAND ${CMAKE_COMMAND} -E false)
  set_tests_properties(fails-${n} PROPERTIES COST ${n}) # not run as they are numbered
endforeach()
"""


def test_a_stage_that_hangs_is_named_with_its_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JOULEMARK_RUN", "")  # a suite sets it; this one is no part of the run
    (tmp_path / "test_planted.py").write_text(TESTS)
    hangs = python_tests("planted", "only", 30, str(tmp_path))
    after = python_tests("after", "only", 60, f"{tmp_path}/test_planted.py::test_before")
    suite = Suite(tmp_path / "results", limit_s=120)
    suite.run([hangs, after], [["only"]])
    of_hung, of_after = suite.outcomes.values()
    assert of_hung.state is State.HUNG and of_hung.passed == 1
    assert of_hung.failures == ["planted: hung: test_that_hangs"]
    assert of_after.state is State.PASSED and of_after.passed == 1  # it stops no other
    assert "after: 1 passed, 0 failed, 0 skipped" in (said := capsys.readouterr().out)
    assert "    jobs 52\n    lost 0 J\n" in said
    assert not suite.passed


@pytest.mark.parametrize("failing", [3, 8])
def test_five_failures_end_a_stage_of_ctest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    monkeypatch.setenv("JOULEMARK_RUN", "")
    (tmp_path / "CMakeLists.txt").write_text(C_TESTS.replace("FAILING", str(failing)))
    build = tmp_path / "build"
    subprocess.run(["cmake", "-S", tmp_path, "-B", build], check=True, timeout=60)
    suite = Suite(tmp_path / "results", limit_s=120)
    planted = Stage("planted", "only", 60, lambda run: ctest(run, build, "planted"))
    suite.run([planted], [["only"]])
    outcome = suite.outcomes[planted]
    assert outcome.state is State.FAILED and len(outcome.failures) == min(failing, 5)
    assert f"planted: fails-{failing}" in outcome.failures
    assert len(outcome.seconds_of) == outcome.passed + len(outcome.failures)
    assert outcome.passed == failing if failing < 5 else outcome.passed < failing


def test_a_lane_that_has_ended_takes_what_no_lane_has(tmp_path: Path) -> None:
    suite = Suite(tmp_path / "results", limit_s=60)
    taken_by: dict[str, str] = {}
    both, taken = threading.Event(), threading.Event()
    waits = {"short": both, "long": taken}  # until the other lane has begun; until all is taken
    tells = {"long": both, "spare 1": taken}

    def note(run: Run) -> Outcome:
        name = run.stage.name
        taken_by[name] = threading.current_thread().name
        tells.get(name, threading.Event()).set()
        return Outcome(passed=int(name not in waits or waits[name].wait(30)))

    names = {"short": "a", "long": "b", "spare 0": SPARE, "spare 1": SPARE, "later": "c"}
    suite.run([Stage(name, lane, 60, note) for name, lane in names.items()], [["a", "b"], ["c"]])
    assert sum(outcome.passed for outcome in suite.outcomes.values()) == len(names)
    assert taken_by["spare 0"] == taken_by["spare 1"] == taken_by["short"] != taken_by["long"]
