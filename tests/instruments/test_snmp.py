"""Outlets of PDUs over SNMP, from a real snmpd whose objects a script provides."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import wait_for
from tests.peers.agent import AUTH_PASSWORD, COMMUNITY, PRIV_PASSWORD, USER, Agent
from tests.peers.secret import secret

APC = ".1.3.6.1.4.1.318.1.1.26.9.4.3.1"  # rPDU2OutletMeteredStatusEntry: 7 power, 11 energy
RARITAN = ".1.3.6.1.4.1.13742.6.5.4.3.1.4.1"
OWN = ".1.3.6.1.4.1.8072.9999.9999"  # netSnmpPlaypen


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with Agent(tmp_path / "pdu", [APC, RARITAN, OWN]) as running:
        yield running


@pytest.fixture
def community(tmp_path: Path) -> Path:
    return secret(tmp_path / "community", COMMUNITY)


def entry(channels: str, keys: str) -> str:
    return f"  - {{name: pdu, type: snmp, {keys}, channels: [{channels}]}}\n"


def v2c(agent: Agent, community: Path, more: str = "") -> str:
    return f"host: '{agent.host}', community_file: {community}, timeout_s: 5{more}"


def test_an_outlet_of_apc_in_watts_and_in_joules(agent, community, probe):
    agent.set({f"{APC}.7.4": ("gauge", 231), f"{APC}.11.4": ("gauge", 12345)})
    channels = "{name: n1, outlet: 4}, {name: n1-energy, outlet: 4, quantity: energy}"
    done = probe(entry(channels, v2c(agent, community, ", preset: apc")), count=2)
    assert done.status == 0, done.errors
    assert done.values("n1") == [231.0, 231.0]
    assert done.values("n1-energy") == [12345 * 360000.0] * 2  # tenths of a kWh
    assert {reading["method"] for reading in done.readings} == {"integrated", "counter"}


def test_an_outlet_of_raritan(agent, community, probe):
    agent.set({f"{RARITAN}.7.5": ("gauge", 88), f"{RARITAN}.7.8": ("counter", 1000)})
    channels = "{name: p, outlet: 7}, {name: e, outlet: 7, quantity: energy}"
    done = probe(entry(channels, v2c(agent, community, ", preset: raritan")))
    assert done.values("p") == [88.0]
    assert done.values("e") == [3.6e6]  # watt-hours


@pytest.mark.parametrize(
    ("kind", "value", "scale", "watts"),
    [
        ("integer", 2305, 0.1, 230.5),
        ("string", "17.25", 1, 17.25),  # agents with fractions spell them
        ("counter64", 4294967297, 0.001, 4294967.297),
    ],
)
def test_every_type_that_is_a_number(agent, community, probe, kind, value, scale, watts):
    agent.set({f"{OWN}.1": (kind, value)})
    keys = v2c(agent, community)
    done = probe(entry(f"{{name: a, oid: {OWN[1:]}.1, scale: {scale}}}", keys))
    assert done.values("a") == pytest.approx([watts], abs=1e-6), done.readings


@pytest.mark.parametrize(
    ("kind", "value", "fault"),
    [
        ("string", "on fire", "not a number"),
        ("string", "nan", "not a number"),
        ("integer", -5, "negative"),
        ("ipaddress", "10.0.0.1", "no number"),
        ("gauge", 4000000000, "more than"),
    ],
)
def test_an_answer_that_is_no_power_is_named(agent, community, probe, kind, value, fault):
    agent.set({f"{OWN}.1": (kind, value), f"{OWN}.2": ("gauge", 7)})
    channels = f"{{name: bad, oid: {OWN}.1}}, {{name: good, oid: {OWN}.2}}"
    done = probe(entry(channels, v2c(agent, community)))
    assert done.status == 1
    assert [fault in text for text in done.faults()] == [True], done.faults()
    assert agent.host in done.faults()[0]
    assert done.values("good") == [7.0]


def test_an_outlet_that_the_agent_lacks_costs_only_itself(agent, community, probe):
    agent.set({f"{APC}.7.1": ("gauge", 10)})
    channels = "{name: a, outlet: 1}, {name: b, outlet: 99}"
    done = probe(entry(channels, v2c(agent, community, ", preset: apc")))
    assert done.values("a") == [10.0]
    assert "noSuch" in done.faults()[0]


def test_a_wrong_community_is_silence_with_a_hint(agent, tmp_path, probe):
    agent.set({f"{APC}.7.1": ("gauge", 10)})
    wrong = secret(tmp_path / "wrong", "public-or-so")
    keys = f"host: '{agent.host}', community_file: {wrong}, timeout_s: 0.5, preset: apc"
    done = probe(entry("{name: a, outlet: 1}", keys))
    assert done.status == 1
    assert "community_file" in done.faults()[0]
    assert "public-or-so" not in done.faults()[0] + done.errors


def test_a_host_without_an_address_costs_only_its_outlets(agent, community, watch):
    """A name is looked up in its own time: a reading may tell one host before the other."""
    agent.set({f"{APC}.7.1": ("gauge", 10)})
    channels = f"{{name: a, outlet: 1, host: '{agent.host}'}}, {{outlet: 1, host: x.invalid}}"
    keys = f"community_file: {community}, preset: apc, timeout_s: 5"
    with watch(entry(channels, keys)) as seen:
        wait_for(lambda: len(seen.values("a")) >= 2 and len(seen.faults()) >= 2)
    assert set(seen.values()) == {10.0}
    assert all("no such host" in text for text in seen.faults()), seen.faults()


def v3(agent: Agent, folder: Path, user: str = USER, auth: str = AUTH_PASSWORD) -> str:
    auth_file = secret(folder / "auth", auth)
    priv_file = secret(folder / "priv", PRIV_PASSWORD)
    return (
        f"host: '{agent.host}', user: {user}, auth_protocol: SHA-256, timeout_s: 5, "
        f"auth_password_file: {auth_file}, priv_protocol: AES, priv_password_file: {priv_file}, "
        "preset: apc"
    )


def test_version_3_authenticated_and_encrypted(agent, tmp_path, probe):
    agent.set({f"{APC}.7.{i}": ("gauge", 100 + i) for i in range(1, 41)})
    channels = ", ".join(f"{{name: o{i}, outlet: {i}}}" for i in range(1, 41))
    done = probe(entry(channels, v3(agent, tmp_path)), count=2)
    assert done.status == 0, done.faults()[:3]
    assert set(done.values("o1")) == {101.0}  # on a busy machine a reading comes before its answer
    assert sorted(set(done.values())) == [100.0 + i for i in range(1, 41)]


@pytest.mark.parametrize(
    ("user", "auth", "fault"),
    [
        ("nobody", AUTH_PASSWORD, "does not know the user"),
        (USER, "another password", "wrong password"),
    ],
)
def test_version_3_says_what_is_wrong(agent, tmp_path, probe, user, auth, fault):
    agent.set({f"{APC}.7.1": ("gauge", 10)})
    done = probe(entry("{name: a, outlet: 1}", v3(agent, tmp_path, user, auth)), count=2)
    assert done.status == 1
    assert all(fault in text for text in done.faults()), done.faults()
    assert auth not in "".join(done.faults()) + done.errors


def test_a_password_file_that_others_may_read_is_refused(agent, tmp_path, probe):
    keys = v3(agent, tmp_path)
    (tmp_path / "auth").chmod(0o644)
    done = probe(entry("{name: a, outlet: 1}", keys))
    assert done.status != 0
    assert str(tmp_path / "auth") in done.said


def test_a_value_that_changes_is_followed(agent, community, watch):
    agent.set({f"{APC}.7.1": ("gauge", 10)})
    keys = v2c(agent, community, ", preset: apc, period_s: 0.05")
    with watch(entry("{name: a, outlet: 1}", keys)) as seen:
        seen.wait_value()
        assert set(seen.values()) == {10.0}
        agent.set({f"{APC}.7.1": ("gauge", 321)})
        seen.wait_value(321.0)


def test_a_stopped_agent_is_named_delays_nobody_and_comes_back(agent, tmp_path, community, watch):
    agent.set({f"{APC}.7.1": ("gauge", 10)})
    with Agent(tmp_path / "other", [APC]) as other:
        other.set({f"{APC}.7.1": ("gauge", 20)})
        hosts = {"a": agent.host, "b": other.host}
        channels = ", ".join(f"{{name: {n}, outlet: 1, host: '{hosts[n]}'}}" for n in hosts)
        keys = f"community_file: {community}, preset: apc, period_s: 0.1, timeout_s: 1"
        with watch(entry(channels, keys)) as seen:
            seen.wait_value(10.0, "a")
            with seen.new_fault("no answer", "a"):
                agent.send(signal.SIGSTOP)
            # from here on nobody waits for it: the other's period of 0.1 s holds, not the time-out
            seen.wait_more(20, "b")
            times = seen.times("b")[-20:]
            gaps = sorted(after - before for before, after in zip(times, times[1:]))
            assert gaps[len(gaps) // 2] < 0.5, gaps
            assert set(seen.values("b")) == {20.0}
            agent.send(signal.SIGCONT)
            seen.wait_more(1, "a")
            assert set(seen.values("a")) == {10.0}


def test_an_agent_that_restarts_is_read_on_over_version_3(agent, tmp_path, watch):
    agent.set({f"{APC}.7.1": ("gauge", 10)})
    keys = v3(agent, tmp_path).replace("timeout_s: 5", "timeout_s: 1, period_s: 0.1")
    with watch(entry("{name: a, outlet: 1}", keys)) as seen:
        seen.wait_value(10.0)
        with seen.new_fault("no answer", "a"):
            agent.kill()
        agent.set({f"{APC}.7.1": ("gauge", 30)})
        agent.start()
        seen.wait_value(30.0)
