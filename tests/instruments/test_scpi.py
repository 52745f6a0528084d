"""Yokogawa's power meters on a serial line, over TCP and USB, by their published commands."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import socket

import pytest

from tests.cluster.ports import free_port
from tests.peers.lines import Line, OnNet
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


def test_a_meter_at_a_port_of_tcp(probe):
    with Wt310() as meter, OnNet(meter.path) as net:
        text = f"  - {{type: scpi, host: '127.0.0.1:{net.port}', model: wt310, timeout_s: 5}}\n"
        done = probe(text, count=3)
        assert done.values() == [230.5] * 3, done.faults()
        assert net.callers == 1


def test_a_meter_that_hangs_up_is_called_again(watch):
    with Wt310() as meter:
        keys = "model: wt310, period_s: 0.1, timeout_s: 1"
        with OnNet(meter.path) as net:
            text = f"  - {{type: scpi, name: bench, host: 'localhost:{net.port}', {keys}}}\n"
            with watch(text) as seen:
                seen.wait_value(230.5)
                with seen.new_fault("hung up"), socket.create_connection(("127.0.0.1", net.port)):
                    pass  # another caller: this one is hung up on
                meter.watts = "18.0E+00"
                seen.wait_value(18.0)


def test_a_late_answer_over_tcp_is_not_the_next_ones(watch):
    with Wt310() as meter, OnNet(meter.path) as net:
        keys = f"host: '127.0.0.1:{net.port}', model: wt310, period_s: 0.1, timeout_s: 0.2"
        with watch(f"  - {{type: scpi, name: bench, {keys}}}\n") as seen:
            seen.wait_value(230.5)
            with seen.new_fault("no whole answer within 0.2 s; is the meter on?"):
                meter.mood = "late"
            meter.watts = "18.0E+00"
            meter.mood = ""
            seen.wait_value(18.0)


def test_a_host_that_nobody_is_at(probe):
    done = probe(f"  - {{type: scpi, host: '127.0.0.1:{free_port()}', model: wt310}}\n")
    assert "no connection: Connection refused; set 'host'" in done.faults()[0]
    done = probe("  - {type: scpi, host: no-such-meter.invalid, model: wt310}\n")
    assert "no-such-meter.invalid: is not known" in done.faults()[0]


@pytest.mark.parametrize("where", ["", "device: /dev/null, host: meter, "])
def test_a_meter_is_at_one_place(where, probe):
    done = probe(f"  - {{type: scpi, {where}model: wt310}}\n")
    assert "either 'device', /dev/ttyUSB0 or /dev/usbtmc0, or 'host'" in done.faults()[0]


def test_messages_of_usb_are_whole(tmp_path, probe):
    """The framing alone: no driver is here, a pseudo terminal stands for /dev/usbtmc0."""
    with Wt310() as meter:
        (tmp_path / "usbtmc0").symlink_to(meter.path)
        text = f"  - {{type: scpi, device: {tmp_path}/usbtmc0, model: wt310, timeout_s: 5}}\n"
        done = probe(text, count=3)
    assert done.values() == [230.5] * 3, done.faults()
    assert not any("\r" in heard for heard in meter.heard)


def test_nobody_on_the_line(probe):
    line = Line()
    try:
        done = probe(f"  - {{type: scpi, device: {line.path}, model: wt310, timeout_s: 0.3}}\n")
    finally:
        line.close()
    assert "is the meter on" in done.faults()[0]
