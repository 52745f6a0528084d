# Files of which each line tells of a moment, for years: only the lines about a time are read.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Generic, Protocol, TypeVar

from joulemark import output
from joulemark.errors import UserError

LINE_MAX = 1 << 16  # bytes that hold the end of one line and the begin of another, as a rule
SHOWN = 60  # characters of what is wrong


class Moment(Protocol):
    """What a line tells of."""

    time_ns: int


Of = TypeVar("Of", bound=Moment)


class Timed(Generic[Of]):
    """A file of lines in the order of their time_ns."""

    def __init__(self, path: Path):
        self.path = path
        self.name = output.printable(path.name).rpartition(".")[0]

    def parse(self, text: bytes) -> Of:
        """A line; ValueError or UserError: what is wrong with it."""
        raise NotImplementedError

    def about(self, start_ns: int, end_ns: int) -> tuple[list[Of], set[int]]:
        """The lines that span the time, in order; where lines begin there that are not sound."""
        bad: set[int] = set()
        return list(self._lines(start_ns, end_ns, bad)), bad

    def last_line(self) -> Of | None:
        """The newest that is sound."""
        with open(self.path, "rb") as file:
            return next((line for text in from_end(file) if (line := self._sound(text))), None)

    def unsound(self) -> tuple[int, int]:
        """Where the first whole line begins, and how many there are; 0, 0 if one is sound."""
        first, count, begins = 0, 0, 0
        with open(self.path, "rb") as file:
            for text in file:
                if text.endswith(b"\n") and text.strip():
                    if self._sound(text):
                        return 0, 0
                    first, count = first if count else begins, count + 1
                begins += len(text)
        return first, count

    def wrong(self, offset: int) -> str:
        """Which line begins there, and what is wrong with it."""
        number, begins, text = 0, 0, b""
        try:
            with open(self.path, "rb") as file:
                for text in file:
                    number += 1
                    if begins >= offset:
                        break
                    begins += len(text)
            self.parse(text)
        except (ValueError, UserError, OSError) as error:
            return f"{self.path}:{number}: {error}"
        return f"{self.path}:{number}: was not sound"  # mended meanwhile

    def _lines(self, start_ns: int, end_ns: int, bad: set[int]) -> Iterator[Of]:
        """From the last one at or before start_ns to the first one at or after end_ns."""
        held: Of | None = None
        with open(self.path, "rb") as file:
            offset = self._offset_before(file, start_ns)
            file.seek(offset)
            for text in file:
                begins, offset = offset, offset + len(text)
                line = self._sound(text) if text.endswith(b"\n") else None
                if line is None and text.endswith(b"\n") and text.strip():
                    bad.add(begins)
                if line is None or (held and line.time_ns <= held.time_ns):
                    continue
                if line.time_ns <= start_ns:
                    bad.clear()  # of the time before
                if held and line.time_ns > start_ns:
                    yield held
                held = line
                if line.time_ns >= end_ns:
                    break
        if held:
            yield held

    def _offset_before(self, file, time_ns: int) -> int:
        """Where a line begins that is not after time_ns, by halving: files grow for years."""
        low, high = 0, file.seek(0, os.SEEK_END)
        while high - low > LINE_MAX:
            middle = (low + high) // 2
            file.seek(middle)
            file.readline()
            begins = file.tell()
            line = next((found for text in file if (found := self._sound(text))), None)
            if line is None or line.time_ns > time_ns or begins >= high:
                high = middle
            else:
                low = begins
        return low

    def _sound(self, text: bytes) -> Of | None:
        """None for a line that is torn or not sound: its neighbours bridge it."""
        try:
            return self.parse(text) if text.strip() else None
        except (ValueError, UserError):
            return None


def from_end(file: BinaryIO) -> Iterator[bytes]:
    """The whole lines, the newest first; ten thousand nodes' energies are long."""
    size = file.seek(0, os.SEEK_END)
    length = seen = 0
    while length < size:
        length = max(2 * LINE_MAX, 2 * length)
        begins = file.seek(max(0, size - length))
        lines = file.read(size - begins).rpartition(b"\n")[0].split(b"\n")
        if length < size:
            del lines[0]  # its begin is before
        yield from reversed(lines[: len(lines) - seen])
        seen = len(lines)


def json_object(text: bytes) -> dict:
    """A line's, or ValueError."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        shown = text.decode("utf-8", "backslashreplace").strip()[:SHOWN]
        raise ValueError(f"{shown!r} is no JSON") from None
    if not isinstance(values, dict):
        raise ValueError(f"{repr(values)[:SHOWN]} is no JSON object")
    return values


def whole(key: str, value: object) -> int:
    """The value of a key, or ValueError says what is wrong with it."""
    if not isinstance(value, int):
        raise wrong(key, value, "whole number")
    return value


def real(key: str, value: object) -> float:
    """Likewise."""
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        raise wrong(key, value, "number") from None


def wrong(key: str, value: object, what: str) -> ValueError:
    """What is wrong with a key's value."""
    return ValueError(f"{key}: {repr(value)[:SHOWN]} is no {what}")
