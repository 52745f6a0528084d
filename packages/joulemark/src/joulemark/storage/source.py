# What `joulemark io collect` reads: places that count what jobs do.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from joulemark.storage.work import Work

LIFE_S = 600.0  # Lustre's own default of job_cleanup_interval


class Entry(Protocol):
    """What one job, by the name that the place has for it, did at a target since `start`."""

    name: str

    @property
    def key(self) -> str:
        """Its own among the target's, whatever it is named."""

    @property
    def start(self) -> str:
        """When, or by whom, its counters began; "": it does not say."""

    @property
    def work(self) -> Work:
        """Its counters."""

    @property
    def digest(self) -> int:
        """Another one where anything has changed."""


class Source(Protocol):
    """Places of one kind."""

    whose: str  # how they know jobs, where all that works there is nobody's; "": it is no wonder
    comes_back: bool  # whether a target that is gone may be at another server meanwhile
    life_s: float  # what comes and goes within it may leave no trace, if targets say no less

    def targets(self) -> dict[str, Any]:
        """Those that are here now, by name."""

    def name(self, target: str) -> str:
        """That a target has for whose it is; "": its entries have."""

    def read(self, targets: dict[str, Any]) -> Iterator[tuple[str, Iterable[Entry], float]]:
        """Each target's entries, and how many seconds one lives without work (0: as long as its
        target); one that cannot be read is said, and left out."""
