"""What /proc tells of a process; of one that is gone, nothing."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read(pid: int | None, name: str) -> bytes:
    """A file of /proc/PID."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


def _stat(pid: int | None) -> list[str]:
    """Behind the command's name: the state, the parent, ..."""
    return read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()


def state(pid: int | None) -> str:
    """D: waits in the kernel; T: is stopped; Z: only waits to be reaped; ..."""
    return (_stat(pid) or [""])[0]


def start_ticks(pid: int | None) -> int | None:
    """When the process started, in clock ticks since boot: names it for good. None: dead."""
    fields = _stat(pid)
    return int(fields[19]) if fields and fields[0] not in "ZX" else None


def parent(pid: int) -> int | None:
    """0 of the first process; None: dead."""
    fields = _stat(pid)
    return int(fields[1]) if fields and fields[0] not in "ZX" else None


def ancestors(pid: int) -> list[int]:
    above = parent(pid)
    return [above, *ancestors(above)] if above else []


def children(pid: int | None) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):  # it, or a thread of it, ends meanwhile
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, read(pid, f"task/{thread}/children").split())
    return found


def descendants(pid: int | None) -> list[int]:
    below = children(pid)
    return below + [further for child in below for further in descendants(child)]


def name(pid: int) -> str:
    return read(pid, "comm").decode(errors="replace").strip()


def command(pid: int) -> list[str]:
    """Its words."""
    return read(pid, "cmdline").decode(errors="replace").rstrip("\0").split("\0")


def environment(pid: int) -> list[bytes]:
    return read(pid, "environ").split(b"\0")


def open_files(pid: int) -> list[str]:
    found: list[str] = []
    with contextlib.suppress(OSError):
        for link in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):  # closed meanwhile
                found.append(os.readlink(f"/proc/{pid}/fd/{link}"))
    return found


def send(pid: int, number: int = signal.SIGKILL) -> bool:
    """Was it there to be sent a signal?"""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False
