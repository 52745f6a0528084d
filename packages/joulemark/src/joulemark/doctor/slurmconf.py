# Reads slurm.conf as far as a check needs it: also where slurmctld is dead and says nothing.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
import re
from pathlib import Path

from joulemark import hostlist
from joulemark.slurm.configuration import words

PLACES = ("/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf")  # the second: configless


def find() -> Path:
    """$SLURM_CONF, else the usual places."""
    named = os.environ.get("SLURM_CONF")
    if named:
        return Path(named)
    return next((Path(place) for place in PLACES if os.path.exists(place)), Path(PLACES[0]))


class SlurmConf:
    """Keys of a slurm.conf by their lower-case names; a key that repeats has all its values."""

    def __init__(self, path: Path):
        self.path = path
        self.values: dict[str, list[str]] = {}
        self.nodes: list[dict[str, str]] = []  # its NodeName lines
        self._read(path, depth=0)

    def get(self, key: str, default: str = "") -> str:
        """The last value, as Slurm takes it."""
        return self.values.get(key.lower(), [default])[-1]

    def all(self, key: str) -> list[str]:
        """Every value, for keys such as Epilog that may repeat or hold a comma list."""
        return [part for value in self.values.get(key.lower(), []) for part in value.split(",")]

    def words(self, key: str) -> set[str]:
        """A comma list's."""
        return words(self.get(key))

    def names_of(self, line: dict[str, str], key: str = "nodename") -> list[str]:
        """What a NodeName line names: its nodes, or their NodeHostname."""
        written = {"nodename": "NodeName", "nodehostname": "NodeHostname"}[key]
        return hostlist.expand(line.get(key, line["nodename"]), f"{self.path}: {written}")

    def _read(self, path: Path, depth: int) -> None:
        for line in _lines(path.read_text(errors="replace")):
            included = re.match(r"include\s+(\S+)", line, re.IGNORECASE)
            if included and depth < 10:
                self._read(path.parent / included[1], depth + 1)
                continue
            pairs = re.findall(r"([\w.]+)\s*=\s*(\"[^\"]*\"|\S*)", line)
            if not pairs:
                continue
            if pairs[0][0].lower() == "nodename":
                if pairs[0][1].upper() == "DEFAULT":  # what later lines have, and no node
                    continue
                self.nodes.append({key.lower(): value.strip('"') for key, value in pairs})
            else:
                for key, value in pairs:
                    self.values.setdefault(key.lower(), []).append(value.strip('"'))


def _lines(text: str) -> list[str]:
    """Without comments, continued lines joined."""
    text = re.sub(r"\\\s*\n", " ", text)
    lines = (re.sub(r"(?<!\\)#.*", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line]
