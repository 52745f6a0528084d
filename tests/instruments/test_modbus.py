"""Power meters over Modbus TCP and RTU, from a pymodbus server."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import resource
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import wait_for
from tests.peers.joulemarkd import connect
from tests.peers.lines import Cable
from tests.peers.modbus import INPUT, Meter

pytest.importorskip("pymodbus", reason="pymodbus is not installed: no Modbus server to read")

SELECT_MAX = 1024  # descriptors that select() knows: 0 to 1023


@pytest.fixture
def off(tmp_path: Path) -> Iterator[Meter]:
    """Nobody has switched it on yet."""
    made = Meter(tmp_path)
    yield made
    made.kill()


@pytest.fixture
def meter(off: Meter) -> Meter:
    return off.start()


def entry(keys: str) -> str:
    return f"  - {{name: rack, type: modbus, timeout_s: 5, {keys}}}\n"


def test_the_preset_of_a_lumel_p43(meter, probe):
    meter.set(7058, ">f", 4321.5)
    meter.set(4048, ">I", 123456)  # 100 Wh each
    keys = f"host: '{meter.host}', preset: lumel-p43"
    done = probe(entry(f"{keys}, channels: [{{name: p}}, {{name: e, quantity: energy}}]"))
    assert done.status == 0, done.faults()
    assert done.values("p") == [4321.5]
    assert done.values("e") == [123456 * 360000.0]


def test_the_only_channel_needs_no_list(meter, probe):
    meter.set(10, ">H", 77)
    done = probe(entry(f"host: '{meter.host}', register: 10"), count=2)
    assert done.values("power") == [77.0, 77.0]


@pytest.mark.parametrize(
    ("form", "name", "value"),
    [
        (">h", "int16", 1234),
        (">H", "uint16", 65000),
        (">i", "int32", 70000),
        (">I", "uint32", 400000000),
        (">q", "int64", 70001),
        (">Q", "uint64", 70002),
        (">f", "float32", 230.25),
        (">d", "float64", 230.125),
    ],
)
def test_every_format(meter, probe, form, name, value):
    meter.set(100, form, value, INPUT)
    keys = f"host: '{meter.host}', register: 100, function: input, format: {name}"
    assert probe(entry(f"{keys}, scale: 0.5")).values() == [value / 2]


def test_word_and_byte_order(meter, probe):
    high, low = struct.unpack(">HH", struct.pack(">f", 99.5))
    meter.set(0, ">I", low << 16 | high)
    meter.set(2, "<f", 99.5)  # both orders turned round
    common = "format: float32, word_order: little"
    channels = (
        f"{{name: words, register: 0, {common}}}, "
        f"{{name: all, register: 2, {common}, byte_order: little}}"
    )
    done = probe(entry(f"host: '{meter.host}', channels: [{channels}]"))
    assert done.values() == [99.5, 99.5]


@pytest.mark.parametrize(
    ("value", "fault"),
    [(float("nan"), "NaN"), (float("inf"), "infinity"), (1e20, "1e20"), (-3.0, "negative")],
)
def test_a_float_that_is_no_power_is_named(meter, probe, value, fault):
    meter.set(0, ">f", value)
    meter.set(2, ">f", 5.0)
    channels = "{name: bad, register: 0}, {name: good, register: 2}"
    keys = f"host: '{meter.host}', format: float32, channels: [{channels}]"
    done = probe(entry(keys))
    assert [fault in text for text in done.faults()] == [True], done.faults()
    assert done.values("good") == [5.0]


def test_a_register_that_is_not_there_costs_only_its_channel(meter, probe):
    meter.set(5, ">H", 50)
    channels = "{name: lost, register: 900}, {name: good, register: 5}"
    done = probe(entry(f"host: '{meter.host}', channels: [{channels}]"))
    assert "register 900" in done.faults()[0]
    assert done.values("good") == [50.0]


def test_a_server_that_hangs_and_comes_back(meter, watch):
    meter.set(0, ">H", 8)
    keys = f"host: '{meter.host}', register: 0, period_s: 0.1"
    with watch(f"  - {{name: rack, type: modbus, timeout_s: 0.5, {keys}}}\n") as seen:
        seen.wait_value(8.0)
        with seen.new_fault("no answer in time"):
            meter.send(signal.SIGSTOP)
        meter.send(signal.SIGCONT)
        meter.set(0, ">H", 9)
        seen.wait_value(9.0)


def test_nobody_listens_until_the_meter_is_switched_on(off, watch):
    with watch(entry(f"host: '{off.host}', register: 0, period_s: 0.1")) as seen:
        seen.wait_fault("cannot be reached")
        off.start().set(0, ">H", 61)
        seen.wait_value(61.0)


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3 * SELECT_MAX:
        pytest.skip(f"no process may have more than {hard} files open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_connections_leave_a_meters_library_its_descriptors(off, daemon, many_files):
    """libmodbus waits by select(), which ends the process at one that it does not know."""
    with contextlib.ExitStack() as stack:
        running = daemon(entry(f"host: '{off.host}', register: 0, period_s: 0.1"))
        stack.enter_context(running)
        wait_for(lambda: "cannot be reached" in running.log(), what="the meter to be missed")
        for _ in range(SELECT_MAX):
            link = stack.enter_context(connect(running.socket))
        link.send(b"status")
        assert link.recv(4096).startswith(b"ok"), "all of them are served"
        off.start().set(0, ">H", 61)
        wait_for(
            lambda: running.process.poll() is not None or "reads well again" in running.log(),
            what="the meter to be read",
        )
        assert running.process.poll() is None, running.log()


def test_a_bus_of_meters_where_one_is_silent(tmp_path, probe):
    with Cable() as cable, Meter(tmp_path, cable.paths[0]) as meter:
        meter.set(0, ">f", 10.5, slave=1)
        meter.set(0, ">f", 20.5, slave=2)
        channels = "{name: n1, slave: 1}, {name: n2, slave: 2}, {name: n3, slave: 99}"
        keys = f"device: {cable.paths[1]}, baud: 9600, parity: even, format: float32"
        done = probe(entry(f"{keys}, register: 0, channels: [{channels}]"), count=2)
    assert done.values("n1") == [10.5, 10.5], done.faults()
    assert done.values("n2") == [20.5, 20.5]
    assert all("slave 99" in fault for fault in done.faults())
    assert len(done.faults()) == 2
