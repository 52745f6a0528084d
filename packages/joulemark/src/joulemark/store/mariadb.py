# The store in MariaDB, where a site's slurmdbd often has one already.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import ClassVar

from joulemark.errors import module_missing
from joulemark.store.place import Place
from joulemark.store.session import LOCK_TIMEOUT_S, Session, held, read_password

try:
    import pymysql
except ImportError:
    pymysql = None

# Table or column or index is there already; table or column is gone already.
DONE_BEFORE = {1050, 1060, 1061, 1051, 1091, 1146}

# Without backslash escapes the driver need not look at every character: half of a great merge.
SQL_MODE = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_BACKSLASH_ESCAPES"


class MariadbSession(Session):
    """Merges take turns by a named lock, which the server frees when a client dies."""

    types: ClassVar = {
        "name": "VARCHAR(255)",
        "text": "MEDIUMTEXT",
        "id": "BIGINT AUTO_INCREMENT PRIMARY KEY",
        "table": "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
        "of_job_run": " ON job_run",
        "rows": "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    }
    # Its own sums of integers are decimal and slow; as doubles ours are exact up to 2**53, which
    # in halves of HALF_BITS are 2.6 TWh.
    addend = "0e0 + ({})"
    by_index = " FORCE INDEX ({})"  # it would read whole rows: of nodes, bodies and all
    driver_error = pymysql.Error if pymysql else ()
    advice = "Check that the server runs, and what the store's user may do"

    def begin(self) -> None:
        self._lock()
        self.run("START TRANSACTION")

    def go_on(self) -> None:
        self.run("START TRANSACTION")  # what one that goes on did before is kept

    def commit(self) -> None:
        self.run("COMMIT")
        self._unlock()

    def rollback(self) -> None:
        super().rollback()
        with contextlib.suppress(self.driver_error):
            self._unlock()

    def _lock(self) -> None:
        name = f"joulemark.{self.place.database}"[:64]
        if self.value("SELECT GET_LOCK(?, ?)", (name, LOCK_TIMEOUT_S)) != 1:
            raise held(self.place)

    def _unlock(self) -> None:
        self.rows("SELECT RELEASE_LOCK(?)", (f"joulemark.{self.place.database}"[:64],))

    def upsert(
        self, table: str, columns: Sequence[str], key: Sequence[str], rows: Iterable[Sequence]
    ) -> None:
        marks = ", ".join("?" * len(columns))
        self.many(f"REPLACE INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def after(self, columns: Sequence[str], values: Sequence) -> tuple[str, Sequence]:
        """MariaDB finds no range of an index in a comparison of rows, the others none in this."""
        first, value = columns[0], values[0]
        if len(columns) == 1:
            return f"{first} > ?", values
        rest, more = self.after(columns[1:], values[1:])
        return f"({first} > ? OR ({first} = ? AND {rest}))", (value, value, *more)

    def has_table(self, name: str) -> bool:
        return bool(
            self.rows(
                "SELECT 1 FROM information_schema.tables"
                " WHERE table_schema = DATABASE() AND table_name = ?",
                (name,),
            )
        )

    def is_done_before(self, error: Exception) -> bool:
        """MariaDB commits at each schema statement, so a migration can be left half done."""
        return error.args[:1] and error.args[0] in DONE_BEFORE


SESSION = MariadbSession


def writer(place: Place) -> MariadbSession:
    """A connection that may change the store."""
    if pymysql is None:
        raise module_missing(f"store {place}", "pymysql", place.kind)
    where = {"unix_socket": place.parameters.get("unix_socket")}
    tls = {key: place.parameters[key] for key in place.parameters if key != "unix_socket"}
    raw = pymysql.connect(
        host=place.host or "localhost",
        port=place.port or 3306,
        user=place.user,
        password=read_password(place) or "",
        database=place.database,
        charset="utf8mb4",
        autocommit=True,
        connect_timeout=10,
        read_timeout=600,
        sql_mode=SQL_MODE,
        init_command="SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        **{key: value for key, value in where.items() if value},
        **tls,
    )
    return MariadbSession(place, raw)


reader = writer
