# Files that a policy names: older, bigger, of an owner. They are listed, and nothing else.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import re
import stat
import sys
from collections.abc import Iterator

from joulemark import layout, output, progress
from joulemark.errors import UsageError
from joulemark.files import database
from joulemark.files.database import BLOCK_BYTES, TYPE_OF_MODE, Scan
from joulemark.folders import owner_name

MOST_SHOWN = 100  # to people who say no --top
BATCH = 10_000
HEADS = ["Path", "Size", "Owner", "Modified"]
COLUMNS = ("path", "kind", "size_bytes", "allocated_bytes", "owner", "group", "mtime", "atime")
FIELDS = "folder, name, mode, size, blocks, uid, gid, mtime_ns, atime_ns"


def run(options: argparse.Namespace) -> int:
    """`joulemark fs list`."""
    with database.opened(options.database) as scan:
        where, values = _where(scan, options)
        (count,) = scan.rows(f"SELECT count(*) FROM object WHERE {where}", *values).fetchone()
        top = options.top
        if top is None and not options.print0 and options.format not in output.FORMATS:
            top = MOST_SHOWN
        order = "" if top is None else f"ORDER BY size DESC, id LIMIT {top}"
        rows = scan.rows(f"SELECT {FIELDS} FROM object WHERE {where} {order}", *values)
        left_out = [f"{scan.unread} could not be read, and are not looked at"] * bool(scan.unread)
        if options.print0:
            _print0(scan, rows)
            output.tell(left_out)
        elif options.format in output.FORMATS:
            batches = progress.counted(_batches(scan, rows), "files", of=len)
            output.write(batches, options.format, options.out, COLUMNS)
            output.tell(left_out)
        else:
            _show(options, scan, list(rows), count, left_out)
    return 0


def _where(scan: Scan, options: argparse.Namespace) -> tuple[str, list[int]]:
    """A name of a hard link is listed as each other: to remove one frees nothing."""
    conditions = [(f"{TYPE_OF_MODE} = ?", stat.S_IFREG)]
    if options.older is not None:
        conditions.append((f"{options.time}_ns < ?", scan.told["began_ns"] - options.older))
    if options.bigger is not None:
        conditions.append(("size > ?", options.bigger))
    if options.owner is not None:
        conditions.append(("uid = ?", _user_id(options.owner)))
    return " AND ".join(one for one, _ in conditions), [value for _, value in conditions]


def _user_id(text: str) -> int:
    import pwd

    if re.fullmatch("[0-9]{1,10}", text):
        return int(text)
    try:
        return pwd.getpwnam(text).pw_uid
    except KeyError:
        raise UsageError(f"--owner {text}: is no user here: give a number") from None


def _print0(scan: Scan, rows: Iterator[tuple]) -> None:
    """The very bytes, for `xargs -0`."""
    for folder, name, *_ in rows:
        sys.stdout.buffer.write(scan.path_of(folder, name) + b"\0")
    sys.stdout.buffer.flush()


def _batches(scan: Scan, rows: Iterator[tuple]) -> Iterator[list[dict]]:
    batch: list[dict] = []
    for row in rows:
        batch.append(_record(scan, row))
        if len(batch) == BATCH:
            yield batch
            batch = []
    yield batch


def _record(scan: Scan, row: tuple) -> dict:
    folder, name, mode, size, blocks, uid, gid, mtime_ns, atime_ns = row
    path = database.text_of(scan.path_of(folder, name))
    values = (path, database.kind_of(mode), size, blocks * BLOCK_BYTES)
    values += (owner_name(uid), database.group_name(gid))
    return dict(zip(COLUMNS, (*values, database.iso(mtime_ns), database.iso(atime_ns))))


def _show(
    options: argparse.Namespace, scan: Scan, rows: list[tuple], count: int, left_out: list[str]
) -> None:
    records = [_record(scan, row) for row in rows]
    body = [
        (
            "value",
            [one["path"], database.bytes_text(one["size_bytes"]), one["owner"], one["mtime"]],
        )
        for one in records
    ]
    table = layout.Text(f"{scan.root_text}, {scan.began}", HEADS, body, optional=((2,),))
    notes = [f"{count} files."]
    if count > len(records):
        notes = [f"The {len(records)} largest of {count} files; --top, or --format csv, has more."]
    layout.show(options, records, [table], notes, COLUMNS, left_out)
