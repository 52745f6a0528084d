# An operator's nodes: what each draws, what of it jobs are charged, what is nobody's.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from joulemark.layout import ESTIMATE_MARK, LEGEND_ESTIMATED, Text
from joulemark.top import columns
from joulemark.top.readings import Pair
from joulemark.units import known_sum

HEADS = ("Node", "Now [W]", "Jobs [W]", "Nobody's [W]", "Jobs", "Since begin [J]")
COLUMNS = ("time", "node", "power_w", "charged_w", "unallocated_w", "jobs", "energy_j")
COLUMNS += ("estimated", "said")
OPTIONAL = ((4,), (3,), (2,))
LEGEND = (
    "Now: since the reading before. Nobody's: what no job is charged. Jobs: a job of several "
    "nodes is on each: of all there is no sum. -: not known (yet), and in no sum."
)
FEW = 8  # of those who are silent, named in the notes


class Source(Protocol):
    """A context that tells of nodes."""

    def until(self, moment_s: float) -> Iterator[tuple[str, str | None]]:
        """Nodes and lines, up to a moment of time.monotonic().

        A line is that of `joulemarkctl node`, or one that has `watts` and no energy, or something
        else that is said of the node; None: nothing more will be.
        """


@dataclass(frozen=True)
class Reading:
    """One node at a moment; None: its source does not tell."""

    time_ns: int
    energy_uj: int | None
    watts: float | None
    charged_uj: int | None
    unallocated_uj: int | None
    jobs: int | None
    estimated: bool | None

    @classmethod
    def parse(cls, line: str) -> Reading | None:
        """None: it is something else that was said."""
        words = dict(word.partition("=")[::2] for word in line.split())
        if "time_ns" not in words or not {"energy_uj", "watts"} & words.keys():
            return None

        def whole(name: str) -> int | None:
            return int(words[name]) if name in words else None

        try:
            return cls(
                int(words["time_ns"]),
                whole("energy_uj"),
                float(words["watts"]) if "watts" in words else None,
                *(whole(name) for name in ("charged_uj", "unallocated_uj", "jobs")),
                words["estimated"] == "1" if "estimated" in words else None,
            )
        except ValueError:
            return None


class Node(Pair):
    """And what came together since the first."""

    def __init__(self):
        super().__init__()
        self.energy_j = 0.0
        self.said = ""  # last, that is no reading

    def take(self, reading: Reading, now_s: float) -> bool:
        """Adds what was used since the last one that it goes on with."""
        self.said = ""
        goes_on = super().take(reading, now_s)
        if goes_on:
            gained_w = self.rate("energy_uj")
            self.energy_j += self.between_s * (
                self.before.watts or 0.0 if gained_w is None else gained_w
            )
        return goes_on

    @property
    def power_w(self) -> float | None:
        """Its source's own figure, or by what came to the energy."""
        told = self.last.watts if self.last else None
        return self.rate("energy_uj") if told is None else told


class Nodes:
    """What is watched: nodes, by one source."""

    columns = COLUMNS

    def __init__(
        self,
        names: Iterable[str],
        source: Source,
        about: str,
        every_s: float,
        away: dict[str, str] | None = None,
    ):
        """about: where figures are from; away: those that are not asked, and why."""
        self._source = source
        self._about = about
        self._away = away or {}
        self._nodes = {name: Node() for name in names if name not in self._away}
        self.every_s = every_s
        self.is_over = not self._nodes

    def __enter__(self) -> Nodes:
        self._source.__enter__()
        return self

    def __exit__(self, *reason) -> None:
        self._source.__exit__(*reason)

    def begin(self) -> None:
        """Its source asks when it is waited for."""

    @property
    def failed(self) -> bool:
        """Some node gave no answer."""
        return bool(self._away) or any(node.last is None for node in self._nodes.values())

    def wait(self, moment_s: float, *, for_all: bool = False, is_last: bool = False) -> None:
        """Takes in what comes up to a moment, or, for_all, until all have told of their power."""
        left = {name for name, node in self._nodes.items() if not _has_told(node)}
        for name, line in self._source.until(moment_s):
            node = self._nodes.get(name)
            if node and line is None:
                node.said = node.said or "it was asked in vain"
            elif node:
                reading = Reading.parse(line)
                if reading:
                    node.take(reading, time.monotonic())
                else:
                    node.said = line.strip() or node.said
            if node and _has_told(node):
                left.discard(name)
            if for_all and not left:
                return

    def news(self) -> list[str]:
        """Nodes come and go in the table."""
        return []

    def problems(self) -> list[str]:
        """The table's notes have them."""
        return []

    def _heard(self) -> dict[str, Node]:
        """Those that tell, the greatest power first."""
        silent_s = columns.silent_s(self.every_s)
        now_s = time.monotonic()
        heard = [
            (name, node)
            for name, node in self._nodes.items()
            if node.last and now_s - node.heard_s <= silent_s
        ]
        return dict(sorted(heard, key=lambda one: -(one[1].power_w or 0.0)))

    def silent(self) -> dict[str, str]:
        """Who does not tell, and why."""
        heard = self._heard()
        said = {
            name: node.said or "no answer (yet)"
            for name, node in self._nodes.items()
            if name not in heard
        }
        return {**self._away, **said}

    # ---- for people ----

    def table(self) -> tuple[Text, list[str]]:
        """The nodes, and what must be known to read them."""
        heard = self._heard()
        whole_j = sum(node.energy_j for node in heard.values())
        energies = columns.Joules([whole_j])
        body = [("value", [name, *_cells([node], energies)]) for name, node in heard.items()]
        body.append(("total", ["all", *_cells(list(heard.values()), energies)]))
        notes = [self._about, LEGEND]
        if any(node.last.estimated for node in heard.values()):
            notes.append(LEGEND_ESTIMATED)
        silent = self.silent()
        notes += [f"{name}: {why}" for name, why in list(silent.items())[:FEW]]
        if len(silent) > FEW:
            notes.append(f"No answer of {len(silent) - FEW} more: {' '.join(list(silent)[FEW:])}")
        heads = [energies.head(head) for head in HEADS]
        return Text(columns.clock(), heads, body, OPTIONAL), notes

    # ---- for programs ----

    def rows(self) -> list[dict]:
        """A node each, with the time of the round and why it does not tell."""
        unknown = {**dict.fromkeys(COLUMNS), "time": time.time(), "said": ""}
        silent = [{"node": name, "said": why} for name, why in self.silent().items()]
        return [{**unknown, **one} for one in [*self._node_records(), *silent]]

    def _node_records(self) -> list[dict]:
        return [
            {"node": name, **_figures([node]), "estimated": node.last.estimated}
            for name, node in self._heard().items()
        ]

    def record(self) -> dict:
        """Joules, watts; null: not known."""
        return {
            "time": time.time(),
            "nodes": self._node_records(),
            "silent": self.silent(),
        }


def _has_told(node: Node) -> bool:
    return node.power_w is not None or node.said != ""


def _figures(nodes: list[Node]) -> dict[str, float | int | None]:
    return {
        "power_w": known_sum(node.power_w for node in nodes),
        "charged_w": known_sum(node.rate("charged_uj") for node in nodes),
        "unallocated_w": known_sum(node.rate("unallocated_uj") for node in nodes),
        "jobs": nodes[0].last.jobs if len(nodes) == 1 else None,  # of several one job may be
        "energy_j": sum(node.energy_j for node in nodes),
    }


def _cells(nodes: list[Node], energies: columns.Joules) -> list[str]:
    found = _figures(nodes)
    mark = ESTIMATE_MARK if any(node.last.estimated for node in nodes) else ""
    powers = ("power_w", "charged_w", "unallocated_w")
    watts = [columns.watts(found[name], mark) for name in powers]
    jobs = "-" if found["jobs"] is None else str(found["jobs"])
    return [*watts, jobs, energies.cell(found["energy_j"], mark)]
