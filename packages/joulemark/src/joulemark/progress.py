# How far a long piece of work is: a line on the terminal that is gone when it ends.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Callable, TypeVar

Item = TypeVar("Item")
AFTER_S = 2.0  # what ends sooner needs none
EVERY_S = 0.2


def counted(
    items: Iterable[Item], what: str, total: int | None = None, of: Callable = lambda _: 1
) -> Iterator[Item]:
    """The items; `what` are counted on stderr, where it is a terminal, an item as `of` it says."""
    if not (sys.stderr and sys.stderr.isatty()):
        yield from items
        return
    done, text, next_s = 0, "", time.monotonic() + AFTER_S
    try:
        for item in items:
            yield item
            done += of(item)
            if time.monotonic() >= next_s:
                text = f"{done} of {total} {what}" if total else f"{done} {what}"
                print(f"\r{text}", end="", file=sys.stderr, flush=True)
                next_s = time.monotonic() + EVERY_S
    finally:
        if text:
            print(f"\r{' ' * len(text)}\r", end="", file=sys.stderr, flush=True)
