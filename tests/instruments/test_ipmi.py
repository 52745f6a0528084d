"""Instrument `ipmi` against OpenIPMI's ipmi_sim, over the LAN."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import signal
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import wait_for
from tests.peers.bmc import PASSWORD, USER, Simulator
from tests.peers.secret import secret, seen_in_process_list

# ipmi_sim asks for it: it checks the privilege of the open request, and lets only admin use DCMI
LAN = "privilege: admin, workarounds: opensesspriv, period_s: 0.2, timeout_s: 5"
QUICK = LAN.replace("timeout_s: 5", "timeout_s: 1")  # where no answer is waited for


@pytest.fixture
def bmc(tmp_path: Path) -> Iterator[Simulator]:
    with Simulator(tmp_path / "bmc") as simulator:
        yield simulator


@pytest.fixture
def entry(tmp_path: Path) -> Callable[..., str]:
    """One line of `instruments:` for this simulator."""

    def write(
        bmc: Simulator, channels: str = "", lan: str = LAN, name: str = "bmc", **words: object
    ) -> str:
        peer = f"host: 127.0.0.1, port: {bmc.port}, user: {USER}"
        file = secret(tmp_path / "password", **{"text": PASSWORD, **words})
        more = f", channels: [{channels}]" if channels else ""
        return f"- {{name: {name}, type: ipmi, {peer}, password_file: {file}, {lan}{more}}}\n"

    return write


BOTH = "{name: psu, sensor: PS1 Input}, {name: node}"


def test_reads_dcmi_and_a_sensor(bmc, entry, watch):
    with watch(entry(bmc, BOTH)) as seen:
        seen.wait_value(channel="node")
        seen.wait_value(channel="psu")
        assert seen.values("node")[0] == 321.0 and seen.values("psu")[0] == 120.0
        reading = seen.readings[0]
        assert reading["unit"] == "W" and reading["method"] == "integrated"
        bmc.set_raw(200)
        bmc.set_dcmi("65535")
        seen.wait_last(65535.0, "node")
        seen.wait_last(400.0, "psu")
        assert seen.faults() == []


def test_finds_a_sensor_by_its_record(bmc, entry, probe):
    assert probe(entry(bmc, "{name: psu, sensor: 1}"), count=2).values() == [120.0, 120.0]


def test_one_channel_by_dcmi_where_none_is_named(bmc, entry, probe):
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
def test_names_a_wrong_sensor(bmc, entry, probe, channel, part):
    done = probe(entry(bmc, channel + ", {name: node}"))
    assert done.status == 1 and part in done.faults()[0]
    assert done.values("node") == [321.0]  # the others are read


def test_a_coarse_sensor_with_its_error_given(bmc, entry, probe):
    channel = "{name: rack, sensor: Rack Input, error: {resolution_w: 40}}"
    assert probe(entry(bmc, channel)).values() == [2400.0]


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        ("", "DCMI power reading: the BMC has none"),
        ("raw c0", "busy"),
        ("raw 00 dc 41", "garbage"),
        ("raw 00 00 41 01 41 01 41 01 41 01 0 0 0 0 0 0 0 0 40", "garbage"),
        ("raw 00 dc 00 00 41 01 41 01 41 01 0 0 0 0 0 0 0 0 00", "does not measure"),
    ],
)
def test_names_a_sick_answer_and_recovers(bmc, entry, watch, answer, part):
    with watch(entry(bmc)) as seen:
        seen.wait_value()
        with seen.new_fault(part):
            bmc.set_dcmi(answer)
        bmc.set_dcmi("77")
        seen.wait_last(77.0)


def test_takes_watts_of_a_bmc_that_says_it_does_not_measure(bmc, entry, watch):
    bmc.set_dcmi("raw 00 dc 41 01 41 01 41 01 41 01 0 0 0 0 0 0 0 0 00")
    with watch(entry(bmc)) as seen:
        seen.wait_value()
        seen.wait_more(3)
        assert set(seen.values()) == {321.0} and seen.faults() == []
    told = "says that it does not measure power, and tells 321 W: taken"
    assert seen.said.count(told) == 1


# answers laid out as slurm-plugins/instruments/ipmi_answer.c says, with its sources


def xcc_counter(joules: int, millijoules: int) -> bytes:
    return struct.pack("<HIHIH", 7, joules, millijoules, 1_700_000_000, 250)


def test_reads_lenovos_counter(bmc, entry, watch):
    bmc.set_xcc(2, xcc_counter(4_000_000_000, 250))
    with watch(entry(bmc, lan=LAN + ", reading: xcc-energy")) as seen:
        seen.wait_value()
        assert seen.values("xcc-energy")[0] == 4_000_000_000.25
        assert seen.readings[0]["unit"] == "J" and seen.readings[0]["method"] == "counter"
        bmc.set_xcc(2, xcc_counter(4_000_000_123, 999))
        seen.wait_last(4_000_000_123.999, "xcc-energy")
        with seen.new_fault("set 'reading: xcc-power'"):
            bmc.set_xcc(2, struct.pack("<HIH", 100, 40_000, 0) + bytes(30))


def test_reads_lenovos_meters_beside_each_other(bmc, entry, probe):
    bmc.set_xcc(8, bytes(6) + struct.pack("<4H", 300, 1200, 0, 0))
    channels = "{name: node, reading: xcc-node}, {name: cards, reading: xcc-gpus}, {name: dcmi}"
    done = probe(entry(bmc, channels + ", {name: none, reading: xcc-energy}"))
    assert done.values("node") == [300.0] and done.values("cards") == [1200.0]
    assert done.values("dcmi") == [321.0] and "XCC's energy: the BMC has none" in done.faults()[0]


def test_survives_a_bmc_that_restarts(bmc, entry, watch):
    with watch(entry(bmc, BOTH, QUICK)) as seen:
        seen.wait_value(channel="psu")
        with seen.new_fault("no answer", "psu"):
            bmc.kill()
        bmc.set_raw(30)
        bmc.start()
        seen.wait_last(60.0, "psu")
        seen.wait_last(321.0, "node")


def test_a_hung_bmc_is_late_and_delays_nobody(bmc, entry, watch, tmp_path):
    with Simulator(tmp_path / "other") as other:
        channel, well = "{name: hung}", "{name: well}"
        instruments = entry(bmc, channel, QUICK) + entry(other, well, QUICK, name="other")
        with watch(instruments) as seen:
            seen.wait_value(channel="hung")
            seen.wait_value(channel="well")
            with seen.new_fault("no answer", "hung"):
                bmc.send(signal.SIGSTOP)
            seen.wait_more(6, "well")
            bmc.set_dcmi("55")
            bmc.send(signal.SIGCONT)
            seen.wait_last(55.0, "hung")


def test_a_wrong_password_is_refused_once_and_kept_secret(bmc, entry, watch):
    wrong = "not-the-password-9"
    with watch(entry(bmc, text=wrong)) as seen:
        assert "check 'password_file'" in seen.wait_fault("password invalid")
        wait_for(lambda: len(seen.faults()) > 5, what="more readings")
        assert not seen_in_process_list(wrong)
        assert wrong not in seen.said


def test_the_password_shows_nowhere(bmc, entry, watch, tmp_path):
    with watch(entry(bmc, lan=QUICK)) as seen:
        seen.wait_value()
        assert not seen_in_process_list(PASSWORD)
        with seen.new_fault("no answer"):
            bmc.kill()
        assert PASSWORD not in seen.said


def test_refuses_a_password_that_others_may_read(bmc, entry, probe):
    done = probe(entry(bmc, mode=0o644))
    assert done.status == 1 and "others may read it; chmod 600" in done.faults()[0]


def test_names_a_privilege_that_is_too_low(bmc, entry, probe):
    done = probe(entry(bmc, lan=LAN.replace("admin", "user")))
    assert "set 'privilege: operator'" in done.faults()[0]


def test_names_a_node_without_a_bmc(probe):
    if Path("/dev/ipmi0").exists():
        pytest.skip("this machine has a BMC, /dev/ipmi0")
    done = probe("- {type: ipmi}\n")
    assert done.status == 1 and "load ipmi_si and ipmi_devintf" in done.faults()[0]
