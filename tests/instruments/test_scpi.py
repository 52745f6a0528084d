"""Yokogawa's power meters on a serial line, from a peer that speaks their published commands."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import pytest

from tests.peers.lines import Line
from tests.peers.wattmeter import Wattmeter, Wt230, Wt310

MODELS = [("wt310", Wt310), ("wt230", Wt230)]


def entry(meter: Wattmeter, keys: str) -> str:
    return f"  - {{name: bench, type: scpi, device: {meter.path}, {keys}}}\n"


@pytest.mark.parametrize(("name", "model"), MODELS)
def test_power(name, model, probe):
    with model() as meter:
        done = probe(entry(meter, f"model: {name}, timeout_s: 5"), count=3)
    assert done.status == 0, done.faults()
    assert done.values() == [230.5] * 3
    assert meter.remote
    assert sum("ITEM" in text for text in meter.heard) <= 2  # is set up once, then only asked


@pytest.mark.parametrize(("name", "model"), MODELS)
def test_energy_of_the_integrator_which_is_started(name, model, probe):
    with model() as meter:
        done = probe(entry(meter, f"model: {name}, quantity: energy, timeout_s: 5"), count=2)
    assert done.values() == [1.5e3 * 3600] * 2, done.faults()  # watt-hours
    assert meter.integrating
    assert {reading["unit"] for reading in done.readings} == {"J"}


def test_a_meter_that_integrates_already_is_left_running(probe):
    with Wt310() as meter:
        meter.integrating = True
        done = probe(entry(meter, "model: wt310, quantity: energy, timeout_s: 5"))
    assert done.values() == [1.5e3 * 3600], done.faults()
    assert not any("RES" in text.upper() for text in meter.heard)


def test_any_meter_by_its_own_query(probe):
    with Wt310() as meter:
        done = probe(entry(meter, "query: ':NUM:VAL?', item: 3, timeout_s: 5"))
    assert done.values() == [230.5], done.faults()


@pytest.mark.parametrize(
    ("watts", "fault"),
    [
        ("NAN", "no data"),
        ("9.91E+37", "no data"),
        ("INF", "over its range"),
        ("9.9E+37", "over its range"),
        ("-3.2E+00", "negative"),
        ("0x20", "not a number"),
        ("", "no value"),
        ("2.0E+12", "more than"),
    ],
)
def test_an_answer_that_is_no_power_is_named(watts, fault, probe):
    with Wt310() as meter:
        meter.watts = watts
        done = probe(entry(meter, "model: wt310, timeout_s: 2"))
    assert done.status == 1
    assert fault in done.faults()[0]
    assert meter.path in done.faults()[0]


@pytest.mark.parametrize(
    ("mood", "fault"),
    [
        ("mute", "no whole answer"),
        ("half", "no whole answer"),
        ("garbage", "garbage"),
        ("late", "no whole answer"),
    ],
)
def test_a_sick_meter_is_named_and_read_again_when_it_is_well(mood, fault, watch):
    with Wt310() as meter:
        keys = "model: wt310, period_s: 0.1, timeout_s: 0.2"
        with watch(entry(meter, keys)) as seen:
            seen.wait_value(230.5)
            meter.watts = "17.0E+00"
            with seen.new_fault(fault):
                meter.mood = mood
            meter.watts = "18.0E+00"
            meter.mood = ""
            seen.wait_value(18.0)


def test_a_meter_that_refuses_the_set_up_is_named(probe):
    with Wt310() as meter:
        done = probe(entry(meter, "model: wt230, timeout_s: 2"))
    assert "refuses the set-up" in done.faults()[0]
    assert "Undefined header" in done.faults()[0]


def test_a_line_that_is_not_there_yet(probe):
    done = probe("  - {type: scpi, device: /dev/no-such-line, model: wt310}\n")
    assert "/dev/no-such-line" in done.faults()[0]


def test_what_is_no_serial_line(probe):
    done = probe("  - {type: scpi, device: /dev/null, model: wt310}\n")
    assert "no serial line" in done.faults()[0]


def test_nobody_on_the_line(probe):
    line = Line()
    try:
        done = probe(f"  - {{type: scpi, device: {line.path}, model: wt310, timeout_s: 0.3}}\n")
    finally:
        line.close()
    assert "is the meter on" in done.faults()[0]
