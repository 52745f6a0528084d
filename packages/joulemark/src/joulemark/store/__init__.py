# The site's store: every node's record and the job records made from them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator

from joulemark import progress
from joulemark.errors import UserError
from joulemark.store import schema
from joulemark.store.place import Place
from joulemark.store.session import Session, held, no_store_yet


@contextlib.contextmanager
def writing(place: Place, may_make: bool = True) -> Iterator[Session]:
    """A session inside one transaction, alone: all of it is stored, or nothing.

    may_make: a store where there is none, as only merges do: others' `store` may be mistyped.
    """
    if not may_make:
        with _session(place, "reader") as session:
            if not schema.version(session):
                raise no_store_yet(place)
    with _session(place, "writer") as session:
        with progress.shown("waiting for the store"):
            schema.migrate(session)
            session.begin()
        try:
            yield session
        except BaseException:
            session.rollback()
            raise
        session.commit()


@contextlib.contextmanager
def reading(place: Place) -> Iterator[Session]:
    """A session for queries, for users who may not write too."""
    with _session(place, "reader") as session:
        if schema.check(session) < len(schema.VERSIONS):
            raise UserError(
                f"{place}: no store of this version yet: `joulemark merge` makes or upgrades it"
            )
        yield session


def compact(place: Place) -> None:
    """Once much was deleted; in no transaction."""
    with _session(place, "writer") as session:
        session.compact()


@contextlib.contextmanager
def _session(place: Place, kind: str) -> Iterator[Session]:
    """Turns a driver's errors into one line that says what is safe and what to do."""
    backend = importlib.import_module(f"joulemark.store.{place.kind}")
    chosen = backend.SESSION
    try:
        with contextlib.closing(getattr(backend, kind)(place)) as session:
            yield session
    except chosen.driver_error as error:
        if chosen.is_held(error):
            raise held(place) from None
        raise UserError(
            f"{place}: the store cannot be used: {_first_line(error)}. No record is lost: they "
            f"wait in record_dir and record_dir/merged. {chosen.advice}"
        ) from None


def _first_line(error: Exception) -> str:
    said = error.args[1] if len(error.args) == 2 and isinstance(error.args[0], int) else error
    return next(iter(str(said).strip().splitlines()), type(error).__name__)
