"""Debian's Prometheus, and what it scrapes."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import http.server
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from tests.cluster.ports import free_port, listens
from tests.peers.peer import Peer

SCRAPE_S = 0.2


class Target:
    """What a node_exporter is to Prometheus: answers GET /metrics with the text of `metrics`."""

    def __init__(self) -> None:
        self.metrics, self.status = "", 200
        self.heard: list[str | None] = []  # the questions' authorization
        target = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                target.heard.append(self.headers.get("Authorization"))
                body = target.metrics.encode()
                self.send_response(target.status)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.port = free_port()
        self.base = f"http://localhost:{self.port}"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

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
        result = self.ask("query", query=f"{selector}[5m]")["result"]
        return [(time_s, float(value)) for series in result for time_s, value in series["values"]]

    def ask(self, what: str, **parameters: str | float) -> Any:
        """The data of its API's answer; it says itself what is wrong with a query."""
        url = f"{self.base}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error).get("error")) from error
