# Writes a file and reads it, verified; a process of its own, for a server that is away holds it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`python -I transfer.py FILE BYTES`, of Python's own library alone, prints transfer()'s answer.
Exit: 1 with the reason on stderr. It dies with who began it."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path

TRANSFER = 1 << 20  # bytes of a call
PR_SET_PDEATHSIG = 1  # prctl(2)
NUMBER = 8  # bytes, at a transfer's begin


def transfer(path: Path, n_bytes: int) -> dict[str, float]:
    """Seconds of writing so many bytes to a file that is there, to the disk (`write_s`), and of
    reading them, dropped from this node's memory before (`read_s`); it is empty afterwards. Each
    transfer has its number in noise. OSError; ValueError: other bytes came than were written."""
    noise = os.urandom(TRANSFER - NUMBER)
    parts = [(at, min(TRANSFER, n_bytes - at)) for at in range(0, n_bytes, TRANSFER)]
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        begin = time.monotonic()
        for at, count in parts:
            _write(file, (at.to_bytes(NUMBER, "little") + noise)[:count], at)
        os.fsync(file)
        write_s = time.monotonic() - begin
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        read_s = 0.0
        for at, count in parts:
            begin = time.monotonic()
            came = os.pread(file, count, at)
            read_s += time.monotonic() - begin
            if came != (at.to_bytes(NUMBER, "little") + noise)[:count]:
                raise ValueError(f"byte {at} and {count - 1} behind it are not what was written")
        os.ftruncate(file, 0)
    finally:
        os.close(file)
    return {"write_s": write_s, "read_s": read_s}


def _write(file: int, content: bytes, at: int) -> None:
    while content:
        count = os.pwrite(file, content, at)
        content, at = content[count:], at + count


def main() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    path, n_bytes = Path(sys.argv[1]), int(sys.argv[2])
    try:
        print(json.dumps(transfer(path, n_bytes)))
    except OSError as error:
        sys.exit(error.strerror)
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
