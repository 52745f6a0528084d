"""Instrument `ipmi` against OpenIPMI's ipmi_sim, over the LAN."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import wait_for
from tests.instruments.bmc import PASSWORD, USER, Simulator, password_file, seen_in_process_list
from tests.instruments.watching import Watch

# ipmi_sim asks for it: it checks the privilege of the open request, and lets only admin use DCMI
LAN = "privilege: admin, workarounds: opensesspriv, period_s: 0.2, timeout_s: 5"
QUICK = LAN.replace("timeout_s: 5", "timeout_s: 1")  # where no answer is waited for


@pytest.fixture
def bmc(tmp_path: Path) -> Iterator[Simulator]:
    simulator = Simulator(tmp_path / "bmc")
    yield simulator.start()
    simulator.kill()


@pytest.fixture
def entry(tmp_path: Path) -> Callable[..., str]:
    """One line of `instruments:` for this simulator."""

    def write(bmc: Simulator, channels: str = "", lan: str = LAN, name: str = "bmc") -> str:
        peer = f"host: 127.0.0.1, port: {bmc.port}, user: {USER}"
        secret = f"password_file: {password_file(tmp_path)}"
        more = f", channels: [{channels}]" if channels else ""
        return f"- {{name: {name}, type: ipmi, {peer}, {secret}, {lan}{more}}}\n"

    return write


@pytest.fixture
def watch(joulemarkd: Path, configuration: Callable[[str], Path]) -> Callable[[str], Watch]:
    return lambda instruments: Watch(joulemarkd, configuration(instruments))


BOTH = "{name: psu, sensor: PS1 Input}, {name: node}"


def test_reads_dcmi_and_a_sensor(bmc: Simulator, entry: Callable, watch: Callable) -> None:
    with watch(entry(bmc, BOTH)) as seen:
        wait_for(lambda: seen.values("node") and seen.values("psu"), what="first readings")
        assert seen.values("node")[0] == 321.0 and seen.values("psu")[0] == 120.0
        reading = seen.readings()[0]
        assert reading["unit"] == "W" and reading["method"] == "integrated"
        bmc.set_raw(200)
        bmc.set_dcmi("65535")
        wait_for(lambda: seen.values("node")[-1] == 65535.0, what="DCMI's new value")
        wait_for(lambda: seen.values("psu")[-1] == 400.0, what="the sensor's new value")
        assert seen.faults() == []


def test_finds_a_sensor_by_its_record(bmc: Simulator, entry: Callable, probe: Callable) -> None:
    assert probe(entry(bmc, "{name: psu, sensor: 1}"), count=2).values() == [120.0, 120.0]


def test_one_channel_by_dcmi_where_none_is_named(
    bmc: Simulator, entry: Callable, probe: Callable
) -> None:
    done = probe(entry(bmc))
    assert done.status == 0 and [reading["channel"] for reading in done.readings] == ["dcmi"]
    assert done.values() == [321.0]


@pytest.mark.parametrize(
    ("channel", "part"),
    [
        ("{name: c, sensor: PS9}", "no sensor 'PS9'; those in watts are: PS1 Input, Rack Input"),
        ("{name: c, sensor: 12V}", "sensor '12V' is not in watts"),
        ("{name: c, sensor: Rack Input}", "moves in steps of 40 W"),
    ],
)
def test_names_a_wrong_sensor(
    bmc: Simulator, entry: Callable, probe: Callable, channel: str, part: str
) -> None:
    done = probe(entry(bmc, channel + ", {name: node}"))
    assert done.status == 1 and part in done.faults()[0]
    assert done.values("node") == [321.0]  # the others are read


def test_a_coarse_sensor_with_its_error_given(
    bmc: Simulator, entry: Callable, probe: Callable
) -> None:
    channel = "{name: rack, sensor: Rack Input, error: {resolution_w: 40}}"
    assert probe(entry(bmc, channel)).values() == [2400.0]


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        ("", "no DCMI power reading"),
        ("raw c0", "busy"),
        ("raw 00 dc 41", "garbage"),
        ("raw 00 00 41 01 41 01 41 01 41 01 0 0 0 0 0 0 0 0 40", "garbage"),
        ("raw 00 dc 41 01 41 01 41 01 41 01 0 0 0 0 0 0 0 0 00", "does not measure"),
    ],
)
def test_names_a_sick_answer_and_recovers(
    bmc: Simulator, entry: Callable, watch: Callable, answer: str, part: str
) -> None:
    with watch(entry(bmc)) as seen:
        wait_for(seen.values, what="a first reading")
        bmc.set_dcmi(answer)
        seen.wait_fault(part)
        bmc.set_dcmi("77")
        wait_for(lambda: seen.values()[-1] == 77.0, what="the next good value")


def test_survives_a_bmc_that_restarts(bmc: Simulator, entry: Callable, watch: Callable) -> None:
    with watch(entry(bmc, BOTH, QUICK)) as seen:
        wait_for(lambda: seen.values("psu"), what="a first reading")
        bmc.kill()
        seen.wait_fault("no answer")
        bmc.set_raw(30)
        bmc.start()
        wait_for(lambda: seen.values("psu")[-1] == 60.0, what="the new BMC's value")
        wait_for(lambda: seen.values("node")[-1] == 321.0)


def test_a_hung_bmc_is_late_and_delays_nobody(
    bmc: Simulator, entry: Callable, watch: Callable, tmp_path: Path
) -> None:
    other = Simulator(tmp_path / "other").start()
    try:
        channel, well = "{name: hung}", "{name: well}"
        instruments = entry(bmc, channel, QUICK) + entry(other, well, QUICK, name="other")
        with watch(instruments) as seen:
            wait_for(lambda: seen.values("hung") and seen.values("well"), what="first readings")
            bmc.send(signal.SIGSTOP)
            seen.wait_fault("no answer")
            before = len(seen.values("well"))
            wait_for(lambda: len(seen.values("well")) > before + 5, what="the other's readings")
            bmc.set_dcmi("55")
            bmc.send(signal.SIGCONT)
            wait_for(lambda: seen.values("hung")[-1] == 55.0, what="the value after the hang")
    finally:
        other.kill()


def test_a_wrong_password_is_refused_once_and_kept_secret(
    bmc: Simulator, entry: Callable, watch: Callable, tmp_path: Path
) -> None:
    instruments = entry(bmc)
    wrong = "not-the-password-9"
    password_file(tmp_path, wrong)
    with watch(instruments) as seen:
        assert "check 'password_file'" in seen.wait_fault("password invalid")
        wait_for(lambda: len(seen.faults()) > 5, what="more readings")
        assert not seen_in_process_list(wrong)
        said = seen.output.read_text() + seen.errors.read_text()
        assert wrong not in said


def test_the_password_shows_nowhere(
    bmc: Simulator, entry: Callable, watch: Callable, tmp_path: Path
) -> None:
    with watch(entry(bmc, lan=QUICK)) as seen:
        wait_for(seen.values, what="a first reading")
        assert not seen_in_process_list(PASSWORD)
        bmc.kill()
        seen.wait_fault("no answer")
        assert PASSWORD not in seen.output.read_text() + seen.errors.read_text()


def test_refuses_a_password_that_others_may_read(
    bmc: Simulator, entry: Callable, probe: Callable, tmp_path: Path
) -> None:
    instruments = entry(bmc)
    password_file(tmp_path, mode=0o644)
    done = probe(instruments)
    assert done.status == 1 and "others may read it; chmod 600" in done.faults()[0]


def test_names_a_privilege_that_is_too_low(
    bmc: Simulator, entry: Callable, probe: Callable
) -> None:
    done = probe(entry(bmc, lan=LAN.replace("admin", "user")))
    assert "set 'privilege: operator'" in done.faults()[0]


def test_names_a_node_without_a_bmc(probe: Callable) -> None:
    if Path("/dev/ipmi0").exists():
        pytest.skip("this machine has a BMC, /dev/ipmi0")
    done = probe("- {type: ipmi}\n")
    assert done.status == 1 and "load ipmi_si and ipmi_devintf" in done.faults()[0]
