"""Instrument `prometheus` against Debian's Prometheus, which scrapes what the test shows it."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import http.server
import json
import shutil
import subprocess
import threading
import time
import types
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import wait_for
from tests.cluster.ports import free_port, listens
from tests.instruments import mosquitto as certificates
from tests.instruments.watching import Watch
from tests.peers import Peer

SCRAPE_S = 0.2
PASSWORD, BCRYPT_COST = "open sesame", 4


class Target:
    """What a node_exporter is to Prometheus: answers GET /metrics with the text of `metrics`."""

    def __init__(self) -> None:
        self.metrics = ""
        self.port = free_port()
        target = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = target.metrics.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def show(self, *lines: str) -> None:
        self.metrics = "".join(f"{line}\n" for line in lines)

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Prometheus(Peer):
    """Debian's program with its data in the test's folder."""

    def __init__(self, folder: Path, target: Target, web: str = "") -> None:
        self.port, self.folder = free_port(), folder
        self.secure = bool(web)
        self.base = f"{'https' if web else 'http'}://localhost:{self.port}"
        folder.mkdir()
        (folder / "prometheus.yml").write_text(
            f"global: {{scrape_interval: {int(SCRAPE_S * 1000)}ms, scrape_timeout: 200ms}}\n"
            "scrape_configs:\n"
            "- job_name: node\n"
            f"  static_configs: [{{targets: ['127.0.0.1:{target.port}']}}]\n"
            "  relabel_configs: [{target_label: instance, replacement: n1}]\n"
        )
        (folder / "web.yml").write_text(web)
        self.log_file = folder / "log"

    def command(self) -> list[object]:
        return [
            "prometheus",
            f"--config.file={self.folder}/prometheus.yml",
            f"--storage.tsdb.path={self.folder}/data",
            f"--web.config.file={self.folder}/web.yml",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]

    def ready(self) -> bool:
        """It listens before it answers; one that wants a password is not asked."""
        if not listens(self.port):
            return False
        if self.secure:
            return True
        try:
            urllib.request.urlopen(f"{self.base}/-/ready", timeout=30).close()
        except urllib.error.URLError:
            return False
        return True

    def samples(self, selector: str) -> list[tuple[float, float]]:
        """All that Prometheus has of a series in the last minutes, asked directly."""
        query = urllib.parse.urlencode({"query": f"{selector}[5m]"})
        with urllib.request.urlopen(f"{self.base}/api/v1/query?{query}", timeout=30) as answer:
            result = json.load(answer)["data"]["result"]
        return [(time_s, float(value)) for series in result for time_s, value in series["values"]]


@pytest.fixture
def target() -> Iterator[Target]:
    made = Target()
    yield made
    made.stop()


@contextlib.contextmanager
def running(folder: Path, target: Target, web: str = "") -> Iterator[Prometheus]:
    if not shutil.which("prometheus"):
        pytest.skip("prometheus is not installed")
    with Prometheus(folder, target, web) as server:
        yield server


@pytest.fixture
def prometheus(tmp_path: Path, target: Target) -> Iterator[Prometheus]:
    with running(tmp_path / "prometheus", target) as server:
        yield server


@pytest.fixture
def watch(joulemarkd: Path, configuration: Callable[[str], Path]) -> Callable[..., Watch]:
    def make(server: object, more: str, period_s: float = 0.5) -> Watch:
        entry = f"type: prometheus, url: '{server.base}', period_s: {period_s}, {more}"
        return Watch(joulemarkd, configuration(f"- {{{entry}, timeout_s: 5}}\n"))

    return make


SELECTOR = "query: 'node_power_watts{instance=\"%n\"}'"
SERIES = 'node_power_watts{instance="n1"}'


def wait_scraped(prometheus: Prometheus, count: int = 1, series: str = SERIES) -> None:
    wait_for(lambda: len(prometheus.samples(series)) >= count, what=f"{count} scrapes")


def test_every_sample_comes_once_with_the_time_of_its_scrape(
    prometheus: Prometheus, target: Target, watch: Callable[..., Watch]
) -> None:
    """Read four times slower than scraped, and still as Prometheus has it."""
    target.show("# TYPE node_power_watts gauge", "node_power_watts 100")
    wait_scraped(prometheus, 3)
    with watch(prometheus, SELECTOR, period_s=4 * SCRAPE_S) as seen:
        for watts in range(101, 121):
            target.show("# TYPE node_power_watts gauge", f"node_power_watts {watts}")
            before = len(prometheus.samples(SERIES))
            wait_scraped(prometheus, before + 1)
        wait_for(lambda: 120 in seen.values())
        got = [(round(reading["time"], 3), reading["value"]) for reading in seen.readings()]
        assert len(got) > 15
    stored = prometheus.samples(SERIES)
    first = stored.index(got[0])
    assert first >= 2, "of what was before the start only the newest counts"
    assert got == stored[first : first + len(got)]


def test_an_expression_is_evaluated_at_even_steps(
    prometheus: Prometheus, target: Target, watch: Callable[..., Watch]
) -> None:
    target.show('psu_watts{psu="1"} 60', 'psu_watts{psu="2"} 40')
    wait_scraped(prometheus, 1, 'psu_watts{psu="1"}')
    with watch(prometheus, "query: sum(psu_watts), step_s: 0.5") as seen:
        wait_for(lambda: len(seen.values()) >= 6)
        times = [reading["time"] for reading in seen.readings() if reading["fault"] is None]
        assert set(seen.values()) == {100.0}
        steps_s = [after - before for before, after in zip(times, times[1:])]
        assert min(steps_s) > 0 and all((2 * at) % 1 == 0 for at in times)
        # a scrape that a loaded machine has missed leaves a step without a value
        missed = sum(not up for _, up in prometheus.samples("up"))
        assert sum(step_s > 0.5 for step_s in steps_s) <= missed


def test_counters_and_scales(
    prometheus: Prometheus, target: Target, watch: Callable[..., Watch]
) -> None:
    target.show("rapl_joules_total 1234.5", "board_milliwatts 2500")
    wait_scraped(prometheus, 1, "board_milliwatts")
    channels = (
        "channels: [{name: rapl, query: rapl_joules_total, as: counter, domain: cpu},"
        " {name: board, query: board_milliwatts, scale: 0.001}]"
    )
    with watch(prometheus, channels) as seen:
        wait_for(lambda: seen.values("rapl") and seen.values("board"))
        assert seen.values("rapl")[0] == 1234.5 and seen.values("board")[0] == 2.5
        kinds = {r["channel"]: (r["unit"], r["domain"]) for r in seen.readings()}
        assert kinds == {"rapl": ("J", "cpu"), "board": ("W", "node")}


def test_sick_samples_are_named_and_hold_up_no_other(
    prometheus: Prometheus, target: Target, watch: Callable[..., Watch]
) -> None:
    with watch(prometheus, SELECTOR) as seen:
        for value, part in (("NaN", "is not a number"), ("-7", "negative"), ("+Inf", "not a")):
            target.show(f"node_power_watts {value}")
            seen.wait_fault(part)
        target.show("node_power_watts 5")
        wait_for(lambda: 5.0 in seen.values())
        assert set(seen.values()) == {5.0}


def test_a_series_that_ends_brings_no_more_values(
    prometheus: Prometheus, target: Target, watch: Callable[..., Watch]
) -> None:
    """A scrape without it marks it stale; else its last value would be repeated for minutes."""
    target.show("node_power_watts 5", "other 1")
    wait_scraped(prometheus)
    with watch(prometheus, f"channels: [{{{SELECTOR}}}, {{{SELECTOR}, step_s: 0.5}}]") as seen:
        wait_for(lambda: seen.values("channel-0") and seen.values("channel-1"))
        target.show("other 1")
        gone = len(prometheus.samples("other"))
        wait_scraped(prometheus, gone + 2, "other")
        ended = time.time()
        wait_scraped(prometheus, gone + 20, "other")
        times = [reading["time"] for reading in seen.readings() if reading["fault"] is None]
        assert max(times) <= ended
        target.show("node_power_watts 6", "other 1")
        wait_for(lambda: 6.0 in seen.values("channel-0") and 6.0 in seen.values("channel-1"))


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("no_such_series", "matches no series of the last 300 s"),
        ("'{job=\"node\"}'", "series; give it labels"),
        ("'sum('", "parse error"),
        ("'sum(up)'", "ranges only allowed for vector selectors"),
    ],
)
def test_queries_that_bring_nothing_are_named(
    prometheus: Prometheus, target: Target, watch: Callable[..., Watch], query: str, part: str
) -> None:
    target.show("node_power_watts 5")
    wait_scraped(prometheus)
    if "or" in query:
        query += ", step_s: 0.5"
    with watch(prometheus, f"query: {query}") as seen:
        seen.wait_fault(part)


def test_a_server_that_was_away_is_caught_up_with(
    prometheus: Prometheus, target: Target, watch: Callable[..., Watch]
) -> None:
    target.show("node_power_watts 1")
    wait_scraped(prometheus)
    with watch(prometheus, SELECTOR) as seen:
        wait_for(seen.values)
        prometheus.kill()
        seen.wait_fault(f"{prometheus.base}: ")
        target.show("node_power_watts 2")
        prometheus.start()
        wait_for(lambda: 2.0 in seen.values())
        times = [reading["time"] for reading in seen.readings() if reading["fault"] is None]
        assert times == sorted(set(times))


# -- TLS, passwords and tokens -------------------------------------------------------------------


def guarded_web(folder: Path) -> str:
    certificates.make_authority(folder)
    key, certificate = certificates.make_certificate(folder, "server", "localhost")
    words = ["htpasswd", "-nbBC", str(BCRYPT_COST), "reader", PASSWORD]
    if not shutil.which(words[0]):
        pytest.skip("htpasswd (apache2-utils) is not installed")
    users = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    hashed = users.partition(":")[2]
    return (
        f"tls_server_config: {{cert_file: {certificate}, key_file: {key}}}\n"
        f"basic_auth_users: {{reader: '{hashed}'}}\n"
    )


def secret(folder: Path, text: str) -> Path:
    path = folder / "secret"
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_tls_and_a_password(tmp_path: Path, target: Target, watch: Callable[..., Watch]) -> None:
    target.show("node_power_watts 9")
    with running(tmp_path / "guarded", target, guarded_web(tmp_path)) as server:
        user = f"{SELECTOR}, user: reader, password_file: {secret(tmp_path, PASSWORD)}"
        with watch(server, f"{user}, ca_file: {tmp_path}/ca.crt") as seen:
            wait_for(lambda: 9.0 in seen.values())
        with watch(server, user) as seen:
            seen.wait_fault("certificate")
            assert seen.values() == []
        secret(tmp_path, "wrong")
        with watch(server, f"{user}, ca_file: {tmp_path}/ca.crt") as seen:
            fault = seen.wait_fault("HTTP status 401")
            assert "wrong" not in fault.replace(server.base, "")


def test_a_token_is_sent(tmp_path: Path, watch: Callable[..., Watch]) -> None:
    """Prometheus itself knows no tokens; a proxy before it does."""
    heard: list[str | None] = []

    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.headers.get("Authorization"))
            self.send_response(403)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    port = free_port()
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", port), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    server = types.SimpleNamespace(base=f"http://localhost:{port}")
    try:
        token = secret(tmp_path, "s3cr3t-token\n")
        with watch(server, f"query: up, token_file: {token}") as seen:
            fault = seen.wait_fault("HTTP status 403")
    finally:
        proxy.shutdown()
        proxy.server_close()
    assert heard[0] == "Bearer s3cr3t-token" and "s3cr3t" not in fault


@pytest.mark.parametrize(
    ("entry", "part"),
    [
        ("query: up", "url"),
        ("url: 'ftp://x', query: up", "must begin with http"),
        ("url: 'http://me:pw@x', query: up", "move them to"),
        ("url: 'http://x'", "query: is missing"),
        ("url: 'http://x', query: up, user: me", "belong together"),
        ("url: 'http://x', query: up, token_file: /nowhere", "/nowhere"),
    ],
)
def test_mistakes_are_named(probe: Callable[..., object], entry: str, part: str) -> None:
    done = probe(f"- {{type: prometheus, {entry}}}\n")
    assert done.status != 0
    assert part in done.errors + " ".join(done.faults())
    assert "pw" not in done.errors + " ".join(done.faults())
