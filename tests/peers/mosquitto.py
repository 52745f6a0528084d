"""A real mosquitto, with and without TLS and passwords, that tests start, kill and start again."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.cluster.ports import free_port, listens
from tests.peers.certificates import make_authority, make_certificate
from tests.peers.peer import Peer

USER, PASSWORD = "meter", "correct horse"


class Broker(Peer):
    """One mosquitto; `port` stays the same when it is killed and started again."""

    def __init__(
        self,
        folder: Path,
        *,
        tls: bool = False,
        password: bool = False,
        acl: Path | None = None,
        quiet: bool = False,
    ) -> None:
        self.quiet = quiet
        self.folder, self.tls, self.password, self.acl = folder, tls, password, acl
        self.log_file = folder / "log"
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self._configure()

    def _configure(self) -> None:
        lines = [f"listener {self.port}", f"allow_anonymous {str(not self.password).lower()}"]
        lines += ["persistence true", f"persistence_location {self.folder}/"]
        lines += ["autosave_interval 1", "max_queued_messages 100000"]
        if os.geteuid() == 0:
            lines.append("user root")
        if self.tls:
            make_authority(self.folder)
            key, certificate = make_certificate(self.folder, "server", "localhost")
            lines += [f"cafile {self.folder}/ca.crt", f"certfile {certificate}", f"keyfile {key}"]
        if self.acl:
            lines += ["require_certificate true", "use_identity_as_username true"]
            lines.append(f"acl_file {self.acl}")
        if self.password:
            words = ["mosquitto_passwd", "-b", "-c", self.folder / "users", USER, PASSWORD]
            subprocess.run(list(map(str, words)), check=True, capture_output=True)
            lines.append(f"password_file {self.folder}/users")
        (self.folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")

    def command(self) -> list[object]:
        loud = [] if self.quiet else ["-v"]
        return ["mosquitto", *loud, "-c", self.folder / "mosquitto.conf"]

    def ready(self) -> bool:
        return listens(self.port)

    def client_words(self, program: str) -> list[str]:
        words = [program, "-h", "localhost", "-p", str(self.port)]
        if self.tls:
            words += ["--cafile", str(self.folder / "ca.crt")]
        if self.password:
            words += ["-u", USER, "-P", PASSWORD]
        return words

    def publish(self, topic: str, *payloads: str, retain: bool = False) -> None:
        """Returns when the broker has them."""
        words = [*self.client_words("mosquitto_pub"), "-q", "1", "-t", topic, "-l"]
        words += ["-r"] if retain else []
        lines = "".join(f"{payload}\n" for payload in payloads)
        subprocess.run(words, input=lines, text=True, check=True, timeout=60)
