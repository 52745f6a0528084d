# `joulemark calibrate`: the line, its errors, and means of what was read.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joulemark.accounting.calibration import (
    Budget,
    Side,
    Step,
    budget_of,
    fit,
    mean_w,
)
from joulemark.errors import UsageError, UserError

EXACT = Budget(0.0, 0.0)


def steps_of(
    gain: float, offset_w: float, noise_w: float = 0.0, n: int = 5, seed: int = 1
) -> list:
    choose = random.Random(seed)
    watts = [100 + 300 * i / (n - 1) for i in range(n)]
    return [
        Step(i / (n - 1), x, gain * x + offset_w + choose.gauss(0, noise_w))
        for i, x in enumerate(watts)
    ]


@given(st.floats(0.5, 2), st.floats(-50, 50))
def test_an_exact_line_is_found(gain, offset_w):
    line = fit(steps_of(gain, offset_w))
    assert line.gain == pytest.approx(gain, abs=1e-9)
    assert line.offset_w == pytest.approx(offset_w, abs=1e-6)
    assert line.gain_error < 1e-9 and line.residual_w < 1e-6


@pytest.mark.parametrize("n", [3, 5, 12, 20])
def test_errors_hold_the_truth_in_95_of_100(n):
    """By Student's t, however few the steps are."""
    runs, held = 2000, 0
    for seed in range(runs):
        line = fit(steps_of(1.03, 5.0, noise_w=2.0, n=n, seed=seed))
        held += abs(line.gain - 1.03) <= line.gain_error
    assert 0.935 <= held / runs <= 0.965


@given(
    st.lists(st.tuples(st.floats(1, 1000), st.floats(-20, 20)), min_size=3, max_size=12),
    st.floats(0.8, 1.2),
)
def test_the_budget_holds_each_load(pairs, gain):
    steps = [Step(0, x, max(gain * x + off, 0)) for x, off in pairs]
    try:
        budget = budget_of(fit(steps), EXACT)
    except UserError:
        return  # all of one power
    for step in steps:
        limit_w = budget.relative * step.channel_w + budget.offset_w
        assert abs(step.meter_w - step.channel_w) <= limit_w + 1e-6


def test_the_meters_own_limits_are_added():
    line = fit(steps_of(1.02, 4.0))
    plain, worse = budget_of(line, EXACT), budget_of(line, Budget(0.01, 0.5))
    assert worse.relative - plain.relative == pytest.approx(0.01)
    assert worse.offset_w - plain.offset_w == pytest.approx(0.5)
    assert plain.relative == pytest.approx(0.02) and plain.offset_w == pytest.approx(4.0)


def test_a_power_that_hardly_changes_tells_no_gain():
    with pytest.raises(UserError, match="CHANNEL changed by 2 W of 101 W over all loads"):
        fit([Step(0, 100, 100), Step(0.5, 101, 110), Step(1, 102, 120)])


def test_means_are_of_the_readings_within():
    power = [(0.0, 999.0), (1.0, 100.0), (2.0, 200.0), (4.0, 200.0), (9.0, 999.0)]
    assert mean_w(power, False, 0, 1, 4) == pytest.approx((150 + 400) / 3)
    counter = [(0.0, 0.0), (1.0, 900.0), (2.0, 980.0), (3.0, 60.0), (9.0, 1e9)]
    assert mean_w(counter, True, 1000.0, 1, 3) == pytest.approx((80 + 80) / 2)
    assert mean_w(counter, True, 1000.0, 3, 8) is None
    assert mean_w([(1.0, 5.0), (1.0, 6.0)], True, 1000.0, 0, 2) is None


def described(name: str, **error: float) -> dict:
    instrument, channel = name.split("/")
    limits = {"relative": 0.0, "offset_w": 0.0, "resolution_w": 0.0, **error}
    return {"instrument": instrument, "channel": channel, "error": limits}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("rapl", "CHANNEL: 'rapl' is no channel; there are rapl/package-0, rapl/package-1"),
        ("rapl/package-0+rapl/package-0", "has a channel twice"),
    ],
)
def test_a_channel_that_is_none_is_named(text, complaint):
    known = [described("rapl/package-0"), described("rapl/package-1")]
    with pytest.raises(UsageError) as refused:
        Side("CHANNEL", text, known)
    assert complaint in str(refused.value)


def test_a_sum_of_meters_has_the_worst_of_their_limits():
    meters = [described("a/x", relative=0.01, offset_w=1, resolution_w=2), described("b/y")]
    assert Side("--against", "a/x+b/y", meters).budget() == Budget(0.01, 2.0)
