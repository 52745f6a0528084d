# A server's lines of what jobs did there, each written once whatever happens.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""record_dir/io/SERVER.jsonl, a line a round:

    {"time_ns": 1795338237000000000, "from_ns": 1795338207000000000, "total": [8388608, 0, 12],
     "unread": 0, "jobs": {"4713.0": [8388608, 0, 7], "": [0, 0, 5]}}

bytes read, bytes written, metadata operations from from_ns to time_ns, of all and of each job's
step; "" is whoever else works there. unread counts entries that may have done more unseen.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from joulemark import folders
from joulemark.errors import UserError
from joulemark.timed import from_end

FOLDER = "io"
# The folder is SlurmUser's, and we may be root: no link of his is followed.
FILE_MODE = 0o640
FLAGS = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Held(UserError):
    """Another process writes the lines."""

    def __init__(self, path: Path, holder: str):
        super().__init__(
            f"another `joulemark io collect` writes {path}: stop it; of two servers of one name "
            "one says another with --server"
        )
        node, _, number = holder.partition(" ")
        self.pid = int(number) if node == os.uname().nodename else None  # None: not of this node


@dataclass(frozen=True)
class Journal:
    """The lines, and beside them what the next process needs: kept first, with the line that it
    ends in, so that what ends between the two writes neither loses nor doubles one."""

    record_dir: Path
    server: str
    boot: str  # another one whenever the server has been started anew

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """For one process alone: two of one server would each count all."""
        folders.make(self.path.parent, self.record_dir)
        number = os.open(self._state.with_suffix(".lock"), FLAGS | os.O_RDWR, FILE_MODE)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(number, 0)
            os.write(number, f"{os.uname().nodename} {os.getpid()}".encode())
            yield
        except BlockingIOError:
            raise Held(self.path, os.pread(number, 999, 0).decode()) from None
        finally:
            os.close(number)

    @property
    def path(self) -> Path:
        """The lines."""
        return self.record_dir / FOLDER / f"{self.server}.jsonl"

    @property
    def _state(self) -> Path:
        return self.record_dir / FOLDER / f"{self.server}.state"

    def add(self, line: dict, more: dict) -> None:
        """Writes a line, and beside it what the next process needs."""
        folders.make(self.path.parent, self.record_dir)
        kept = {"boot": self.boot, "line": json.dumps(line), "time_ns": line["time_ns"], **more}
        draft = self._state.with_suffix(".draft")
        draft.unlink(missing_ok=True)
        folders.replace(self._state, draft, json.dumps(kept).encode(), self.record_dir, FILE_MODE)
        self._append(kept["line"])

    def last(self) -> dict | None:
        """What a process before us kept, whose last line is there then; None: there was none."""
        kept = self.kept()
        if kept and self._last_line() != kept["line"].encode():
            self._append(kept["line"])
        return kept

    def kept(self) -> dict | None:
        """Likewise, of one that may be at work."""
        try:
            kept = json.loads(self._state.read_text(encoding="utf-8"))
            kept["line"].encode()
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(
                f"{self._state}: is not what `joulemark io collect` wrote: remove it; what jobs "
                "did since the last line is lost"
            ) from None
        return kept

    def _append(self, text: str) -> None:
        """One write; of a disk that was full, a torn line stays a line of its own."""
        number = os.open(self.path, FLAGS | os.O_RDWR | os.O_APPEND, FILE_MODE)
        with open(number, "r+b", buffering=0) as file:
            folders.give_to_owner(number, self.record_dir)
            whole = self._is_whole(file)
            line = (b"" if whole else b"\n") + text.encode() + b"\n"
            size = os.fstat(number).st_size
            try:
                if os.write(number, line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(number)
            except OSError:
                os.ftruncate(number, size)
                raise

    @staticmethod
    def _is_whole(file) -> bool:
        size = file.seek(0, os.SEEK_END)
        return size == 0 or os.pread(file.fileno(), 1, size - 1) == b"\n"

    def _last_line(self) -> bytes:
        """The last whole one."""
        try:
            with open(self.path, "rb") as file:
                return next(from_end(file), b"")
        except FileNotFoundError:
            return b""
