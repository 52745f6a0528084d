"""Serial lines without hardware: pairs of pseudo terminals."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import os
import select
import socket
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


class OnNet:
    """A serial line's device at a port of TCP, as a device server has it: one caller at a time."""

    def __init__(self, path: str) -> None:
        self.device = os.open(path, os.O_RDWR | os.O_NOCTTY)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.callers = 0
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self.server.accept()
                self.callers += 1
                with caller, contextlib.suppress(ConnectionError):
                    self._carry(caller)

    def _carry(self, caller: socket.socket) -> None:
        while True:
            for end in select.select([caller, self.device, self.server], [], [])[0]:
                if end is self.server:  # another caller, or the end: this one is hung up on
                    return
                if end is not caller:
                    caller.sendall(os.read(self.device, 4096))
                elif text := caller.recv(4096):
                    os.write(self.device, text)
                else:
                    return

    def __enter__(self) -> OnNet:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown(socket.SHUT_RDWR)
        self.thread.join(60)
        self.server.close()
        os.close(self.device)


class Cable(Listener):
    """Two devices, joined: what one writes the other reads."""

    def __init__(self) -> None:
        super().__init__(Line(), Line())
        self.paths = tuple(line.path for line in self.lines)

    def take(self, end: int, text: bytes) -> None:
        left, right = (line.ours for line in self.lines)
        os.write(right if end == left else left, text)
