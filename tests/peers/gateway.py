"""A gateway over a PDU that a real snmpd simulates."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.peers.agent import COMMUNITY, Agent
from tests.peers.mosquitto import Broker
from tests.peers.peer import Peer
from tests.peers.secret import secret

CLUSTER = "test"
TREE = ".1.3.6.1.4.1.8072.9999.9999"  # netSnmpPlaypen: the power of outlet N is TREE.N.1


def watts(*outlets: int) -> dict[str, tuple[str, object]]:
    """What the PDU answers: the first outlet's watts, the second's, ..."""
    return {f"{TREE}.{number}.1": ("gauge", value) for number, value in enumerate(outlets, 1)}


def outlets(nodes: str, numbers: str, more: str = "") -> str:
    """A channel: the outlets' power is these nodes' own, or what `more` says."""
    return f"  - {{nodes: '{nodes}', oid: '{TREE}.{numbers}.1'{more}}}\n"


class Gateway(Peer):
    """`joulemarkd --gateway` with its own configuration; a context manager."""

    def __init__(
        self,
        program: Path,
        folder: Path,
        broker: Broker,
        agent: Agent,
        channels: str,
        nodes: str = "n[1-3]",
        records: Path | None = None,
        cluster: str = CLUSTER,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.program, self.folder = program, folder
        self.records = records or folder / "records"
        self.records.mkdir(exist_ok=True)
        self.config, self.log_file = folder / "gateway.yaml", folder / "gateway.log"
        self.community = secret(folder / "community", COMMUNITY)
        self.config.write_text(
            f"cluster: {cluster}\nstate_dir: {folder}/state\nrecord_dir: {self.records}\n"
            f"socket: {folder}/g.sock\nlog_file: {self.log_file}\n"
            f"mqtt: {{host: localhost, port: {broker.port}}}\n"
            f"gateway: {{nodes: '{nodes}', line_s: 0.5}}\n"
            f"instruments:\n{self.instrument('pdu', agent, channels)}"
        )

    def instrument(self, name: str, agent: Agent, channels: str) -> str:
        """An entry of `instruments:`."""
        return (
            f"- name: {name}\n  type: snmp\n  host: '{agent.host}'\n"
            f"  community_file: {self.community}\n"
            "  period_s: 0.2\n  timeout_s: 2\n  error: {relative: 0.01}\n"
            f"  channels:\n{channels}"
        )

    def add(self, name: str, agent: Agent, channels: str) -> Gateway:
        """Another PDU, before the start."""
        text = self.config.read_text() + self.instrument(name, agent, channels)
        self.config.write_text(text)
        return self

    def command(self) -> list[object]:
        return [self.program, "--gateway", "-c", self.config]

    def ready(self) -> bool:
        return "gateway of" in self.log()

    def lines(self, channel: str) -> list[dict]:
        path = self.records / "shared" / f"{channel}.jsonl"
        if not path.exists():
            return []
        text = path.read_text()
        return [json.loads(line) for line in text.splitlines(True) if line.endswith("\n")]

    def check(self) -> str:
        """What --check complains of."""
        words = [str(self.program), "--check", "-c", str(self.config)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert (done.returncode == 0) == (done.stderr == "")
        return done.stderr


CHANNELS = (
    outlets("n[1-3]", "[1-3]")
    + outlets("n[1-3]", "4", ", name: rack, shared: energy")
    + outlets("n[1-3]", "5", ", name: switch, shared: equal")
)
