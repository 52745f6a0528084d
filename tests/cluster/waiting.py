"""Polling: a test waits for what it needs, and sleeps only where time itself is tested."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tests.cluster.errors import Waited

T = TypeVar("T")

POLL_S = 0.02
PATIENCE_S = 60.0  # what works takes seconds, and a loaded machine its time


def wait_for(
    predicate: Callable[[], T],
    timeout_s: float = PATIENCE_S,
    what: str | Callable[[], str] = "",
    poll_s: float = POLL_S,
) -> T:
    """Returns the predicate's first true value; raises Waited after timeout_s."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > deadline:
            text = what() if callable(what) else what  # as it is now, not when the wait began
            raise Waited(
                f"waited {timeout_s:g} s in vain for {text or predicate!r}; last: {value!r}"
            )
        time.sleep(poll_s)


def pause(seconds: float) -> None:
    """For tests of what time itself brings: a gap, an age, a sum over it."""
    time.sleep(seconds)


@contextlib.contextmanager
def meanwhile(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """work(done) runs beside the block, until that is done; what it raises fails the block."""
    done = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(work, done)
        try:
            yield
        finally:
            done.set()
        running.result()
