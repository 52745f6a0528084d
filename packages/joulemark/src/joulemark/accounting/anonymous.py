# Jobs' rows without whose they are, for those who study how a machine is used.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A name becomes another one that is its own in this export and means nothing outside of it: the
key is thrown away. What a user wrote, nodes and hours go: Slurm has them beside names."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from hashlib import blake2b

NAMES = {"job_id_raw": "job", "uid": "user", "account": "account"}
LEFT_OUT = {
    *("user", "start_ns", "end_ns", "node_list"),
    *("notes", "missing", "faults", "regions", "split_policy"),
}


def anonymous(batches: Iterable[list[dict]]) -> Iterator[list[dict]]:
    """The rows of an export, alike names alike."""
    key = secrets.token_bytes(32)
    for batch in batches:
        yield [_row(row, key) for row in batch]


def columns(names: Iterable[str]) -> list[str]:
    """Those that are left of a row's."""
    return [name for name in names if name not in LEFT_OUT]


def _row(row: dict, key: bytes) -> dict:
    found = {name: row[name] for name in columns(row)}
    for name, kind in NAMES.items():
        if found[name] is not None:
            found[name] = _pseudonym(f"{row['cluster']}.{found[name]}", kind, key)
    return found


def _pseudonym(name: str, kind: str, key: bytes) -> str:
    made = blake2b(name.encode(), digest_size=8, key=key, person=kind.encode())
    return f"{kind}-{made.hexdigest()}"
