# Caliper's .cali text, which Thicket, Hatchet and Benchpark read: metadata, regions, metrics.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Union

Value = Union[str, int, float]
Path = Sequence[str]  # of a region, the outermost first

# Nodes that each reader knows beforehand: three attributes' ids, and the ids of types.
NAME, PROPERTIES = 8, 10
TYPES = {int: 1, str: 3, float: 5}
FIRST_FREE = 12
# Sums of Caliper's bits: what nests and is of a thread; what is stored as a value, can be added up
# and marks no event; what is stored as a value, is of the process and global, and marks no event.
NESTED, METRIC, GLOBAL = 256 + 20, 1 + 64 + 2048, 1 + 64 + 12 + 512


def text(metadata: Mapping[str, Value], regions: Mapping[Path, Mapping[str, Value]]) -> str:
    """One profile. A region of which nothing is known is in the tree all the same."""
    writer = _Writer()
    for path, metrics in regions.items():
        writer.record("ctx", METRIC, metrics, ref=writer.region(path))
    writer.record("globals", GLOBAL, metadata)
    return "".join(f"{line}\n" for line in writer.lines)


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._nodes: dict[tuple, int] = {}

    def record(self, kind: str, properties: int, values: Mapping[str, Value], **more: int) -> None:
        """A snapshot; attributes come last, for a reader drops a line's last field if it is empty
        and blanks at a line's end."""
        fields = {**more}
        if values:
            attributes = [self._attribute(key, properties, type(values[key])) for key in values]
            fields["data"] = "=".join(_escaped(value) for value in values.values())
            fields["attr"] = "=".join(map(str, attributes))
        self._line(kind, fields)

    def region(self, path: Path) -> int:
        """Its node, below its parent's."""
        attribute = self._attribute("region", NESTED, str)
        node = None
        for name in path:
            node = self._node(attribute, name, node)
        return node

    def _attribute(self, name: str, properties: int, kind: type) -> int:
        return self._node(NAME, name, self._node(PROPERTIES, properties, TYPES[kind]))

    def _node(self, attribute: int, data: Value, parent: int | None) -> int:
        key = (attribute, data, parent)
        if key not in self._nodes:
            self._nodes[key] = number = FIRST_FREE + len(self._nodes)
            fields = {"id": number, "data": _escaped(data), "attr": attribute}
            self._line("node", fields if parent is None else {**fields, "parent": parent})
        return self._nodes[key]

    def _line(self, kind: str, fields: Mapping[str, Value]) -> None:
        parts = [f"{key}={value}" for key, value in {"__rec": kind, **fields}.items()]
        self.lines.append(",".join(parts))


def _escaped(value: Value) -> str:
    """A carriage return would end the line, and has no escape."""
    text = str(value).replace("\\", "\\\\").replace("\r", " ")
    for letter in ",=":
        text = text.replace(letter, f"\\{letter}")
    return text.replace("\n", "\\n")
