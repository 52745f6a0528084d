# Expands Slurm's node lists: n[1-3,07],gpu4 -> n1 n2 n3 n07 gpu4.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import re

from joulemark.errors import UsageError

_NAME = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")
MOST = 64 * 1024  # nodes, as Slurm has it


def expand(text: str, where: str = "--nodes") -> list[str]:
    """Every node that a Slurm host list names, in its order, each once; where: it was written."""
    names = _NAME.findall(text)
    if not names or ",".join(names) != text or not text.isprintable():
        raise UsageError(f"{where}: '{text}' is not a node list such as n1,n2 or n[1-4]")
    nodes: dict[str, None] = {}
    for name in names:
        nodes.update(dict.fromkeys(_expand_one(name, where)))
        _check_count(len(nodes), where)
    return list(nodes)


def _expand_one(name: str, where: str) -> list[str]:
    bracket = _BRACKET.search(name)
    if not bracket:
        return [name]
    head, tail = name[: bracket.start()], _expand_one(name[bracket.end() :], where)
    numbers: list[str] = []
    for part in bracket.group(1).split(","):
        numbers += _numbers(part, where)
        _check_count(len(numbers) * len(tail), where)
    return [f"{head}{number}{rest}" for number in numbers for rest in tail]


def _check_count(count: int, where: str) -> None:
    if count > MOST:
        raise UsageError(f"{where}: more than {MOST} nodes: name fewer")


def _numbers(part: str, where: str) -> list[str]:
    found = _RANGE.fullmatch(part)
    numbers = range(int(found[1]), int(found[2] or found[1]) + 1) if found else ()
    if not 0 < len(numbers) <= MOST:
        raise UsageError(f"{where}: '[{part}]' is not a range of node numbers such as [1-4]")
    width = len(found[1])
    return [f"{number:0{width}d}" for number in numbers]
