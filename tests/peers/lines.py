"""Serial lines without hardware: pairs of pseudo terminals."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import os
import select
import threading
import tty


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


class Cable:
    """Two devices, joined: what one writes the other reads."""

    def __init__(self) -> None:
        self.lines = (Line(), Line())
        self.paths = tuple(line.path for line in self.lines)
        self.quit, self.quitter = os.pipe()
        self.thread = threading.Thread(target=self._carry, daemon=True)

    def _carry(self) -> None:
        left, right = (line.ours for line in self.lines)
        other = {left: right, right: left}
        while True:
            for end in select.select([left, right, self.quit], [], [])[0]:
                if end == self.quit:
                    return
                os.write(other[end], os.read(end, 4096))

    def __enter__(self) -> Cable:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self.quitter, b"q")
        self.thread.join(60)
        for line in self.lines:
            line.close()
        os.close(self.quit)
        os.close(self.quitter)
