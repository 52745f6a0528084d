"""`joulemark plan` for configured instruments; runs as long as planned, in simulated time."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from joulemark.accounting import plan as planning

from tests.cluster import CHECKOUT

SOURCES = CHECKOUT / "packages/joulemark/src"
METROLOGY = CHECKOUT / "tests/bench/metrology"
PATIENCE_S = 600.0
CASES = 400

METER = "  - {type: ipmi, name: bmc, period_s: 60, supplies: 1, error: %s}\n"


def run(words: list, env: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    everything = {**os.environ, **(env or {})}
    options = {"capture_output": True, "text": True, "timeout": PATIENCE_S}
    return subprocess.run(list(map(str, words)), env=everything, **options)


@pytest.fixture
def plan(joulemarkd: Path, configuration: Callable[[str], Path]) -> Callable[..., tuple]:
    """`plan(instruments, "--accuracy", "2%")`: exit status, what it printed, what it said."""

    def planned(instruments: str, *options: str, daemon: Path = joulemarkd) -> tuple:
        env = {"JOULEMARK_CONFIG": str(configuration(instruments)), "PYTHONPATH": str(SOURCES)}
        words = [sys.executable, "-m", "joulemark", "plan", "--daemon", daemon, *options]
        done = run(words, env)
        return done.returncode, done.stdout, done.stderr

    return planned


def test_coolmuc(plan):
    none = "{relative: 0, offset_w: 0, resolution_w: 0, jitter_s: 0}"
    status, text, said = plan(METER % none, "--accuracy", "5%", "--power", "240")
    assert status == 0, said
    assert "A run must take 2400 s (40:00 min)" in text


def test_an_instrument_that_is_not_good_enough(plan):
    status, text, said = plan("  - type: ipmi\n", "--accuracy", "2%", "--power", "240", "--json")
    assert status == 1, said
    made = json.loads(text)
    assert not made["reachable"] and made["limit"] == "instrument"
    # 5 % and two supplies of 10 W each
    assert abs(made["half_width"] - 2 / 3**0.5 * (0.05 + 20 / 240)) < 1e-6


def test_what_lies_inside_another_is_not_planned_for(plan):
    inner = "  - {type: model, idle_w: 40, full_w: 120, parent: bmc}\n"
    exact = "{relative: 0, offset_w: 0.5, jitter_s: 0}"
    status, text, said = plan(METER % exact + inner, "--accuracy", "5%", "--power", "90", "--json")
    assert status == 0, said
    assert [channel["name"] for channel in json.loads(text)["channels"]] == ["bmc/dcmi"]


def test_a_part_of_a_meter(plan):
    tegra = METER.replace("period_s: 60", "period_s: 0.25, part: 0.125")
    status, text, said = plan(
        tegra % "{relative: 0.002, offset_w: 0.8, resolution_w: 0.08, jitter_s: 0}",
        *("--accuracy", "2%", "--power", "8", "--json"),
    )
    assert status == 0, said
    (channel,) = json.loads(text)["channels"]
    assert abs(channel["offset_w"] - 0.1) < 1e-12
    assert abs(channel["resolution_w"] - 0.01) < 1e-12
    assert channel["relative"] == 0.002


def described() -> list[dict]:
    done = run([METROLOGY, "--describe"])
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("swing", [0, 100])
@pytest.mark.parametrize("accuracy", [0.02, 0.07])
def test_planned_runs_are_as_accurate_as_planned(accuracy, swing):
    """At least 95 of 100 runs. Error bars are estimates too: most, not all, say so."""
    load = planning.Load(power_w=250.0, idle_w=100.0, swing_w=float(swing))
    lengths = {}
    for line in described():
        made = planning.plan([planning.channel_of(line)], load, accuracy)
        if made.run_s is None:
            assert line["error"]["relative"] * 2 / 3**0.5 >= accuracy * 0.9, line
            continue
        lengths[line["instrument"]] = made.run_s
        watts = ["--power", load.power_w, "--idle", load.idle_w, "--swing", load.swing_w]
        words = [METROLOGY, "--instrument", line["instrument"], "--length", made.run_s, *watts]
        done = run([*words, "--accuracy", accuracy, "--cases", CASES])
        found = json.loads(done.stdout)
        assert found["met"] >= 0.95 * CASES, (line, made, found)
        assert found["told"] >= 0.75 * CASES, (line, made, found)
    assert len(lengths) >= 7
