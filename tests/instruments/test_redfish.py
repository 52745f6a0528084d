"""Instrument `redfish` against sushy-tools' emulators, behind TLS of the tests' authority."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import wait_for
from tests.peers import bmc as bmcs
from tests.peers.bmc import PASSWORD, USER, Redfish, Sushy
from tests.peers.certificates import make_authority, make_certificate, public_key_digest
from tests.peers.secret import secret, seen_in_process_list

METRICS = "Chassis/Self/EnvironmentMetrics"


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ca.crt, and localhost's and another host's key and certificate by it."""
    folder = tmp_path_factory.mktemp("authority")
    make_authority(folder)
    make_authority(folder, "stranger")
    make_certificate(folder, "localhost", "localhost")
    make_certificate(folder, "elsewhere", "bmc.example.org")
    return folder


@pytest.fixture
def mockup(tmp_path: Path) -> Path:
    return bmcs.service(tmp_path / "mockup")


@pytest.fixture
def bmc(mockup: Path, authority: Path) -> Iterator[Redfish]:
    with Redfish(mockup, authority, "localhost") as started:
        yield started


@pytest.fixture
def entry(tmp_path: Path, authority: Path) -> Callable[..., str]:
    """One line of `instruments:` for a service at a port."""

    def write(
        port: int, more: str = "", ca: str = "ca.crt", times: str = "timeout_s: 5", **words: object
    ) -> str:
        file = secret(tmp_path / "password", **{"text": PASSWORD, **words})
        keys = f"url: 'https://localhost:{port}', user: {USER}, period_s: 0.1"
        files = f"password_file: {file}, ca_file: {authority / ca}"
        return f"- {{type: redfish, {keys}, {files}, {times}, {more}}}\n"

    return write


@pytest.mark.parametrize(
    ("source", "watts"),
    [("auto", 300.0), ("metrics", 300.0), ("power", 301.0), ("supplies", 302.0)],
)
def test_reads_power(bmc, entry, probe, source, watts):
    done = probe(entry(bmc.port, f"source: {source}"), count=3)
    assert done.faults() == [] and done.values("chassis") == [watts] * 3
    assert done.readings[0]["method"] == "integrated" and done.readings[0]["unit"] == "W"


def test_reads_energy_counters(bmc, entry, probe):
    channels = "{name: fine, source: energy_joules}, {name: coarse, source: energy_kwh}"
    done = probe(entry(bmc.port, f"channels: [{channels}]"))
    assert done.values("fine") == [1e6] and done.values("coarse") == [3.5 * 3.6e6]
    assert {reading["method"] for reading in done.readings} == {"counter"}


def test_reads_sensors(bmc, entry, probe):
    """One power and one counter among those of other kinds, as DSP0268 lays them out."""
    bmcs.resource(
        bmc.mockup, "Chassis/Self", {"Sensors": {"@odata.id": "/redfish/v1/Chassis/Self/Sensors"}}
    )
    for name, kind, reading in (("PSU_In", "Power", 288.5), ("Total", "EnergyJoules", 5e5)):
        sensor = {"Id": name, "ReadingType": kind, "Reading": reading}
        bmcs.resource(bmc.mockup, f"Chassis/Self/Sensors/{name}", sensor)
    channels = "{name: in, source: sensor, sensor: PSU_In}"
    channels += ", {name: sum, source: sensor_joules, sensor: Total}"
    done = probe(entry(bmc.port, f"channels: [{channels}]"))
    assert (done.values("in"), done.values("sum")) == ([288.5], [5e5]), done.faults()
    units = {reading["channel"]: reading["method"] for reading in done.readings}
    assert units == {"in": "integrated", "sum": "counter"}
    fault = probe(entry(bmc.port, "source: sensor, sensor: Total")).faults()[0]
    assert "ReadingType is EnergyJoules, not Power" in fault
    fault = probe(entry(bmc.port, "source: sensor, sensor: PSU9")).faults()[0]
    assert "Sensors/PSU9: HTTP 404" in fault
    for words in ("source: sensor", "sensor: PSU_In"):
        assert "belong together" in probe(entry(bmc.port, words)).faults()[0]


def test_follows_the_power(bmc, entry, watch):
    with watch(entry(bmc.port)) as seen:
        seen.wait_value()
        bmcs.resource(bmc.mockup, METRICS, {"PowerWatts": {"Reading": 412.5}})
        seen.wait_last(412.5)


def test_auto_takes_what_there_is_and_stays_with_it(bmc, entry, watch):
    bmcs.resource(bmc.mockup, METRICS, {})
    with watch(entry(bmc.port)) as seen:
        seen.wait_value()
        bmcs.chassis(bmc.mockup, "Self", 500.0)
        wait_for(lambda: seen.values()[-1] != 301.0, what="the new value")
        assert set(seen.values()) == {301.0, 501.0}  # of Power, never of EnvironmentMetrics


def test_chooses_a_chassis(bmc, entry, probe):
    bmcs.collection(bmc.mockup, "Chassis", ["Self", "GPU-Tray"])
    bmcs.chassis(bmc.mockup, "GPU-Tray", 900.0)
    tray = "{name: tray, chassis: GPU-Tray, domain: gpu}"
    done = probe(entry(bmc.port, f"channels: [{{name: node, chassis: Self}}, {tray}]"))
    assert done.values("node") == [300.0] and done.values("tray") == [900.0]
    assert "set 'chassis' to one of Self, GPU-Tray" in probe(entry(bmc.port)).faults()[0]
    done = probe(entry(bmc.port, "chassis: Sled"))
    assert "no chassis 'Sled'; the service has Self, GPU-Tray" in done.faults()[0]


def test_names_a_chassis_without_power(bmc, entry, probe):
    bmcs.resource(bmc.mockup, "Chassis/Self", bmcs.link("Chassis/Self"))
    fault = probe(entry(bmc.port)).faults()[0]
    assert "chassis Self gives no watts" in fault and "has no PowerSubsystem" in fault


# ---- TLS ----


@pytest.mark.parametrize("ca", ["stranger.crt", "elsewhere.crt"])
def test_refuses_a_service_that_its_authority_did_not_sign(bmc, entry, probe, ca):
    done = probe(entry(bmc.port, ca=ca), count=3)
    assert done.status == 1 and all("ca_file" in fault for fault in done.faults())
    assert bmc.requests == 0 and bmc.logins == 0  # it learnt nothing of us


def test_the_systems_authorities_do_not_know_it(bmc, entry, probe, authority):
    done = probe(entry(bmc.port).replace(f"ca_file: {authority / 'ca.crt'}, ", ""))
    assert "ca_file" in done.faults()[0] and bmc.requests == 0


def test_refuses_another_hosts_certificate(mockup, authority, entry, probe):
    with Redfish(mockup, authority, "elsewhere") as other:
        done = probe(entry(other.port))
        assert done.status == 1 and "localhost" in done.faults()[0]
        assert other.requests == 0


@pytest.fixture
def self_signed(authority, mockup) -> Iterator[Redfish]:
    """A BMC as it comes out of its box: under a name of its maker's, signed by itself."""
    with Redfish(mockup, authority, "stranger") as started:
        yield started


def pinned(entry: str, authority: Path, of: str) -> str:
    """Its public key instead of an authority."""
    ca_file = f"ca_file: {authority / 'ca.crt'}"
    return entry.replace(ca_file, f"public_key: '{public_key_digest(authority / f'{of}.crt')}'")


def test_a_self_signed_service_is_known_by_its_public_key(self_signed, authority, entry, probe):
    done = probe(pinned(entry(self_signed.port), authority, "stranger"), count=3)
    assert done.values("chassis") == [300.0] * 3, done.faults()


def test_refuses_another_public_key(self_signed, authority, entry, probe):
    done = probe(pinned(entry(self_signed.port), authority, "elsewhere"), count=3)
    assert done.status == 1 and all("not that of 'public_key'" in one for one in done.faults())
    assert self_signed.requests == 0 and self_signed.logins == 0  # it learnt nothing of us


def test_a_public_key_spares_no_authority_that_is_named(self_signed, authority, entry, probe):
    key = public_key_digest(authority / "stranger.crt")
    done = probe(entry(self_signed.port, f"public_key: '{key}'"))
    assert "ca_file" in done.faults()[0] and self_signed.requests == 0


@pytest.mark.parametrize("key", ["sha256//abc=", "/etc/passwd", "sha256//" + 44 * "A"])
def test_a_public_key_is_a_digest(bmc, entry, probe, key):
    fault = probe(entry(bmc.port, f"public_key: '{key}'")).faults()[0]
    assert f"must be sha256// and a digest in BASE64, is '{key}'" in fault


# ---- sessions and secrets ----


def test_renews_a_session_that_ended_and_deletes_it_at_the_end(bmc, entry, probe, watch):
    with watch(entry(bmc.port)) as seen:
        seen.wait_more(3)
        assert bmc.logins == 1
        bmc.sessions.clear()
        seen.wait_more(4)
        assert bmc.logins == 2 and seen.faults() == []
    bmc.sessions.clear()
    assert probe(entry(bmc.port), count=2).status == 0
    assert bmc.logins == 3 and bmc.sessions == {}


def test_tries_a_refused_password_once(bmc, entry, watch):
    wrong = "not-the-password-9"
    with watch(entry(bmc.port, text=wrong)) as seen:
        assert "check 'user' and 'password_file'" in seen.wait_fault("HTTP 401")
        wait_for(lambda: len(seen.faults()) > 5, what="more readings")
        assert bmc.logins == 1
        assert not seen_in_process_list(wrong)
        assert wrong not in seen.said


@pytest.mark.parametrize("auth", ["session", "basic"])
def test_the_password_shows_nowhere(bmc, entry, watch, auth):
    with watch(entry(bmc.port, f"auth: {auth}")) as seen:
        seen.wait_value()
        assert not seen_in_process_list(PASSWORD)
        with seen.new_fault("garbage"):
            bmcs.resource(bmc.mockup, METRICS, "<html>")
        with seen.new_fault("GET https://localhost"):  # no answer, as what is garbage is
            bmc.stop()
        assert PASSWORD not in seen.said
        assert not any(token in seen.said for token in bmc.sessions)
    assert bmc.logins == (auth == "session")


def test_refuses_a_password_that_others_may_read(bmc, entry, probe):
    assert "others may read it; chmod 600" in probe(entry(bmc.port, mode=0o640)).faults()[0]
    assert bmc.logins == 0


def test_follows_no_link_to_another_host(bmc, entry, probe):
    away = {"@odata.id": "https://localhost.example.org/metrics"}
    bmcs.resource(bmc.mockup, "Chassis/Self", {"EnvironmentMetrics": away})
    assert "has no EnvironmentMetrics" in probe(entry(bmc.port, "source: metrics")).faults()[0]


# ---- sick services ----


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        ("<html>busy</html>", "garbage"),
        ('{"PowerWatts": {"Reading": NaN}}', "garbage"),
        ("[]", "garbage"),
        ("", "garbage"),
        ('{"PowerWatts": {"Reading": 30', "garbage"),  # the connection was cut
        ('{"PowerWatts": {"Reading": "NaN"}}', "is not a number"),
        ('{"PowerWatts": {"Reading": -5}}', "negative"),
        ('{"PowerWatts": {"Reading": null}}', "absent"),
        ('{"PowerWatts": {}}', "absent"),
        ('{"PowerWatts": {"Reading": 1e12}}', "impossible"),
        ('{"a": "' + 2_000_000 * "x" + '"}', "longer than"),
    ],
)
def test_names_a_sick_answer_and_recovers(bmc, entry, watch, answer, part):
    with watch(entry(bmc.port, "source: metrics")) as seen:
        seen.wait_value()
        with seen.new_fault(part):
            bmcs.resource(bmc.mockup, METRICS, answer)
        bmcs.resource(bmc.mockup, METRICS, {"PowerWatts": {"Reading": 42}})
        seen.wait_last(42.0)


def test_a_slow_service_is_late_and_recovers(bmc, entry, watch):
    with watch(entry(bmc.port, times="timeout_s: 0.5")) as seen:
        seen.wait_value()
        with seen.new_fault("no answer within timeout_s of 0.5 s"):
            bmc.delay_s = 2.0
        bmc.delay_s = 0.0
        seen.wait_more()


def test_looks_up_over_several_readings_where_one_is_too_short(bmc, entry, watch):
    bmc.delay_s = 0.3  # seven requests before the first value
    with watch(entry(bmc.port, "source: metrics", times="timeout_s: 1.6")) as seen:
        seen.wait_value()


def test_survives_a_service_that_restarts(bmc, entry, watch):
    with watch(entry(bmc.port)) as seen:
        seen.wait_value()
        with seen.new_fault("localhost"):
            bmc.stop()
        bmc.sessions.clear()  # a BMC forgets them
        bmcs.resource(bmc.mockup, METRICS, {"PowerWatts": {"Reading": 77}})
        bmc.start()
        seen.wait_last(77.0)


def test_finds_a_resource_that_moved(bmc, entry, watch):
    with watch(entry(bmc.port, "source: supplies")) as seen:
        seen.wait_value()
        supplies = bmc.mockup / "Chassis/Self/PowerSubsystem/PowerSupplies"
        bmcs.resource(supplies, "Bay2", {"Status": {"State": "Absent"}})
        shutil.rmtree(supplies / "Bay2/Metrics")  # pulled out
        seen.wait_last(151.0)


# ---- sushy-tools' own programs, as they are ----


def test_sushy_static(mockup, authority, entry, probe):
    """It asks for no password; sessions it has none."""
    pair = ("-c", authority / "localhost.crt", "-k", authority / "localhost.key")
    with Sushy("sushy-static", mockup.parent, "-m", mockup, *pair) as bmc:
        assert probe(entry(bmc.port, "auth: basic"), count=3).values() == [300.0] * 3
        assert "set 'auth: basic'" in probe(entry(bmc.port)).faults()[0]


def test_sushy_emulator(authority, entry, probe, tmp_path):
    """It checks passwords (basic); its chassis have no power."""
    bcrypt = pytest.importorskip("bcrypt")
    digest = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (tmp_path / "users").write_text(f"{USER}:{digest}\n")
    (tmp_path / "sushy.conf").write_text(f"SUSHY_EMULATOR_AUTH_FILE = '{tmp_path}/users'\n")
    words = ("--fake", "--config", tmp_path / "sushy.conf")
    words += ("--ssl-certificate", authority / "localhost.crt")
    words += ("--ssl-key", authority / "localhost.key")
    with Sushy("sushy-emulator", tmp_path, *words) as bmc:
        fault = probe(entry(bmc.port, "auth: basic")).faults()[0]
        assert "gives no watts" in fault and "has no PowerSubsystem" in fault
        wrong = entry(bmc.port, "auth: basic", text="wrong-one")
        assert "HTTP 401" in probe(wrong).faults()[0]


def test_the_clock_is_the_answers(bmc, entry, probe):
    began = time.time()
    done = probe(entry(bmc.port), count=2)
    times = [reading["time"] for reading in done.readings]
    assert began <= times[0] <= times[1] <= time.time()
