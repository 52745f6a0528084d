"""The runner of `make test`: what it says of a stage that hangs."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suite.outcome import State
from tests.suite.runner import Suite
from tests.suite.stages import python_tests

TESTS = """
import time

def test_before():
    pass

def test_that_hangs():
    time.sleep(600)
"""


def test_a_stage_that_hangs_is_named_with_its_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOULEMARK_RUN", "")  # a suite sets it; this one is no part of the run
    (tmp_path / "test_planted.py").write_text(TESTS)
    hangs = python_tests("planted", "only", 15, str(tmp_path))
    after = python_tests("after", "only", 60, f"{tmp_path}/test_planted.py::test_before")
    suite = Suite(tmp_path / "results", limit_s=120)
    suite.run([hangs, after], [["only"]])
    of_hung, of_after = suite.outcomes.values()
    assert of_hung.state is State.HUNG and of_hung.passed == 1
    assert of_hung.failures == ["planted: hung: test_that_hangs"]
    assert of_after.state is State.PASSED and of_after.passed == 1  # it stops no other
    assert not suite.passed
