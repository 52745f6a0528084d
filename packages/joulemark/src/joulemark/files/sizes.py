# How much there is of what: sizes, owners, ages, kinds.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import contextlib
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from joulemark import layout, progress, units
from joulemark.errors import UsageError
from joulemark.files import database, scan
from joulemark.files.database import BLOCK_BYTES, SIZES_SUMMED, TYPE_OF_MODE, Scan
from joulemark.folders import owner_name

KIB = 1 << 10
#: a row's files are smaller than this, and not smaller than the one before
SIZES = (1, *(4**power * KIB for power in range(1, 16, 2)))
DAY_NS = 86_400 * units.NS_PER_S
DAYS = (1, 7, 30, 90, 180, 365, 730)
SUMS = ("objects", "size_bytes", "allocated_bytes")
FILES = f"{TYPE_OF_MODE} = {stat.S_IFREG}"


@dataclass(frozen=True)
class By:
    """How objects are grouped: by an expression of SQL, whose values have names."""

    head: str
    key: str  # of the record
    expression: Callable[[Scan, argparse.Namespace], str]
    name: Callable[[int], str]
    where: str = ""


def run(options: argparse.Namespace) -> int:
    """`joulemark fs sizes`."""
    if options.time != "mtime" and options.by != "age":
        raise UsageError(f"--time {options.time}: is of ages: say --by age, too")
    with contextlib.ExitStack() as stack:
        scans = [stack.enter_context(database.opened(path)) for path in options.databases]
        if options.by == "scan":
            scan.show(options, scans)
        else:
            _show(options, scans)
    return 0


def _show(options: argparse.Namespace, scans: list[Scan]) -> None:
    by = BY[options.by]
    with progress.shown("summing sizes"):
        of_each = [list(_records(one, by, options)) for one in scans]
    tables = [_table(*one, by) for one in zip(scans, of_each)]
    left_out = [
        f"{one.root_text}: {one.unread} could not be read, and are in no sum"
        for one in scans
        if one.unread
    ]
    records = [record for each in of_each for record in each]
    layout.show(options, records, tables, [], ("root", "began", by.key, *SUMS), left_out)


def _records(one: Scan, by: By, options: argparse.Namespace) -> Iterable[dict]:
    where = f"AND {by.where}" if by.where else ""
    found = one.rows(
        f"SELECT {by.expression(one, options)} AS found, count(*), {SIZES_SUMMED}, sum(blocks)"
        f" FROM object WHERE NOT again {where} GROUP BY found ORDER BY found"
    )
    for value, objects, high, low, blocks in found:
        size = database.summed(high, low)
        values = (one.root_text, one.began, by.name(value), objects, size, blocks * BLOCK_BYTES)
        yield dict(zip(("root", "began", by.key, *SUMS), values))


def _table(one: Scan, records: list[dict], by: By) -> layout.Text:
    total = {by.key: "all", **{name: sum(row[name] for row in records) for name in SUMS}}
    body = [
        (
            "value",
            [
                row[by.key],
                str(row["objects"]),
                _share(row["objects"], total["objects"]),
                database.bytes_text(row["size_bytes"]),
                _share(row["size_bytes"], total["size_bytes"]),
                database.bytes_text(row["allocated_bytes"]),
            ],
        )
        for row in [*records, total]
    ]
    heads = [by.head, "Objects", "", "Size", "", "Allocated"]
    return layout.Text(f"{one.root_text}, {one.began}", heads, body, optional=((5,), (2,)))


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


# -- what can be said behind --by ----------------------------------------------------------------


def _class_of(value: str, limits: Iterable[int]) -> str:
    """In SQL, the place among the limits."""
    return " + ".join(f"({value} >= {limit})" for limit in limits)


def _age_class(one: Scan, options: argparse.Namespace) -> str:
    age_ns = f"({one.told['began_ns']} - {options.time}_ns)"
    return _class_of(age_ns, (days * DAY_NS for days in DAYS))


def _class_name(limits: tuple, text: Callable[[int], str]) -> Callable[[int], str]:
    def name(index: int) -> str:
        if index == len(limits):
            return f"{text(limits[-1])} and more"
        return f"below {text(limits[index])}"

    return name


def _binary(size: int) -> str:
    """1, 4 KiB, 64 MiB."""
    power = (size.bit_length() - 1) // 10
    return f"{size >> 10 * power} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def _days(days: int) -> str:
    return f"{days} d"


BY = {
    "size": By(
        "File of", "size", lambda *_: _class_of("size", SIZES), _class_name(SIZES, _binary), FILES
    ),
    "age": By("Age", "age", _age_class, _class_name(DAYS, _days), FILES),
    "owner": By("Owner", "owner", lambda *_: "uid", owner_name),
    "group": By("Group", "group", lambda *_: "gid", database.group_name),
    "kind": By("Kind", "kind", lambda *_: TYPE_OF_MODE, database.kind_of),
}
