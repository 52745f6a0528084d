# Peak performance and bandwidth of the machine that was measured, and where they come from.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from joulemark.bench import published
from joulemark.bench.cooked import Measurement
from joulemark.bench.stats import Series

CPUINFO = Path("/proc/cpuinfo")
BYTES_A_TRANSFER = 8  # of a 64-bit channel
# What measures a peak: arithmetic alone, memory alone.
MEASURES = {"F/s": ("mod2am", "hpl", "jm-linpack"), "B/s": ("jm-stream",)}


@dataclass(frozen=True)
class Peak:
    """F/s or B/s, and its source in words."""

    value: float
    source: str


def of_published(name: str, unit: str) -> Peak | None:
    """A prototype's, as the report has it."""
    one = published.prototypes()[name]
    value, source = {
        "F/s": (one.peak, one.peak_source),
        "B/s": (one.bandwidth, one.bandwidth_source),
    }.get(unit, (None, ""))
    return None if value is None else Peak(value, f"{_giga(value, unit)}: {source}")


def of_machine(
    series: Series, measured: Iterable[Measurement], given: dict[str, float], wanted: str
) -> Peak | None:
    """Of all nodes of a run, where these are told: what was given for its unit, else of the
    processor table; else the best that as many ranks measured on as many nodes.

    wanted is table, measured, or auto for that order."""
    one = _of_node(series, given, wanted) if series.nodes else None
    if one is None:
        return None if wanted == "table" else _of_measurements(series, measured)
    if series.nodes == 1:
        return one
    value = series.nodes * one.value
    return Peak(value, f"{_giga(value, series.unit)}: {series.nodes} nodes x {one.source}")


def _of_node(series: Series, given: dict[str, float], wanted: str) -> Peak | None:
    if series.unit in given:
        value = given[series.unit]
        return Peak(value, f"{_giga(value, series.unit)}: given on the command line")
    return None if wanted == "measured" else _of_table(series)


def _of_measurements(series: Series, measured: Iterable[Measurement]) -> Peak | None:
    """Of memory, only the longest vectors count: shorter ones are in a cache."""
    same = [
        one
        for one in measured
        if one.benchmark in MEASURES.get(series.unit, ())
        and (one.device or one.cpu, one.target) == (series.machine, series.target)
        and (one.ranks, one.nodes) == (series.ranks, series.nodes)
        and one.unit == series.unit
        and one.performance
    ]
    if series.unit == "B/s":
        longest = max((one.size for one in same), default=0)
        same = [one for one in same if one.size == longest]
    if not same:
        return None
    best = max(same, key=lambda one: one.performance)
    what = f"{best.benchmark} {best.kernel}" if best.kernel != best.benchmark else best.benchmark
    return Peak(
        best.performance,
        f"{_giga(best.performance, best.unit)}: the best measured, {what} {best.variant}, "
        f"size {best.size}; a part of it is not a part of the theoretical peak",
    )


def _of_table(series: Series) -> Peak | None:
    for row in published.rows_of("processors.csv"):
        if re.search(row["match"], f"{series.machine} "):
            return (_of_device if row["peak_giga"] else _of_processor)(row, series)
    return None


def _of_device(row: dict[str, str], series: Series) -> Peak | None:
    """Of a node with one; whether several ranks there shared it or had one each, nobody told."""
    key = {"F/s": "peak_giga", "B/s": "bandwidth_giga"}.get(series.unit)
    if key is None or not row[key] or series.ranks != series.nodes:
        return None
    value = float(row[key]) * 1e9
    return Peak(value, f"{_giga(value, series.unit)}: {_source(row)}")


def _of_processor(row: dict[str, str], series: Series) -> Peak | None:
    """Of a node."""
    cores, sockets, whose = _node(series, int(row["cores"]))
    if series.unit == "F/s":
        value = cores * float(row["clock_ghz"]) * 1e9 * float(row["flops_per_cycle"])
        terms = f"{cores} cores x {row['clock_ghz']} GHz x {row['flops_per_cycle']} F/cycle"
    elif series.unit == "B/s":
        channels = sockets * int(row["channels"])
        value = channels * float(row["transfers_mega"]) * 1e6 * BYTES_A_TRANSFER
        terms = f"{channels} channels x {row['transfers_mega']} MT/s x {BYTES_A_TRANSFER} B"
    else:
        return None
    return Peak(value, f"{_giga(value, series.unit)}: {terms} ({whose}; {_source(row)})")


def _source(row: dict[str, str]) -> str:
    """The title and, where it has one, the address of what a row was taken from."""
    return " ".join(filter(None, (row["source"], row["address"])))


def _node(series: Series, cores_a_socket: int) -> tuple[int, int, str]:
    """Cores and sockets of a node, and how they are known."""
    here = this_node()
    threads = series.threads * -(-series.ranks // series.nodes)
    if here.get("model name") == series.cpu and threads <= here["threads"]:
        return here["cores"], here["sockets"], "as many as here"
    sockets = -(-threads // cores_a_socket)
    plural = "socket" if sockets == 1 else "sockets"
    return sockets * cores_a_socket, sockets, f"measured elsewhere: {sockets} {plural} assumed"


@functools.lru_cache(maxsize=1)
def this_node() -> dict:
    """The processor's name, and how many threads, cores and sockets this machine has."""
    try:
        text = CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    names, cores, physical = [], set(), "0"
    for line in text.splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        names += [value] if key == "model name" else []
        physical = value if key == "physical id" else physical
        if key == "core id":
            cores.add((physical, value))
    return {
        "model name": names[-1] if names else None,
        "threads": len(names),
        "cores": len(cores) or os.cpu_count() or 1,
        "sockets": len({socket for socket, _ in cores}) or 1,
    }


def _giga(value: float, unit: str) -> str:
    return f"{value / 1e9:.4g} G{unit}"
