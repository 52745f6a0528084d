# The package's rooms: imports go one way, also those within functions.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import joulemark

SOURCE = Path(joulemark.__file__).parent


def room(module: str) -> str:
    """`joulemark.store.jobs` is in store; a module beside the rooms is a room by itself."""
    return module.partition(".")[2].partition(".")[0]


def imports() -> dict[str, set[str]]:
    """Of each room, those it takes something from."""
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        own = room(".".join(("joulemark", *path.relative_to(SOURCE).with_suffix("").parts)))
        for one in ast.walk(ast.parse(path.read_text())):
            for module in imported(one):
                found.setdefault(own, set()).add(room(module))
    return {own: others - {own, ""} for own, others in found.items()}


def imported(one: ast.AST) -> list[str]:
    if isinstance(one, ast.Import):
        return [name.name for name in one.names if name.name.startswith("joulemark.")]
    if not isinstance(one, ast.ImportFrom) or not (one.module or "").startswith("joulemark"):
        return []
    names = [f"{one.module}.{name.name}" for name in one.names]
    return names if one.module == "joulemark" else [one.module]


def test_no_room_needs_one_that_needs_it():
    order = list(TopologicalSorter(imports()).static_order())  # CycleError names the circle
    assert order.index("store") < order.index("accounting") < order.index("commands")
    assert order.index("bench") < order.index("plots") < order.index("commands")
