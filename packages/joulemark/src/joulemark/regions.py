# Energy regions for Python programs: marks go into a ring of memory that the node's daemon reads.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Marks parts of a program, so that Joulemark charges their joules apart.

    from joulemark.regions import region

    with region("solve"):
        solve()

Needs nothing but Python. Outside a Slurm job, or without a daemon, it does nothing. Regions nest,
and each thread has its own nesting. A mark takes a few microseconds; packages/benchkit's C library
takes a fraction of one. `with region("solve", measure=True) as solve:` waits at its end, about
20 ms, for the instruments: then `solve.energy` holds what the step was charged meanwhile.
"""

from __future__ import annotations

import array
import contextlib
import mmap
import os
import socket
import struct
import threading
import time
from dataclasses import dataclass

__all__ = ["Energy", "region"]

# The daemon's layout: slurm-plugins/daemon/ring.h.
MAGIC = 0x4A4D5231
SLOTS, NAMES, NAME_SIZE = 16384, 4096, 96
HEAD, LOST, TAIL, NEXT_WAKE, FIRST_SLOT, SLOT_SIZE = 64, 128, 192, 200, 4096, 32
FIRST_NAME = FIRST_SLOT + SLOTS * SLOT_SIZE
RING_SIZE = FIRST_NAME + NAMES * NAME_SIZE
BEGIN, END = 1, 2
WAKE_NS = 20_000_000

ATTACH_TIMEOUT_S = 0.1
ENERGY_TIMEOUT_S = 0.5  # instruments are read before the answer
SILENCE_S = 2.0  # a daemon that is not there is not asked again at every mark

_WORD = struct.Struct("@Q")
_MARK = struct.Struct("@qIHH")
RANKS = ("SLURM_PROCID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


@dataclass(frozen=True)
class Energy:
    """What the step was charged on this node between a region's begin and its end."""

    energy_j: float
    uncertainty_j: float  # k=2
    seconds: float
    samples: int  # instrument readings inside the region
    estimated: bool  # from a model of the machine, not from an instrument


class region(contextlib.ContextDecorator):
    """A part of the program; `name` has 1 to 95 bytes of UTF-8. Also a decorator of functions."""

    def __init__(self, name: str, measure: bool = False):
        self.name = name
        self.measure = measure
        self.energy: Energy | None = None

    def _recreate_cm(self) -> region:
        return region(self.name, self.measure)

    def __enter__(self) -> region:
        _client.mark(BEGIN, self.name)
        return self

    def __exit__(self, *_) -> None:
        if _client.mark(END, self.name) and self.measure:
            self.energy = _client.last_energy()


def instruments() -> dict[str, str]:
    """What the step's energy comes from: `instruments`, as `powercap/cpu nvml/gpu`, and the names
    of the node's `channels`. Empty without a daemon."""
    from urllib.parse import unquote

    told = _client.told()
    return {key: unquote(told[key]) for key in ("instruments", "channels") if told.get(key)}


class _Client:
    """The process's ring; `lock` orders its threads' marks."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self.ring: mmap.mmap | None = None
        self.link: socket.socket | None = None
        self.event = -1
        self.names: dict[str, int] = {}
        self.fields: dict[str, str] = {}  # that came with the ring
        self.silent_until_s = 0.0

    def after_fork(self) -> None:
        """A child is another process to the daemon: it gets a ring of its own."""
        self.lock = threading.Lock()
        self._close()

    def _close(self) -> None:
        if self.link is not None:
            self.link.close()
        if self.event >= 0:
            os.close(self.event)
        self._forget()

    def mark(self, kind: int, name: str) -> bool:
        """Whether the daemon will see it. Never raises: energy must not end a program."""
        if self.ring is None and "JOULEMARK_SOCKET" not in os.environ:
            return False
        try:
            with self.lock:
                return self._attached() and self._put(kind, name)
        except OSError:
            self._close()
            return False

    def told(self) -> dict[str, str]:
        """What the daemon told of itself with the ring."""
        if "JOULEMARK_SOCKET" not in os.environ:
            return {}
        with self.lock:
            return self.fields if self._attached() else {}

    def _attached(self) -> bool:
        if self.ring is not None:
            return True
        now_s = time.monotonic()
        if now_s < self.silent_until_s:
            return False
        try:
            self._attach()
        except (OSError, ValueError):
            self._close()
            self.silent_until_s = now_s + SILENCE_S
        return self.ring is not None

    def _attach(self) -> None:
        self.link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.link.settimeout(ATTACH_TIMEOUT_S)
        self.link.connect(os.environ["JOULEMARK_SOCKET"])
        rank = next((os.environ[key] for key in RANKS if os.environ.get(key, "").isdigit()), None)
        self.link.send(b"marks" if rank is None else f"marks rank={rank}".encode())
        answer, fds = _receive_descriptors(self.link)
        if not answer.startswith(b"ok") or len(fds) != 2:
            for fd in fds:
                os.close(fd)
            raise ValueError(answer)
        memory, self.event = fds
        try:
            ring = mmap.mmap(memory, RING_SIZE)
        finally:
            os.close(memory)
        if struct.unpack_from("@4I", ring) != (MAGIC, SLOTS, NAMES, NAME_SIZE):
            raise ValueError("another version's ring")
        self.link.settimeout(0)  # from here on only an energy's answer is waited for
        self.fields = _fields(answer)[1]
        self.ring = ring

    def _put(self, kind: int, name: str) -> bool:
        ring = self.ring
        index = self.names.get(name)
        if index is None and (index := self._add_name(name)) is None:
            return False
        now_ns = time.monotonic_ns()
        (head,) = _WORD.unpack_from(ring, HEAD)
        kept = head - _WORD.unpack_from(ring, TAIL)[0] < SLOTS
        if kept:
            at = FIRST_SLOT + head % SLOTS * SLOT_SIZE
            _WORD.pack_into(ring, HEAD, head + 1)
            _MARK.pack_into(ring, at + 8, now_ns, threading.get_native_id(), kind, index)
            _WORD.pack_into(ring, at, head + 1)  # the ticket, last: now the slot is whole
        else:
            _WORD.pack_into(ring, LOST, _WORD.unpack_from(ring, LOST)[0] + 1)
        if now_ns >= _WORD.unpack_from(ring, NEXT_WAKE)[0]:
            self._wake(now_ns)
        return kept

    def _add_name(self, name: str) -> int | None:
        text = name.encode(errors="replace")
        index = len(self.names)
        if not 0 < len(text) < NAME_SIZE or b"\0" in text or index == NAMES:
            return None
        at = FIRST_NAME + index * NAME_SIZE
        self.ring[at : at + len(text) + 1] = text + b"\0"
        self.names[name] = index
        return index

    def _wake(self, now_ns: int) -> None:
        """The daemon reads instruments near marks; one that restarted hung up on us."""
        _WORD.pack_into(self.ring, NEXT_WAKE, now_ns + WAKE_NS)
        os.write(self.event, _WORD.pack(1))
        try:
            gone = self.link.recv(1, socket.MSG_PEEK) == b""
        except (BlockingIOError, InterruptedError):
            gone = False
        if gone:
            self._close()

    def last_energy(self) -> Energy | None:
        """Of the region that this thread ended last; waits until its marks are taken in."""
        with self.lock:
            if self.link is None:
                return None
            try:
                self.link.settimeout(ENERGY_TIMEOUT_S)
                self.link.send(f"region_last thread={threading.get_native_id()}".encode())
                verb, fields = _fields(self.link.recv(4096))
                self.link.settimeout(0)
            except (OSError, ValueError):
                self._close()  # a late answer must not be taken for the next one's
                return None
        return _energy_of(fields) if verb == "ok" else None


def _fields(answer: bytes) -> tuple[str, dict[str, str]]:
    verb, *fields = answer.decode().split()
    return verb, dict(field.partition("=")[::2] for field in fields)


def _receive_descriptors(link: socket.socket) -> tuple[bytes, list[int]]:
    room = socket.CMSG_SPACE(2 * array.array("i").itemsize)
    answer, ancillary, _, _ = link.recvmsg(4096, room, socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return answer, list(fds)


def _energy_of(fields: dict[str, str]) -> Energy | None:
    try:
        return Energy(
            energy_j=int(fields["energy_uj"]) / 1e6,
            uncertainty_j=float(fields["uncertainty_uj"]) / 1e6,
            seconds=float(fields["seconds"]),
            samples=int(fields["samples"]),
            estimated=fields["estimated"] == "1",
        )
    except (KeyError, ValueError):
        return None


_client = _Client()
os.register_at_fork(after_in_child=_client.after_fork)
