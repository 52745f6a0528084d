# The store in one SQLite file: for one machine, and the one that needs nothing else.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import ClassVar

from joulemark.errors import UserError
from joulemark.store.place import Place
from joulemark.store.session import LOCK_TIMEOUT_S, Session


class SqliteSession(Session):
    """SQLite: a writer keeps a write-ahead log, so that readers never wait."""

    types: ClassVar = {
        "name": "TEXT",
        "text": "TEXT",
        "id": "INTEGER PRIMARY KEY",
        "table": "WITHOUT ROWID",
        "rows": "",
    }
    driver_error = sqlite3.Error
    advice = "If the file is damaged, move it away and run `joulemark merge --rebuild`"

    def words(self, sql: str) -> str:
        return sql

    def begin(self) -> None:
        self.run("BEGIN IMMEDIATE")

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


SESSION = SqliteSession


def writer(place: Place) -> SqliteSession:
    """A connection that may change the store, which it makes where there is none."""
    place.path.parent.mkdir(parents=True, exist_ok=True)
    return SqliteSession(place, _connect(str(place.path)))


def reader(place: Place) -> SqliteSession:
    """WAL's side files cannot be made by a reader; with no writer about, none is needed."""
    if not place.path.exists():
        raise UserError(f"{place}: no store yet: it is made by the first `joulemark merge`")
    uri = place.path.absolute().as_uri()
    connection = _connect(f"{uri}?mode=ro", uri=True)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.OperationalError:
        connection.close()
        if _has_wal(place.path) or not os.access(place.path, os.R_OK):
            raise
        connection = _connect(f"{uri}?mode=ro&immutable=1", uri=True)
    return SqliteSession(place, connection)


def _connect(target: str, **options) -> sqlite3.Connection:
    return sqlite3.connect(target, timeout=LOCK_TIMEOUT_S, isolation_level=None, **options)


def _has_wal(path: Path) -> bool:
    wal = f"{path}-wal"
    return os.path.exists(wal) and os.path.getsize(wal) > 0
