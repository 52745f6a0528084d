"""`joulemark calibrate`: a channel beside a meter whose gain and offset are known, and this
machine's own CPUs."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT, wait_for
from tests.cluster.processes import start_ticks
from tests.peers.secret import seen_in_process_list

SOURCES = CHECKOUT / "packages/joulemark/src"
QUICK = ("--seconds", "1.5", "--settle", "0.5", "--loads", "4")
#: prints the watts that the load has written
METER = "  - {{type: exec, name: {name}, every: call, command: cat {file}, period_s: 0.1{more}}}\n"


@pytest.fixture
def prepared(joulemarkd: Path, configuration: Callable[[str], Path]) -> Callable[..., dict]:
    """`subprocess.run(**prepared(instruments, "a/exec", ...))`"""

    def prepare(instruments: str, *words: object) -> dict:
        config = str(configuration(instruments))
        env = {**os.environ, "JOULEMARK_CONFIG": config, "PYTHONPATH": str(SOURCES)}
        command = [sys.executable, "-m", "joulemark", "calibrate", "--daemon", joulemarkd, *words]
        return {"args": list(map(str, command)), "env": env, "text": True}

    return prepare


@pytest.fixture
def calibrate(prepared) -> Callable[..., subprocess.CompletedProcess]:
    """`calibrate(instruments, "a/exec", ...)`"""
    return lambda *words: subprocess.run(**prepared(*words), capture_output=True, timeout=120)


@pytest.fixture
def rig(tmp_path: Path) -> tuple[str, str]:
    """A channel that shows 100 to 400 W, and a meter that shows 1.05 times that and 7 W more; the
    load that sets both."""
    own, meter = tmp_path / "own", tmp_path / "meter"
    own.write_text("100\n")
    meter.write_text("112\n")
    exact = ", error: {relative: 0.002, offset_w: 0, resolution_w: 0, jitter_s: 0}"
    text = METER.format(name="own", file=own, more="")
    text += METER.format(name="meter", file=meter, more=exact)
    new = tmp_path / "new"
    watts = 'echo $(awk "BEGIN {{print {of}}}") >{new}; mv {new} {file}; '
    load = watts.format(of="100 + 300 * $JM_LOAD", new=new, file=own)
    load += watts.format(of="1.05 * (100 + 300 * $JM_LOAD) + 7", new=new, file=meter)
    return text, load + f"echo $$ >>{tmp_path}/loads; exec sleep 600"


def test_a_known_gain_and_offset_are_found(calibrate, rig, tmp_path):
    instruments, load = rig
    words = ("own/exec", "--against", "meter/exec", *QUICK, "--load", load)
    done = calibrate(instruments, *words, "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["load"] for row in rows] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert [row["channel_w"] for row in rows] == pytest.approx([100, 200, 300, 400])
    assert [row["meter_w"] for row in rows] == pytest.approx([112, 217, 322, 427])
    for row in rows:
        assert row["gain"] == pytest.approx(1.05) and row["offset_w"] == pytest.approx(7)
        assert row["budget_relative"] == pytest.approx(0.052)
        assert row["budget_offset_w"] == pytest.approx(7, abs=1e-6)
    pids = map(int, (tmp_path / "loads").read_text().split())
    assert [pid for pid in pids if start_ticks(pid)] == [], "a load is left"


def test_it_says_what_to_write_where(calibrate, rig):
    instruments, load = rig
    done = calibrate(instruments, "own/exec", "--against", "meter/exec", *QUICK, "--load", load)
    assert "METER = 1.0500 (+- 0.0000) x CHANNEL +7.00 W (+- 0.00 W), 95 %" in done.stdout
    assert "error: {relative: 0.0520, offset_w: 7.00}" in done.stdout


def test_this_machines_cpus_are_loaded(calibrate, tmp_path):
    """Both count who is busy for it: 100 W each."""
    busy = tmp_path / "busy"
    count = 'grep -lsz "while os.getppid() == [0-9]*: pass" /proc/[0-9]*/cmdline | wc -l'
    busy.write_text(f"echo $((100 * $({count}) + $1))\n")
    text = METER.replace("cat {file}", f"sh {busy} {{file}}")
    both = text.format(name="a", file=100, more="") + text.format(name="b", file=120, more="")
    words = ("a/exec", "--against", "b/exec", "--json", *QUICK[:-2], "--loads", "3")
    done = calibrate(both, *words)
    assert done.returncode == 0, done.stderr
    rows, cpus = json.loads(done.stdout), len(os.sched_getaffinity(0))
    expected = [100 + 100 * round(share * cpus) for share in (0, 0.5, 1)]
    assert [row["channel_w"] for row in rows] == pytest.approx(expected)
    assert rows[0]["gain"] == pytest.approx(1) and rows[0]["offset_w"] == pytest.approx(20)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_load_outlives_it(prepared, rig, how):
    quick = ("--loads", "3", "--settle", "0.1", "--seconds", "0.6")
    words = prepared(rig[0], "own/exec", "--against", "meter/exec", *quick)
    with subprocess.Popen(**words, stderr=subprocess.DEVNULL) as process:
        busy = f"while os.getppid() == {process.pid}: pass"
        wait_for(lambda: seen_in_process_list(busy), what="a load")
        process.send_signal(how)
    wait_for(lambda: not seen_in_process_list(busy), what="the load's end")


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        (("own/x", "--against", "meter/exec"), 2, "'own/x' is no channel; there are own/exec, me"),
        (("own/exec", "--against", "own/exec"), 2, "is of CHANNEL itself"),
        (("own/exec", "--against", "meter/exec", "--loads", "2"), 2, "a number from 3 to 100"),
        (("own/exec", "--against", "meter/exec", "--load", "sleep 9"), 1, "too little to tell"),
        (
            ("own/exec", "--against", "meter/exec", "--load", "exit 3"),
            1,
            "ended with exit status 3",
        ),
    ],
)
def test_what_cannot_be_is_named(calibrate, rig, words, status, complaint):
    done = calibrate(rig[0], *QUICK, *words)
    assert done.returncode == status and complaint in done.stderr, done.stderr
