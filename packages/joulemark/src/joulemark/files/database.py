# A scan's database, as packages/fs-scan/README.md describes it: opened, and paths found in it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone

from joulemark import units
from joulemark.errors import UsageError, UserError

APPLICATION, VERSION = 0x4A4D4653, 2
BLOCK_BYTES = 512
ABOVE_ROOT = 0  # the folder in which the root lies
KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}
TYPE_OF_MODE = "mode & 0xf000"  # in SQL, which knows no S_IFMT
#: a file may say that it has 2^63 - 1 bytes: SQLite's sum() of two such is an error
SIZES_SUMMED = "sum(size >> 32), sum(size & 0xffffffff)"


@dataclass
class Scan:
    """One database, while it is open."""

    path: str
    session: sqlite3.Connection
    told: dict  # its row of the table `scan`
    places: dict[int, tuple[int, bytes]] = field(default_factory=dict)

    @property
    def root(self) -> bytes:
        return self.told["root"]

    @property
    def root_text(self) -> str:
        return text_of(self.root)

    @property
    def began(self) -> str:
        """ISO 8601."""
        return iso(self.told["began_ns"])

    @property
    def unread(self) -> int:
        """Folders, and entries of folders, that could not be read."""
        return self.told["denied"] + self.told["failed"] + self.told["moved"]

    def rows(self, sql: str, *values: object) -> sqlite3.Cursor:
        try:
            return self.session.execute(sql, values)
        except sqlite3.Error as error:
            raise UserError(f"{self.path}: {error}: scan once more") from None

    def path_of(self, folder: int, name: bytes) -> bytes:
        """Of an object in a folder."""
        parts = [name]
        while folder != ABOVE_ROOT:
            folder, name = self.place_of(folder)
            parts.append(name)
        return os.path.join(self.root, *parts[-2::-1]) if len(parts) > 1 else self.root

    def place_of(self, folder: int) -> tuple[int, bytes]:
        """The folder that a folder is in, and its name there."""
        if folder not in self.places:
            found = self.rows("SELECT parent, name FROM folder WHERE ino = ?", folder).fetchone()
            if found is None:
                raise UserError(f"{self.path}: has no folder {folder}: scan once more")
            self.places[folder] = found
        return self.places[folder]


@contextlib.contextmanager
def opened(path: str, writable: bool = False) -> Iterator[Scan]:
    """A database of `joulemark fs scan`, and no other file."""
    if not os.path.isfile(path):
        raise UsageError(f"{path}: no such file: make it by `joulemark fs scan FOLDER {path}`")
    try:
        uri = uri_of(path, "rw" if writable else "ro")
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as session:
            _check(path, session)
            cursor = session.execute("SELECT * FROM scan")
            told = dict(zip((column[0] for column in cursor.description), cursor.fetchone()))
            yield Scan(path, session, told)
    except sqlite3.Error as error:
        raise UserError(f"{path}: {error}") from None


def uri_of(path: str, mode: str = "ro") -> str:
    from urllib.parse import quote

    return f"file:{quote(os.fsencode(os.path.abspath(path)))}?mode={mode}"


def _check(path: str, session: sqlite3.Connection) -> None:
    try:
        found = [
            session.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        ]
    except sqlite3.DatabaseError as error:
        raise UsageError(f"{path}: {error}: name a database of `joulemark fs scan`") from None
    if found[0] != APPLICATION:
        raise UsageError(f"{path}: is no database of `joulemark fs scan`")
    if found[1] != VERSION:
        raise UsageError(f"{path}: is of fs-scan's version {found[1]}, not {VERSION}: scan again")


# -- how its values are printed ------------------------------------------------------------------


def text_of(path: bytes) -> str:
    """A path's bytes that are no UTF-8 as \\xff."""
    return path.decode(errors="backslashreplace")


def kind_of(mode: int) -> str:
    return KINDS.get(stat.S_IFMT(mode), "other")


def iso(time_ns: int) -> str:
    try:
        moment = datetime.fromtimestamp(time_ns // units.NS_PER_S, timezone.utc)
    except (OverflowError, ValueError):  # what a file says of itself can be anything
        return f"@{time_ns / units.NS_PER_S:.0f}"
    return moment.isoformat()


def summed(high: int | None, low: int | None) -> int:
    """Of SIZES_SUMMED."""
    return ((high or 0) << 32) + (low or 0)


def bytes_text(value: int) -> str:
    return units.rough(value, 0.0, "B") if value else "0 B"


@functools.cache  # as folders.owner_name
def group_name(gid: int) -> str:
    import grp

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
