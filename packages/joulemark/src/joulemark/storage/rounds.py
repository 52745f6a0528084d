# Files written and read in rounds: what `joulemark io survey` and `io rpcs` measure.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from joulemark import ending, layout, progress
from joulemark.errors import UsageError
from joulemark.storage import targets, transfer

MIB = 1 << 20
KINDS = ("write", "read")
REMOVAL_S = 30.0


@dataclass
class Measured:
    """Bytes a second, a value each round."""

    rates: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    trouble: str = ""  # why there are no more

    def median(self, kind: str) -> float | None:
        """None: there is none."""
        return statistics.median(self.rates[kind]) if self.rates[kind] else None


def removal_s(options: argparse.Namespace) -> float:
    """For some empty files, of a file system that may hang."""
    return min(options.limit, REMOVAL_S)


def check_room(folder: Path, n_bytes: int) -> None:
    """UsageError: its file system has not that much."""
    free = shutil.disk_usage(folder).free
    if free < targets.SPARE * n_bytes:
        raise UsageError(f"--size: {n_bytes} bytes: its file system has room for {free}")


def measured(
    names: Sequence[str], options: argparse.Namespace, file_of: Callable[[str], Path]
) -> dict[str, Measured]:
    """In rounds, so that what comes and goes meets all alike; each is another round's first. What
    has to be before a measurement, file_of() does."""
    found = {name: Measured() for name in names}
    for number in range(options.rounds):
        first = number % max(1, len(names))
        for name in [*names[first:], *names[:first]]:
            one = found[name]
            if one.trouble:
                continue
            with progress.shown(f"round {number + 1} of {options.rounds}: {name}"):
                seconds = transferred(file_of(name), options.size, options.limit)
            if isinstance(seconds, str):
                one.trouble = seconds
                continue
            for kind in KINDS:
                one.rates[kind].append(options.size / seconds[f"{kind}_s"])
    return found


def transferred(path: Path, n_bytes: int, limit_s: float) -> dict[str, float] | str:
    """joulemark.storage.transfer's seconds, or why there are none. -I: nothing that lies in the
    folder where we run is Python of ours."""
    words = [sys.executable, "-I", transfer.__file__, path, str(n_bytes)]
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as complained:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": said, "stderr": complained}
        try:
            with ending.child(words, _give_up, **pipes) as own:
                own.wait(limit_s)
        except subprocess.TimeoutExpired:
            more = ", nor to be ended" if own.returncode is None else ""
            return f"not done within {limit_s:g} s{more}"
        said.seek(0)
        complained.seek(0)
        if own.returncode:
            why = complained.read().strip().rpartition("\n")[2]
            return why or f"exit status {own.returncode}"
        return json.loads(said.read())


def _give_up(own: subprocess.Popen) -> None:
    ending.ended(own, 0)


def columns(one: Measured) -> dict:
    """Of a row."""
    rates = {f"{kind}_bytes_per_s": one.median(kind) for kind in KINDS}
    return {**rates, "rounds": len(one.rates["read"])}


def as_text(
    options: argparse.Namespace, head: str, rows: Sequence[dict], said: Callable[[dict], str]
) -> layout.Text:
    """A line a row; head: its first column's name."""
    heads = [head, "Write [MiB/s]", "Read [MiB/s]", ""]
    body = []
    for row in rows:
        rates = (row[f"{kind}_bytes_per_s"] for kind in KINDS)
        cells = ["-" if rate is None else f"{rate / MIB:.1f}" for rate in rates]
        name, more = str(next(iter(row.values()))), said(row)
        body.append(("failed" if more else "value", [name, *cells, more]))
    title = f"{options.folder}: {options.size / MIB:g} MiB a round, by one task"
    return layout.Text(title, heads, body)
