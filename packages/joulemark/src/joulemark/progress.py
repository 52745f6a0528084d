# How far a long piece of work is: a line on the terminal that is gone when it ends.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Callable, TypeVar

Item = TypeVar("Item")
AFTER_S = 2.0  # what ends sooner needs none
EVERY_S = 0.2
_is_busy = False  # what is a part of longer work has no line of its own


def counted(
    items: Iterable[Item], what: str, total: int | None = None, of: Callable = lambda _: 1
) -> Iterator[Item]:
    """The items; `what` are counted on stderr, where it is a terminal, an item as `of` it says."""
    done, of_all = 0, f" of {total}" if total else ""
    with _line(lambda: f"{done}{of_all} {what}"):
        for item in items:
            yield item
            done += of(item)


def shown(what: str) -> contextlib.AbstractContextManager:
    """Likewise of work that has no parts to count, such as a database's: for how long."""
    begin_s = time.monotonic()
    return _line(lambda: f"{what}, {time.monotonic() - begin_s:.0f} s")


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """What is done meanwhile has no line: the terminal shows something else."""
    global _is_busy
    before, _is_busy = _is_busy, True
    try:
        yield
    finally:
        _is_busy = before


@contextlib.contextmanager
def _line(text: Callable[[], str]) -> Iterator[None]:
    global _is_busy
    if _is_busy or not (sys.stderr and sys.stderr.isatty()):
        yield
        return
    import threading  # which a merge at a job's end need not load

    ended = threading.Event()
    shower = threading.Thread(target=_show, args=(text, ended), daemon=True)
    _is_busy = True
    shower.start()
    try:
        yield
    finally:
        ended.set()
        shower.join()
        _is_busy = False


def _show(text: Callable[[], str], ended) -> None:
    """Leaves the cursor where the line begins, for what is said meanwhile to take its place."""
    last = ""
    while not ended.wait(EVERY_S if last else AFTER_S):
        last = text()
        print(f"{last}\r", end="", file=sys.stderr, flush=True)
    if last:
        print(f"{' ' * len(last)}\r", end="", file=sys.stderr, flush=True)
