# What a job, or all of them, did at a storage server.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

# Of a job's row in the store; Work's fields in their order.
COLUMNS = ("BytesRead", "BytesWritten", "MetadataOps")


class Work(NamedTuple):
    """Since some moment, as the server counted it: what a client's cache served is not in it."""

    read_bytes: int = 0
    written_bytes: int = 0
    metadata_ops: int = 0

    def plus(self, other: Work) -> Work:
        """Both."""
        return Work(*(a + b for a, b in zip(self, other)))

    def since(self, before: Work) -> Work:
        """What came after `before`; all of it where a counter is less: they began anew."""
        if any(now < then for now, then in zip(self, before)):
            return self
        return Work(*(now - then for now, then in zip(self, before)))


def total(works: Iterable[Work]) -> Work:
    """Of all of them."""
    return functools.reduce(Work.plus, works, Work())


def add(works: dict[str, Work], name: str, more: Work) -> None:
    """To what is known of that name."""
    works[name] = works.get(name, Work()).plus(more)
