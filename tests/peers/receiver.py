"""`joulemark receive`: records from a broker into a folder."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.cluster import CHECKOUT
from tests.peers.peer import Peer

BROKEN = """\
from joulemark.accounting import receive

def {name}(*_):
    raise RuntimeError("broken on purpose")

receive.{name} = {name}
"""


class Receiver(Peer):
    """With the configuration of the node, or the cluster, whose records they are."""

    def __init__(self, config: Path, folder: Path, installed: Sequence[object] = ()) -> None:
        """installed: the words of a `joulemark`; without it this checkout's, by our own Python"""
        self.config, self.folder, self.log_file = config, folder, folder / "receiver.log"
        self.words = installed or [sys.executable, "-m", "joulemark"]
        self.path = "" if installed else str(CHECKOUT / "packages" / "joulemark" / "src")

    def command(self) -> list[object]:
        self.env = {"JOULEMARK_CONFIG": str(self.config), "PYTHONPATH": self.path}
        self.connections = self._connections()
        return [*self.words, "receive"]

    def ready(self) -> bool:
        return self._connections() > self.connections

    def _connections(self) -> int:
        return self.log().count("the broker takes us")

    def break_function(self, name: str) -> None:
        """From its next start on, every call of this function of joulemark.receive fails."""
        folder = self.folder / "broken"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(BROKEN.format(name=name))
        self.path = f"{folder}:{self.path}"
