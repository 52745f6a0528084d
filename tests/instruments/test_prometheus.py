"""Instrument `prometheus` against Debian's Prometheus, which scrapes what the test shows it."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import wait_for
from tests.peers.certificates import make_authority, make_certificate
from tests.peers.prometheus import SCRAPE_S, Prometheus, Target
from tests.peers.secret import secret
from tests.peers.watching import Watch

PASSWORD, BCRYPT_COST = "open sesame", 4


@pytest.fixture
def target() -> Iterator[Target]:
    made = Target()
    yield made
    made.stop()


@pytest.fixture
def prometheus(tmp_path: Path, target: Target) -> Iterator[Prometheus]:
    with Prometheus(tmp_path / "prometheus", target) as server:
        yield server


@pytest.fixture
def watch_at(watch: Callable[[str], Watch]) -> Callable[..., Watch]:
    """`watch_at(prometheus, "query: up")`"""

    def make(server: Prometheus | Target, more: str, period_s: float = 0.5) -> Watch:
        entry = f"type: prometheus, url: '{server.base}', period_s: {period_s}, {more}"
        return watch(f"- {{{entry}, timeout_s: 5}}\n")

    return make


SELECTOR = "query: 'node_power_watts{instance=\"%n\"}'"
SERIES = 'node_power_watts{instance="n1"}'


def wait_scraped(prometheus: Prometheus, count: int = 1, series: str = SERIES) -> None:
    wait_for(lambda: len(prometheus.samples(series)) >= count, what=f"{count} scrapes")


def test_every_sample_comes_once_with_the_time_of_its_scrape(prometheus, target, watch_at):
    """Read four times slower than scraped, and still as Prometheus has it."""
    target.show("# TYPE node_power_watts gauge", "node_power_watts 100")
    wait_scraped(prometheus, 3)
    with watch_at(prometheus, SELECTOR, period_s=4 * SCRAPE_S) as seen:
        seen.wait_value(100)
        for watts in range(101, 121):
            target.show("# TYPE node_power_watts gauge", f"node_power_watts {watts}")
            before = len(prometheus.samples(SERIES))
            wait_scraped(prometheus, before + 1)
        seen.wait_value(120)
        got = [(round(reading["time"], 3), reading["value"]) for reading in seen.readings]
        assert len(got) > 15
    stored = prometheus.samples(SERIES)
    first = stored.index(got[0])
    assert first >= 2, "of what was before the start only the newest counts"
    assert got == stored[first : first + len(got)]


def test_an_expression_is_evaluated_at_even_steps(prometheus, target, watch_at):
    target.show('psu_watts{psu="1"} 60', 'psu_watts{psu="2"} 40')
    wait_scraped(prometheus, 1, 'psu_watts{psu="1"}')
    with watch_at(prometheus, "query: sum(psu_watts), step_s: 0.5") as seen:
        wait_for(lambda: len(seen.values()) >= 6)
        times = seen.times()
        assert set(seen.values()) == {100.0}
        steps_s = [after - before for before, after in zip(times, times[1:])]
        assert min(steps_s) > 0 and all((2 * at) % 1 == 0 for at in times)
        # a scrape that a loaded machine has missed leaves a step without a value
        missed = sum(not up for _, up in prometheus.samples("up"))
        assert sum(step_s > 0.5 for step_s in steps_s) <= missed


def test_counters_and_scales(prometheus, target, watch_at):
    target.show("rapl_joules_total 1234.5", "board_milliwatts 2500")
    wait_scraped(prometheus, 1, "board_milliwatts")
    channels = (
        "channels: [{name: rapl, query: rapl_joules_total, as: counter, domain: cpu},"
        " {name: board, query: board_milliwatts, scale: 0.001}]"
    )
    with watch_at(prometheus, channels) as seen:
        wait_for(lambda: seen.values("rapl") and seen.values("board"))
        assert seen.values("rapl")[0] == 1234.5 and seen.values("board")[0] == 2.5
        kinds = {r["channel"]: (r["unit"], r["domain"]) for r in seen.readings}
        assert kinds == {"rapl": ("J", "cpu"), "board": ("W", "node")}


def test_sick_samples_are_named_and_hold_up_no_other(prometheus, target, watch_at):
    with watch_at(prometheus, SELECTOR) as seen:
        for value, part in (("NaN", "is not a number"), ("-7", "negative"), ("+Inf", "not a")):
            with seen.new_fault(part):
                target.show(f"node_power_watts {value}")
        target.show("node_power_watts 5")
        seen.wait_value(5.0)
        assert set(seen.values()) == {5.0}


def test_a_series_that_ends_brings_no_more_values(prometheus, target, watch_at):
    """A scrape without it marks it stale; else its last value would be repeated for minutes."""
    target.show("node_power_watts 5", "other 1")
    wait_scraped(prometheus)
    with watch_at(prometheus, f"channels: [{{{SELECTOR}}}, {{{SELECTOR}, step_s: 0.5}}]") as seen:
        seen.wait_value(channel="channel-0")
        seen.wait_value(channel="channel-1")
        target.show("other 1")
        gone = len(prometheus.samples("other"))
        wait_scraped(prometheus, gone + 2, "other")
        ended = time.time()
        wait_scraped(prometheus, gone + 20, "other")
        assert max(seen.times()) <= ended
        target.show("node_power_watts 6", "other 1")
        seen.wait_value(6.0, "channel-0")
        seen.wait_value(6.0, "channel-1")


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("no_such_series", "matches no series of the last 300 s"),
        ("'{job=\"node\"}'", "series; give it labels"),
        ("'sum('", "parse error"),
        ("'sum(up)'", "ranges only allowed for vector selectors"),
    ],
)
def test_queries_that_bring_nothing_are_named(prometheus, target, watch_at, query, part):
    target.show("node_power_watts 5")
    wait_scraped(prometheus)
    with watch_at(prometheus, f"query: {query}") as seen:
        seen.wait_fault(part)


def test_a_server_that_was_away_is_caught_up_with(prometheus, target, watch_at):
    target.show("node_power_watts 1")
    wait_scraped(prometheus)
    with watch_at(prometheus, SELECTOR) as seen:
        seen.wait_value()
        with seen.new_fault(f"{prometheus.base}: "):
            prometheus.kill()
        target.show("node_power_watts 2")
        prometheus.start()
        seen.wait_value(2.0)
        times = seen.times()
        assert times == sorted(set(times))


# -- TLS, passwords and tokens -------------------------------------------------------------------


def guarded_web(folder: Path) -> str:
    make_authority(folder)
    key, certificate = make_certificate(folder, "server", "localhost")
    words = ["htpasswd", "-nbBC", str(BCRYPT_COST), "reader", PASSWORD]
    users = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    hashed = users.partition(":")[2]
    return (
        f"tls_server_config: {{cert_file: {certificate}, key_file: {key}}}\n"
        f"basic_auth_users: {{reader: '{hashed}'}}\n"
    )


def test_tls_and_a_password(tmp_path, target, watch_at):
    target.show("node_power_watts 9")
    with Prometheus(tmp_path / "guarded", target, guarded_web(tmp_path)) as server:
        password_file = secret(tmp_path / "secret", PASSWORD)
        user = f"{SELECTOR}, user: reader, password_file: {password_file}"
        with watch_at(server, f"{user}, ca_file: {tmp_path}/ca.crt") as seen:
            seen.wait_value(9.0)
        with watch_at(server, user) as seen:
            seen.wait_fault("certificate")
            assert seen.values() == []
        secret(password_file, "wrong")
        with watch_at(server, f"{user}, ca_file: {tmp_path}/ca.crt") as seen:
            fault = seen.wait_fault("HTTP status 401")
            assert "wrong" not in fault.replace(server.base, "")


def test_a_token_is_sent(tmp_path, target, watch_at):
    """Prometheus itself knows no tokens; a proxy before it does."""
    target.status = 403
    token = secret(tmp_path / "token", "s3cr3t-token")
    with watch_at(target, f"query: up, token_file: {token}") as seen:
        fault = seen.wait_fault("HTTP status 403")
    assert target.heard[0] == "Bearer s3cr3t-token" and "s3cr3t" not in fault
