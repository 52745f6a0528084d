# The store in one SQLite file: for one machine, and the one that needs nothing else.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from joulemark.errors import UsageError, UserError
from joulemark.stamp import Stamp, stamp
from joulemark.store.place import Place
from joulemark.store.session import LOCK_TIMEOUT_S, Session, no_store_yet

MERGE_BEGINS_S = 1.0  # in which its side files come to be, and who may only read can use them


class SqliteSession(Session):
    """SQLite: a writer keeps a write-ahead log, so that readers never wait."""

    types: ClassVar = {
        "name": "TEXT",
        "text": "TEXT",
        "id": "INTEGER PRIMARY KEY",
        "table": "WITHOUT ROWID",
        "of_job_run": "",
        "rows": "",
    }
    unindexed = "+{}"  # it would take one that has nothing to sum
    by_index = " INDEXED BY {}"  # its planner knows nothing of days or energies
    driver_error = sqlite3.Error
    advice = (
        "If the file is damaged, keep it, bring a backup back and run `joulemark merge "
        "--rebuild`: who paid, corrections, what was pruned and accounts that are held are in the "
        "store alone"
    )

    def words(self, sql: str) -> str:
        return sql

    def begin(self) -> None:
        self.run("BEGIN IMMEDIATE")

    @staticmethod
    def is_held(error: Exception) -> bool:
        return "locked" in str(error)  # its codes are Python 3.11's

    def has_table(self, name: str) -> bool:
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)))

    def prepare(self) -> None:
        """SQLite waits for no lock in this one statement, so a first merge beside another must."""
        self.rows("PRAGMA page_size=16384")
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                self.rows("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def compact(self) -> None:
        self.run("VACUUM")


SESSION = SqliteSession


def writer(place: Place) -> SqliteSession:
    """A connection that may change the store, which it makes where there is none."""
    if not _is_there(place.path.parent):
        raise UsageError(
            f"{place}: no such folder: make {place.path.parent} for who merges, or correct `store`"
        )
    is_made = os.path.exists(place.path)
    needed = [place.path.parent, *([place.path] if is_made else [])]  # its side files
    if not all(os.access(one, os.W_OK) for one in needed):
        raise UserError(f"{place}: you may not write the store: its owner may")
    return SqliteSession(place, _connect(str(place.path)))


def _is_there(folder: Path) -> bool:
    """Also where who asks may not see it."""
    try:
        return stat.S_ISDIR(os.stat(folder).st_mode)
    except PermissionError:
        return True
    except OSError:
        return False


class SqliteReader(SqliteSession):
    """WAL's side files cannot be made by who may only read; with no writer about, none is needed.

    But then no lock keeps a merge from changing pages between two looks at them: what was read
    meanwhile is read again.
    """

    def __init__(self, place: Place):
        self._unlocked: Stamp | None = None  # the file as it was when it was opened without locks
        super().__init__(place, self._open(place.path))

    def rows(self, sql: str, values: Sequence = ()) -> list[tuple]:
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                found = super().rows(sql, values)
            except sqlite3.DatabaseError:
                if self._is_settled() or time.monotonic() > deadline:
                    raise
            else:
                if self._is_settled():
                    return found
                if time.monotonic() > deadline:
                    raise sqlite3.OperationalError("merges change it all the time: try again")
            self.close()
            self.raw = self._open(self.place.path)

    def _is_settled(self) -> bool:
        return self._unlocked is None or self._unlocked == stamp(os.stat(self.place.path))

    def _open(self, path: Path) -> sqlite3.Connection:
        deadline = time.monotonic() + MERGE_BEGINS_S
        uri = path.absolute().as_uri()
        while True:
            before = stamp(os.stat(path))
            connection = _connect(f"{uri}?mode=ro", uri=True)
            try:
                connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
            except sqlite3.OperationalError:
                connection.close()
                if not os.access(path, os.R_OK) or time.monotonic() > deadline:
                    raise
            else:
                self._unlocked = None
                return connection
            if not _has_wal(path):
                self._unlocked = before
                return _connect(f"{uri}?mode=ro&immutable=1", uri=True)
            time.sleep(0.01)  # a merge has just begun


def reader(place: Place) -> SqliteReader:
    """A connection for queries."""
    try:
        place.path.stat()
    except FileNotFoundError:
        raise no_store_yet(place) from None
    except OSError:  # a folder above is closed to us
        pass
    if not os.access(place.path, os.R_OK):
        raise UserError(f"{place}: you may not read the store")
    return SqliteReader(place)


def _connect(target: str, **options) -> sqlite3.Connection:
    return sqlite3.connect(target, timeout=LOCK_TIMEOUT_S, isolation_level=None, **options)


def _has_wal(path: Path) -> bool:
    try:
        return os.stat(f"{path}-wal").st_size > 0
    except FileNotFoundError:  # or gone just now
        return False
