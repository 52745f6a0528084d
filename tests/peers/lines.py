"""Serial lines without hardware: pairs of pseudo terminals."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import os
import select
import threading
import tty
from typing import TypeVar

Self = TypeVar("Self", bound="Listener")


class Line:
    """A device to give away, `path`, and the descriptor of its other end, `ours`."""

    def __init__(self) -> None:
        self.ours, self.theirs = os.openpty()
        tty.setraw(self.theirs)
        self.path = os.ttyname(self.theirs)

    def close(self) -> None:
        for end in (self.ours, self.theirs):
            with contextlib.suppress(OSError):
                os.close(end)


class Listener:
    """A thread that hands each piece that comes in to `take`; a context manager runs it."""

    def __init__(self, *lines: Line) -> None:
        self.lines = lines
        self.quit, self.quitter = os.pipe()
        self.thread = threading.Thread(target=self._listen, daemon=True)

    def take(self, end: int, text: bytes) -> None:
        raise NotImplementedError

    def _listen(self) -> None:
        ends = [line.ours for line in self.lines]
        while True:
            for end in select.select([*ends, self.quit], [], [])[0]:
                if end == self.quit:
                    return
                self.take(end, os.read(end, 4096))

    def __enter__(self: Self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self.quitter, b"q")
        self.thread.join(60)
        for line in self.lines:
            line.close()
        os.close(self.quit)
        os.close(self.quitter)


class Cable(Listener):
    """Two devices, joined: what one writes the other reads."""

    def __init__(self) -> None:
        super().__init__(Line(), Line())
        self.paths = tuple(line.path for line in self.lines)

    def take(self, end: int, text: bytes) -> None:
        left, right = (line.ours for line in self.lines)
        os.write(right if end == left else left, text)
