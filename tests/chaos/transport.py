"""A broker and a receiver to be killed: one node's records go by MQTT, the other's by folder."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.cluster import Build, Cluster, Service
from tests.cluster.client import SBIN
from tests.cluster.config import service_user
from tests.cluster.ports import free_port, listens

BY_FOLDER, BY_MQTT = "n1", "n2"


def available() -> bool:
    return bool(shutil.which("mosquitto", path=f"{os.environ['PATH']}:{SBIN}"))


class Transport:
    """mosquitto, which keeps what it has on disk, and `joulemark receive`."""

    def __init__(self, state: Path, build: Build) -> None:
        self.folder, self.port = state / "transport", free_port()
        for name in ("log", "services"):
            (self.folder / name).mkdir(parents=True)
        lines = [f"listener {self.port}", "allow_anonymous true", "user root", "persistence true"]
        lines += [f"persistence_location {self.folder}/", "autosave_interval 1"]
        lines.append("autosave_on_changes false")
        conf = self.folder / "mosquitto.conf"
        conf.write_text("\n".join(lines) + "\n")
        env = {"PATH": f"{build.bin}:{SBIN}", "JOULEMARK_CONFIG": f"{state}/etc/joulemark.yaml"}
        self.mosquitto = Service(
            *("mosquitto", ["mosquitto", "-c", str(conf)], self.folder, env),
            ready=lambda: listens(self.port),
        )
        user = service_user() if os.geteuid() == 0 else None
        self.receive = Service(
            *("receive", ["joulemark", "receive"], self.folder, env), lambda: True, user
        )

    @property
    def services(self) -> dict[str, Service]:
        """By the names that a killer chooses from."""
        return {"mosquitto": self.mosquitto, "receive": self.receive}

    def join(self, cluster: Cluster) -> Cluster:
        """Starts both, and has BY_MQTT's records go that way."""
        self.mosquitto.start()
        broker = {"host": "localhost", "port": self.port}
        own: Mapping[str, Mapping[str, object]] = {BY_FOLDER: {"transport": "directory"}}
        daemon = {**cluster.options.daemon, "transport": "mqtt", "mqtt": broker}
        cluster.change(daemon=daemon, node_daemon=own)
        self.receive.start()
        return cluster

    def stop(self) -> None:
        for service in self.services.values():
            service.stop()
