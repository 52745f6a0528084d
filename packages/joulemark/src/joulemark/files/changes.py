# What differs between two scans of a folder. Only folders whose digests differ are looked into.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Optional

from joulemark import layout, output
from joulemark.errors import UsageError, UserError
from joulemark.files import database
from joulemark.files import scan as scanning
from joulemark.files.database import Scan
from joulemark.folders import owner_name

MOST_SHOWN = 100  # to people who say no --top
MADE, REMOVED, CHANGED, MOVED = KINDS = ("made", "removed", "changed", "moved")
COLUMNS = ("change", "kind", "path", "path_before", "size_bytes", "size_before_bytes", "owner")
COLUMNS += ("what",)
HEADS = ["Path", "Change", "Kind", "Size before", "Size", "What"]
FIELDS = (
    "ino",
    "btime_ns",
    "mode",
    "uid",
    "gid",
    "nlink",
    "size",
    "blocks",
    "mtime_ns",
    "ctime_ns",
)
#: what is said of a change, and by which fields
WHAT = {
    "another": ("ino", "btime_ns"),
    "mode": ("mode",),
    "owner": ("uid", "gid"),
    "links": ("nlink",),
    "size": ("size",),
    "content": ("mtime_ns",),
    "blocks": ("blocks",),
    "attributes": ("ctime_ns",),
}
OF_FOLDERS = ("another", "mode", "owner")  # the rest changes with what is in them
Row = tuple  # a folder, a name, FIELDS
Pair = tuple[Optional[Row], Optional[Row]]  # before and after; None: there was, or is, none
PLACE = {name: 2 + at for at, name in enumerate(FIELDS)}
MODE = PLACE["mode"]
DIFFERING = (
    "SELECT now.ino FROM folder AS now JOIN before.folder AS was USING(ino)"
    " WHERE now.digest <> was.digest AND now.whole AND was.whole"
)
ALONE = "SELECT ino FROM {of}.folder WHERE ino NOT IN (SELECT ino FROM {other}.folder)"
UNREAD = (
    "SELECT count(*) FROM (SELECT ino FROM folder WHERE NOT whole"
    " UNION SELECT ino FROM before.folder WHERE NOT whole)"
)


@dataclass
class Changes:
    """From one scan to another of the same folder."""

    before: Scan
    after: Scan
    pairs: list[Pair] = field(default_factory=list)
    unread: int = 0  # folders that one of the two could not read


def run(options: argparse.Namespace) -> int:
    """`joulemark fs diff`."""
    with database.opened(options.before) as before, contextlib.ExitStack() as stack:
        after = stack.enter_context(_after(options, before))
        if before.root != after.root:
            raise UsageError(
                f"{before.path} is of {before.root_text}, {after.path} of {after.root_text}: "
                "name two scans of one folder"
            )
        found = between(before, after)
        _show(options, found)
    return 1 if found.unread else 0


@contextlib.contextmanager
def _after(options: argparse.Namespace, before: Scan) -> Iterator[Scan]:
    """The second database, or a scan of now, which is not kept."""
    if options.after is not None:
        with database.opened(options.after) as after:
            yield after
        return
    with tempfile.TemporaryDirectory(prefix="joulemark-fs-") as folder:
        path = os.path.join(folder, "now.db")
        root = os.fsdecode(before.root)
        if scanning.into(root, path, None) == scanning.NO_DATABASE:
            raise UserError(f"{before.root_text}: could not be scanned")
        with database.opened(path) as after:
            yield after


def between(before: Scan, after: Scan) -> Changes:
    """All that was made, removed or changed; a row moved where both say the same object."""
    found = Changes(before, after)
    after.rows("ATTACH ? AS before", database.uri_of(before.path))
    for (folder,) in after.rows(DIFFERING):
        found.pairs += _merged(_rows(before, folder), _rows(after, folder))
    gone = [one for (one,) in after.rows(ALONE.format(of="before", other="main"))]
    came = [one for (one,) in after.rows(ALONE.format(of="main", other="before"))]
    for folder in _known(gone, before, after):
        found.pairs += [(row, None) for row in _rows(before, folder).values()]
    for folder in _known(came, after, before):
        found.pairs += [(None, row) for row in _rows(after, folder).values()]
    (found.unread,) = after.rows(UNREAD).fetchone()
    found.pairs = _with_moves(found.pairs)
    return found


def _known(folders: list[int], one: Scan, other: Scan) -> Iterator[int]:
    """Folders of one alone that the other would have, were they there: those above could be
    read."""
    known: dict[int, bool] = {}

    def is_known(folder: int) -> bool:
        way = []
        while folder not in known:
            way.append(folder)
            folder, _ = one.place_of(folder)
            whole = other.rows("SELECT whole FROM folder WHERE ino = ?", folder).fetchone()
            if whole is not None:
                known[folder] = bool(whole[0])
        known.update(dict.fromkeys(way, known[folder]))
        return known[folder]

    return filter(is_known, folders)


def _rows(scan: Scan, folder: int) -> dict[bytes, Row]:
    """By name."""
    sql = f"SELECT object.folder, object.name, {', '.join(FIELDS)} FROM ("
    sql += "SELECT first, count FROM folder WHERE ino = ?) JOIN object"
    sql += " ON id BETWEEN first AND first + count - 1"
    return {row[1]: row for row in scan.rows(sql, folder)}


def _merged(before: dict[bytes, Row], after: dict[bytes, Row]) -> Iterator[Pair]:
    for name in before.keys() | after.keys():
        was, now = before.get(name), after.get(name)
        if was is None or now is None or _what(was, now):
            yield was, now


def _what(was: Row, now: Row) -> list[str]:
    """The words for what differs."""
    of_folder = stat.S_ISDIR(was[MODE]) and stat.S_ISDIR(now[MODE])
    found = [
        word
        for word, fields in WHAT.items()
        if any(was[PLACE[one]] != now[PLACE[one]] for one in fields)
    ]
    if of_folder:
        return [word for word in found if word in OF_FOLDERS]
    # ctime changes with all else
    return found if found == ["attributes"] else [one for one in found if one != "attributes"]


def _with_moves(pairs: list[Pair]) -> list[Pair]:
    """What was removed here and made there is one object: its number and its birth say so."""
    removed: dict[tuple, Row] = {}
    for was, now in pairs:
        if now is None and was[PLACE["btime_ns"]]:
            removed[_identity(was)] = was
    moved = [
        (removed.pop(_identity(now)), now)
        for was, now in pairs
        if was is None and _identity(now) in removed
    ]
    ends = {one[:2] for one, _ in moved}, {one[:2] for _, one in moved}
    rest = [
        (was, now)
        for was, now in pairs
        if not (now is None and was[:2] in ends[0]) and not (was is None and now[:2] in ends[1])
    ]
    return [*rest, *moved]


def _identity(row: Row) -> tuple:
    return row[PLACE["ino"]], row[PLACE["btime_ns"]], stat.S_IFMT(row[MODE])


# -- how it is printed ---------------------------------------------------------------------------


def _show(options: argparse.Namespace, found: Changes) -> None:
    records = sorted((_record(found, *pair) for pair in found.pairs), key=lambda one: one["path"])
    counts = (f"{sum(one['change'] == kind for one in records)} {kind}" for kind in KINDS)
    notes = [f"{', '.join(counts)}."]
    top = options.top
    if top is None and options.format not in output.FORMATS:
        top = MOST_SHOWN
    if top is not None and len(records) > top:
        notes.append(f"The first {top} are shown; --top, or --format csv, has more.")
        records = records[:top]
    left_out = []
    if found.unread:
        left_out = [f"{found.unread} folders could not be read, and are not compared"]
    body = [("value", _cells(one)) for one in records]
    title = f"{found.before.root_text}, from {found.before.began} to {found.after.began}"
    table = layout.Text(title, HEADS, body, optional=((2,), (3,)))
    layout.show(options, records, [table], notes, COLUMNS, left_out)


def _record(found: Changes, was: Row | None, now: Row | None) -> dict:
    last = now or was
    if was is None or now is None:
        change, what = (MADE if was is None else REMOVED), []
    else:
        change = CHANGED if was[:2] == now[:2] else MOVED
        what = [one for one in _what(was, now) if (change, one) != (MOVED, "attributes")]
    path_before = database.text_of(found.before.path_of(*was[:2])) if was else None
    path = database.text_of(found.after.path_of(*now[:2])) if now else path_before
    sizes = [one and one[PLACE["size"]] for one in (now, was)]
    values = (change, database.kind_of(last[MODE]), path, path_before, *sizes)
    values += (owner_name(last[PLACE["uid"]]), " ".join(what))
    return dict(zip(COLUMNS, values))


def _cells(one: dict) -> list[str]:
    sizes = (one["size_before_bytes"], one["size_bytes"])
    texts = ("-" if size is None else database.bytes_text(size) for size in sizes)
    path = one["path"]
    if one["change"] == MOVED:
        path = f"{one['path_before']} -> {path}"
    return [path, one["change"], one["kind"], *texts, one["what"]]
