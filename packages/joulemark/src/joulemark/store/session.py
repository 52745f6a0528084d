# What every database has in common here: plain SQL with `?`, one transaction at a time, upserts.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Three drivers of Python's DB-API behind one class; no ORM, because importing SQLAlchemy takes
twice as long as a whole merge of a job, and all the SQL we need is common to the three."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from joulemark import secret
from joulemark.errors import UserError
from joulemark.store.place import Place

LOCK_TIMEOUT_S = 30


class Session:
    """A connection. Subclasses know their driver, their types and their locks."""

    mark = "%s"  # what the driver writes for `?`
    types: ClassVar[dict[str, str]] = {}  # fills {name}, {text}, ... in schema.py's statements
    addend = "{}"  # how a sum of whole numbers takes one
    unindexed = "{}"  # a column whose own index is not to be taken
    by_index = ""  # after a table: of its indexes this one is to be taken
    driver_error: type[Exception] | tuple[()]  # (): there is no driver

    def __init__(self, place: Place, raw: Any):
        self.place = place
        self.raw = raw

    def words(self, sql: str) -> str:
        """The statement as the driver wants it: `?` as its own mark, its % signs doubled."""
        return sql.replace("%", "%%").replace("?", self.mark)

    def rows(self, sql: str, values: Sequence = ()) -> list[tuple]:
        """A query's whole answer."""
        with contextlib.closing(self.raw.cursor()) as cursor:
            cursor.execute(self.words(sql), tuple(values))
            return list(cursor.fetchall())

    def value(self, sql: str, values: Sequence = ()) -> Any:
        """The first value of the first row, or None."""
        found = self.rows(sql, values)
        return found[0][0] if found else None

    def run(self, sql: str, values: Sequence = ()) -> None:
        """A statement without an answer."""
        with contextlib.closing(self.raw.cursor()) as cursor:
            cursor.execute(self.words(sql), tuple(values))

    def many(self, sql: str, rows: Iterable[Sequence]) -> None:
        """One statement for each row, in as few round trips as the driver can."""
        rows = list(rows)
        if rows:
            with contextlib.closing(self.raw.cursor()) as cursor:
                cursor.executemany(self.words(sql), rows)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence]) -> None:
        """Adds rows."""
        marks = ", ".join("?" * len(columns))
        self.many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def upsert(
        self, table: str, columns: Sequence[str], key: Sequence[str], rows: Iterable[Sequence]
    ) -> None:
        """Adds rows, or replaces those that have the same key."""
        marks = ", ".join("?" * len(columns))
        self.many(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) "
            + self.on_conflict(columns, key),
            rows,
        )

    @staticmethod
    def on_conflict(columns: Sequence[str], key: Sequence[str]) -> str:
        """An INSERT's end that makes it replace rows of the same key."""
        update = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
        return f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {update}"

    def after(self, columns: Sequence[str], values: Sequence) -> tuple[str, Sequence]:
        """What is after these values in the order of the columns' index, and what fills it."""
        marks = ", ".join("?" * len(columns))
        return f"({', '.join(columns)}) > ({marks})", values

    def begin(self) -> None:
        """Opens a transaction that no other merge runs beside."""
        raise NotImplementedError

    def go_on(self) -> None:
        """Goes on with a transaction, which some databases end at a schema statement."""

    def commit(self) -> None:
        """Keeps all that was done since begin()."""
        self.run("COMMIT")

    def rollback(self) -> None:
        """Forgets all that was done since begin(); its own error would hide why."""
        with contextlib.suppress(self.driver_error):
            self.run("ROLLBACK")

    def has_table(self, name: str) -> bool:
        """Whether the table is there."""
        raise NotImplementedError

    @staticmethod
    def is_held(error: Exception) -> bool:
        """Whether another writer was there all of LOCK_TIMEOUT_S."""
        return False

    def is_done_before(self, error: Exception) -> bool:
        """Whether a schema statement failed only because an interrupted run did it already."""
        return False

    def prepare(self) -> None:
        """What a new store needs before its first table."""

    def compact(self) -> None:
        """Gives the room of what was deleted back, where a database does not use it again."""

    def close(self) -> None:
        """Ends the connection."""
        self.raw.close()


def held(place: Place) -> UserError:
    """Nothing is wrong with the store."""
    return UserError(f"{place}: another merge holds the store: try again")


def no_store_yet(place: Place) -> UserError:
    """Nothing was ever merged into it."""
    return UserError(
        f"{place}: no store yet: it is made by the first `joulemark merge`; or correct `store`"
    )


def read_password(place: Place) -> str | None:
    """Of the file that store_password_file names, if any."""
    return secret.read(place.password_file) if place.password_file else None
