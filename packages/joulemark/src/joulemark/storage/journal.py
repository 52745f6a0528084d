# A server's lines of what jobs did there, each written once whatever happens.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""record_dir/io/SERVER.jsonl, or of a compute node's mounts record_dir/io/nodes/NODE.jsonl, a line
a round:

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
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from joulemark import folders
from joulemark.errors import UserError
from joulemark.timed import from_end

FOLDER, OF_NODES = "io", "io/nodes"
# The folder is SlurmUser's, and we may be root: no link of his is followed.
FILE_MODE = 0o640
FLAGS = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Held(UserError):
    """Another process writes the lines."""

    def __init__(self, path: Path, lock: int):
        super().__init__(
            f"another `joulemark io collect` writes {path}: stop it; of two servers of one name "
            "one says another with --server"
        )
        self.pid = _holder(lock)  # None: not of this node, or it has ended meanwhile


def _holder(lock: int) -> int | None:
    """By the kernel, and not by the file: its folder is SlurmUser's, and who asks may be root."""
    found = os.fstat(lock)
    with open("/proc/locks", encoding="ascii") as locks:
        rows = [line.split() for line in locks]
    for row in rows:
        # 12: FLOCK ADVISORY WRITE 4711 08:01:131073 0 EOF; `->` who waits
        if row[1] == "FLOCK" and row[5].rpartition(":")[2] == str(found.st_ino):
            with contextlib.suppress(OSError):
                for name in os.listdir(f"/proc/{row[4]}/fd"):
                    if os.path.samestat(os.stat(f"/proc/{row[4]}/fd/{name}"), found):
                        return int(row[4])
    return None


@dataclass(frozen=True)
class Journal:
    """The lines, and beside them what the next process needs: kept first, with the line that it
    ends in, so that what ends between the two writes neither loses nor doubles one."""

    record_dir: Path
    server: str
    boot: str  # another one whenever the server has been started anew
    folder: str = FOLDER

    @contextlib.contextmanager
    def locked(self, wait_s: float = 0.0) -> Iterator[None]:
        """For one process alone: two of one server would each count all. wait_s: for another's
        end, which may be an epilog's."""
        self._make_folder()
        number = os.open(self._state.with_suffix(".lock"), FLAGS | os.O_RDWR, FILE_MODE)
        try:
            folders.give_to_owner(number, self.record_dir)
            self._lock(number, wait_s)
            yield
        finally:
            os.close(number)

    def _lock(self, number: int, wait_s: float) -> None:
        deadline_s = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline_s:
                    raise Held(self.path, number) from None
            time.sleep(0.1)

    @property
    def path(self) -> Path:
        """The lines."""
        return self.record_dir / self.folder / f"{self.server}.jsonl"

    @property
    def _state(self) -> Path:
        return self.record_dir / self.folder / f"{self.server}.state"

    def _make_folder(self) -> None:
        for folder in (FOLDER, self.folder):
            folders.make(self.record_dir / folder, self.record_dir)

    def add(self, line: dict, more: dict) -> None:
        """Writes a line, and beside it what the next process needs."""
        self._make_folder()
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
