# Slurm's commands that do not answer: who asked them is told, and does not wait for ever.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import pytest
from joulemark.accounting.jobid import JobId
from joulemark.errors import UserError
from joulemark.slurm import allocations, command, jobenergy, queue


@pytest.fixture
def hanging(tmp_path, monkeypatch):
    """None of them ends."""
    for name in ("sacct", "sacctmgr", "squeue"):
        (tmp_path / name).write_text("#!/bin/sh\nexec sleep 60\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(command, "ANSWER_S", 0.1)
    monkeypatch.setattr(jobenergy, "ANSWER_S", 0.1)


@pytest.mark.timeout(20)
def test_none_is_waited_for_without_end(hanging):
    with pytest.raises(UserError, match=r"sacctmgr: no answer in 0\.1 s: why"):
        command.answer("why", "sacctmgr", "show", "configuration")
    with pytest.raises(UserError, match=r"squeue: no answer in 0\.1 s: does slurmctld"):
        queue.running([])
    said = "sacct: no answer in 0.1 s: does slurmdbd run?"
    assert allocations.ask("demo", [JobId.parse("12")]) == ([], said)
    assert jobenergy.of_ended([12]) is None


def test_one_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match="squeue: not found on PATH: install Slurm's commands"):
        queue.running([])
