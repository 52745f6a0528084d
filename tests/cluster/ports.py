"""TCP ports of a cluster: chosen once and kept, so that several clusters live on one machine."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import json
import random
import socket
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.cluster.errors import ClusterError

FILE = "ports.json"
ESTABLISHED, LISTEN = "01", "0A"  # a socket's states in /proc/net/tcp
_claims: dict[int, socket.socket] = {}


def known_ports(state: Path) -> dict[str, int]:
    path = state / FILE
    return json.loads(path.read_text()) if path.exists() else {}


def choose_ports(state: Path, names: Iterable[str], running: Mapping[str, bool]) -> dict[str, int]:
    """Each name's port as at the first start; a new one where a stranger has it.

    `running` tells which of our own servers are alive, and so listen themselves.
    """
    known = known_ports(state)
    ports: dict[str, int] = {}
    for name in names:
        port = known.get(name)
        if port is None or not (running.get(name) or (_claim(port) and not listens(port))):
            port = _new_port({*known.values(), *ports.values()})
        ports[name] = port
    (state / FILE).write_text(json.dumps({**known, **ports}, indent=1) + "\n")
    return ports


def listens(port: int) -> bool:
    """Looks instead of connecting: a probe without a word would be an error in Slurm's logs."""
    return any(state == LISTEN and own == port for own, _, state in _sockets())


def connected(port: int) -> bool:
    """Is there a client of the server?"""
    return any(state == ESTABLISHED and other == port for _, other, state in _sockets())


def _sockets() -> Iterator[tuple[int, int, str]]:
    """Own port, the other end's, state."""
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                words = line.split()
                own, other = (int(word.rpartition(":")[2], 16) for word in words[1:3])
                yield own, other, words[3]


def free_port() -> int:
    """A port for a server of one test, TCP or UDP."""
    return _new_port(set())


def _new_port(taken: set[int]) -> int:
    """Below the kernel's ephemeral ports, so that no client's connection ever sits on it."""
    for _ in range(200):
        port = random.randrange(20000, 30000)
        if port not in taken and port not in _claims and _can_be_bound(port) and _claim(port):
            return port
    raise ClusterError("no free port between 20000 and 30000")


def _claim(port: int) -> bool:
    """Ours until this process ends: two that choose before either listens get different ones."""
    if port not in _claims:
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0joulemark-port-{port}")
        except OSError:
            claim.close()
            return False
        _claims[port] = claim
    return True


def _can_be_bound(port: int) -> bool:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind(("", port))
            except OSError:
                return False
    return True
