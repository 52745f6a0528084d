"""Instrument `mqtt` against a real mosquitto."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import wait_for
from tests.peers.certificates import make_authority, make_certificate
from tests.peers.mosquitto import PASSWORD, USER, Broker
from tests.peers.secret import secret
from tests.peers.watching import Watch

TOPIC = "site/power/n1"


@pytest.fixture
def watch_at(watch: Callable[[str], Watch]) -> Callable[..., Watch]:
    """`watch_at(broker, "topic: t")`"""

    def make(
        broker: Broker,
        more: str = "topic: site/power/%n",
        period_s: float = 0.1,
        host: str = "localhost",
    ) -> Watch:
        entry = f"type: mqtt, host: {host}, port: {broker.port}, period_s: {period_s}, {more}"
        return watch(f"- {{{entry}}}\n")

    return make


def message(watts: object, time_s: float, **more: object) -> str:
    return json.dumps({"time": time_s, "watts": watts, **more})


def listening(broker: Broker) -> None:
    """Messages of before the subscription would be lost: QoS 1 or not."""
    wait_for(lambda: "Sending SUBACK" in broker.log(), what="the subscription")


def test_plain_numbers(broker, watch_at):
    with watch_at(broker) as seen:
        listening(broker)
        began = time.time()
        broker.publish(TOPIC, "100.5", "200", "0")
        wait_for(lambda: len(seen.values()) == 3)
        assert seen.values() == [100.5, 200.0, 0.0]
        reading = seen.readings[0]
        assert reading["unit"] == "W" and reading["method"] == "integrated"
        assert began - 0.1 <= reading["time"] <= time.time()


def test_messages_between_two_reads_are_all_there_with_their_own_times(broker, watch_at):
    """300 values in a burst, a reading a second: none is lost, none comes twice."""
    now = time.time() - 40
    sent = [(round(now + 0.1 * k, 3), 100.0 + k) for k in range(300)]
    with watch_at(broker, period_s=1.0) as seen:
        listening(broker)
        broker.publish(TOPIC, *(message(watts, at) for at, watts in sent))
        broker.publish(TOPIC, message(*reversed(sent[-1])))  # again, as QoS 1 may
        wait_for(lambda: len(seen.values()) >= 300)
        got = [(round(reading["time"], 3), reading["value"]) for reading in seen.readings]
        assert got == sent


def test_fields_units_and_several_channels(broker, watch_at):
    more = (
        "topic: site/%n, time_field: ts, time_unit: ms, channels: ["
        "{name: psu-1, field: psu.0.power_mw, scale: 0.001, domain: node},"
        "{name: energy, field: total_kwh, as: counter, scale: 3600000}]"
    )
    with watch_at(broker, more) as seen:
        listening(broker)
        now = time.time()
        payload = {"psu": [{"power_mw": 212500}], "total_kwh": 1.5, "ts": int(now * 1000)}
        broker.publish("site/n1", json.dumps(payload))
        wait_for(lambda: len(seen.values()) == 2)
        assert seen.values("psu-1") == [212.5]
        assert seen.values("energy") == [5.4e6]
        units = {reading["channel"]: reading["unit"] for reading in seen.readings}
        assert units == {"psu-1": "W", "energy": "J"}


def test_what_was_retained_long_ago_is_not_todays_power(broker, watch_at):
    broker.publish(TOPIC, message(999, time.time() - 3600), retain=True)
    broker.publish("site/plain/n1", "999", retain=True)
    channels = "channels: [{name: a, topic: site/power/%n}, {name: b, topic: site/plain/%n}]"
    with watch_at(broker, channels) as seen:
        wait_for(lambda: broker.log().count("Sending PUBLISH to auto") >= 2, what="both")
        broker.publish(TOPIC, message(50, time.time()))
        broker.publish("site/plain/n1", "60")
        wait_for(lambda: len(seen.values()) >= 2)
        assert sorted(seen.values()) == [50.0, 60.0]


def test_a_retained_message_of_just_now_counts(broker, watch_at):
    broker.publish(TOPIC, message(70, time.time()), retain=True)
    with watch_at(broker, period_s=5.0) as seen:  # fresh for three periods
        wait_for(lambda: seen.values() == [70.0])


def test_sick_values_are_named(broker, watch_at):
    sick = {
        "on fire": "garbage: 'on fire'",
        "nan": "is not a number",
        "-5": "negative",
        '{"watts": ': "no JSON",
        '{"power": 1}': "no number in field 'watts'",
        message(1, time.time() + 3600): "ahead of our clock",
    }
    with watch_at(broker) as seen:
        listening(broker)
        broker.publish(TOPIC, *sick, "42")
        wait_for(lambda: seen.values() == [42.0])
        for fault, part in zip(seen.faults(), sick.values()):
            assert part in fault
        assert len(seen.faults()) == len(sick)


def test_a_value_without_a_time_is_never_a_repetition(broker, watch_at):
    """Our own clock may be set back: what comes after that is as new as what came before."""
    with watch_at(broker) as seen:
        listening(broker)
        broker.publish(TOPIC, message(1, time.time() + 30), "42", "42")
        wait_for(lambda: seen.values() == [1.0, 42.0, 42.0])


def test_a_dead_broker_is_named_and_a_living_one_found_again(broker, watch_at):
    with watch_at(broker) as seen:
        listening(broker)
        broker.publish(TOPIC, "1")
        wait_for(lambda: seen.values() == [1.0])
        with seen.new_fault(f"broker localhost:{broker.port}: "):
            broker.kill(signal.SIGKILL)
        (broker.folder / "log").write_text("")
        broker.start()
        listening(broker)
        broker.publish(TOPIC, "2")
        wait_for(lambda: seen.values() == [1.0, 2.0])


def test_a_session_of_ones_own_loses_nothing_while_away(broker, watch_at):
    more = "topic: site/power/%n, client_id: joulemark-%n"
    with watch_at(broker, more) as seen:
        listening(broker)
    broker.publish(TOPIC, message(11, time.time()))
    with watch_at(broker, more) as seen:
        wait_for(lambda: seen.values() == [11.0])


# -- TLS and passwords ---------------------------------------------------------------------------


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "guarded", tls=True, password=True) as started:
        yield started


def guarded_entry(
    broker: Broker, password: str = PASSWORD, mode: int = 0o600, ca: Path | None = None
) -> str:
    files = f"password_file: {secret(broker.folder / 'secret', password, mode)}"
    files += f", ca_file: {ca or broker.folder / 'ca.crt'}"
    return f"topic: site/power/%n, user: {USER}, {files}"


def test_tls_and_password(guarded, watch_at):
    with watch_at(guarded, guarded_entry(guarded)) as seen:
        listening(guarded)
        guarded.publish(TOPIC, "33")
        wait_for(lambda: seen.values() == [33.0])
        arguments = Path(f"/proc/{seen.process.pid}/cmdline").read_bytes()
        assert PASSWORD.encode() not in arguments


def test_a_broker_of_another_authority_is_refused(guarded, watch_at, tmp_path):
    stranger = make_authority(tmp_path, "stranger")
    with watch_at(guarded, guarded_entry(guarded, ca=stranger)) as seen:
        seen.wait_fault("certificate verify failed")
        assert seen.values() == []


def test_a_broker_of_another_name_is_refused(guarded, watch_at):
    with watch_at(guarded, guarded_entry(guarded), host="127.0.0.1") as seen:
        fault = seen.wait_fault(f"broker 127.0.0.1:{guarded.port}: ")
        assert "certificate verify failed" in fault
        assert "New client connected" not in guarded.log()  # so it has not been told the password
    with watch_at(guarded, guarded_entry(guarded)):
        listening(guarded)  # it is the name alone that was wrong


def test_a_wrong_password_is_named_but_not_told(guarded, watch_at):
    with watch_at(guarded, guarded_entry(guarded, "battery staple")) as seen:
        fault = seen.wait_fault("uthor")
        assert "battery" not in fault + seen.errors


def test_a_password_that_others_may_read_is_refused(guarded, watch_at):
    with watch_at(guarded, guarded_entry(guarded, mode=0o644)) as seen:
        wait_for(lambda: seen.process.poll() is not None)
        assert "others may read it" in seen.said


def test_a_client_certificate(tmp_path, watch_at):
    with Broker(tmp_path / "mutual", tls=True) as broker:
        broker.kill()
        config = broker.folder / "mosquitto.conf"
        config.write_text(config.read_text() + "require_certificate true\n")
        key, certificate = make_certificate(broker.folder, "node", "n1")
        broker.start()
        entry = f"topic: site/power/%n, ca_file: {broker.folder}/ca.crt"
        with watch_at(broker, entry) as seen:
            seen.wait_fault(f"broker localhost:{broker.port}: ")
        with watch_at(broker, f"{entry}, cert_file: {certificate}, key_file: {key}") as seen:
            listening(broker)
