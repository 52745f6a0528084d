# What the benchmarks share: figures with their peers and goals, for people or as JSON lines; the
# CPU time of processes; the build, and the command of the sources.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import json
import os
import resource
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.cluster import BUILD_LIMIT_S, CHECKOUT, run_child, state_folder


@dataclass(frozen=True)
class Figure:
    """One line of the result. peer: what it is compared with, by name or value."""

    name: str
    value: float
    unit: str
    peer: str | float | None = None
    goal: str = ""
    met: bool | None = None  # None: it has no goal
    spread: tuple[float, float] | None = None  # lowest and highest of what the value sums up


def at_most(
    name: str, value: float, unit: str, limit: float, peer: str | float | None = None
) -> Figure:
    return Figure(name, value, unit, peer, f"<= {limit:g}", value <= limit)


def line_of(figure: Figure) -> str:
    line = f"{figure.name:36} {figure.value:12.3f} {figure.unit:24}"
    if figure.spread:
        line += " [{:.3f}, {:.3f}]".format(*figure.spread)
    if isinstance(figure.peer, (int, float)):
        line += f" (peer: {figure.peer:g})"
    if figure.met is not None:
        line += f" goal {figure.goal}: {'met' if figure.met else 'NOT MET'}"
    return line.rstrip()


def show(figures: Iterable[Figure], as_json: bool) -> bool:
    """Prints each as it comes. Were all goals met?"""
    met = True
    for figure in figures:
        print(json.dumps(asdict(figure)) if as_json else line_of(figure), flush=True)
        met = met and figure.met is not False
    return met


def make_parser(text: str) -> argparse.ArgumentParser:
    """Of a benchmark's options, with the one that all have; the text is its own."""
    made = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--json", action="store_true", help="one JSON object a figure")
    return made


def command_environment(configuration: Path, bytecode: Path) -> dict[str, str]:
    """Of `python -m joulemark` from the sources, with its bytecode as an installed one has it: a
    folder that is kept between commands, else each compiles all its modules."""
    return {
        **os.environ,
        "JOULEMARK_CONFIG": str(configuration),
        "PYTHONPATH": str(CHECKOUT / "packages/joulemark/src"),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(bytecode),
    }


def bring_build_up_to_date() -> None:
    """Ends the program where it cannot."""
    if run_child([CHECKOUT / "environments" / "build", "--state", state_folder()], BUILD_LIMIT_S):
        raise SystemExit("bench: environments/build failed")


def cpu_s(pid: int) -> float:
    """CPU time of a process's threads, as the scheduler counts it."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def cpu_of_children_s() -> float:
    """Of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
