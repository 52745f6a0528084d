# Mounts that are one job's each, on a compute node, and what was done through them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Of file systems whose servers know no jobs. Each counts what it sends to servers and gets from
them, from its mounting on:

GlusterFS, in its FUSE client, of volumes that are profiled (both diagnostics.count-fop-hits and
diagnostics.latency-measurement), else the file is empty: MOUNT/.meta/graphs/active/VOLUME/private,
`cumulative.data_read = 0` and operations, `demo.cumulative.LOOKUP = 28,...`; .meta/process_uuid
names the client. Found on a client of 10.3 (xlators/debug/io-stats and xlators/meta).

NFS, in the kernel: /proc/self/mountstats, `bytes:` (the fifth and sixth are of the servers) and
operations, `LOOKUP: 28 ...`; mounts of one superblock have the same figures, so that of those with
one job each `nosharecache` is asked for. fs/nfs/iostat.h and net/sunrpc/stats.c of Linux 6.1.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from joulemark import output
from joulemark.storage.source import LIFE_S
from joulemark.storage.work import Work

GLUSTER, NFS = ("fuse.glusterfs",), ("nfs", "nfs4")
NOT_COUNTED = "its volume does not count: `gluster volume profile VOLUME start`"
ANSWER_S = 5.0  # a mount hangs while its server does
# What clients ask of names and attributes; other operations are data's, locks' or sessions'.
GLUSTER_METADATA = frozenset(
    (
        *("STAT", "READLINK", "MKNOD", "MKDIR", "UNLINK", "RMDIR", "SYMLINK", "RENAME", "LINK"),
        *("TRUNCATE", "OPEN", "STATFS", "SETXATTR", "GETXATTR", "REMOVEXATTR", "OPENDIR"),
        *("ACCESS", "CREATE", "FTRUNCATE", "FSTAT", "LOOKUP", "READDIR", "FGETXATTR"),
        *("FSETXATTR", "SETATTR", "FSETATTR", "READDIRP", "FREMOVEXATTR", "ICREATE", "NAMELINK"),
    )
)
NFS_METADATA = frozenset(
    (
        *("GETATTR", "SETATTR", "LOOKUP", "LOOKUPP", "LOOKUP_ROOT", "ACCESS", "READLINK"),
        *("CREATE", "MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK", "READDIR"),
        *("READDIRPLUS", "FSSTAT", "STATFS", "FSINFO", "PATHCONF", "OPEN", "OPEN_NOATTR", "CLOSE"),
        *("GETACL", "SETACL", "GETXATTR", "SETXATTR", "LISTXATTRS", "REMOVEXATTR"),
    )
)
COUNTERS = re.compile(r"^(?:\S+\.)?cumulative\.(\w+) = (\d+)", re.M)
OPERATIONS = re.compile(r"^\s*([A-Z_]+): (\d+) ", re.M)


class Mount(NamedTuple):
    """A line of /proc/self/mountinfo."""

    point: str
    kind: str
    device: str  # MAJOR:MINOR, of its superblock


class Counted(NamedTuple):
    """A joulemark.storage.source.Entry."""

    name: str
    start: str
    work: Work

    @property
    def digest(self) -> int:
        """Another one where anything has changed."""
        return hash(self)


class _Unread(Exception):
    """A mount that could not be read, and why."""


@dataclass
class Mounts:
    """A joulemark.storage.source.Source."""

    root: Path  # / but in tests
    _asked: dict[str, threading.Thread] = field(default_factory=dict)
    whose = "what of a mount's place is the job, --mounts says"
    comes_back = False
    life_s = LIFE_S

    def targets(self) -> dict[str, Mount]:
        """By place: of one that is mounted over another the upper one, of a superblock one."""
        found: dict[str, Mount] = {}
        of_device: dict[str, list[Mount]] = {}
        for one in mounted(
            (self.root / "proc/self/mountinfo").read_text(errors="surrogateescape")
        ):
            if one.kind in (*GLUSTER, *NFS):
                of_device.setdefault(one.device, []).append(one)
        for device, mounts in of_device.items():
            # What of several places of one superblock was done in which nobody knows.
            points = {one.point for one in mounts}
            name = points.pop() if len(points) == 1 else f"{mounts[0].kind} {device}"
            found[name] = mounts[-1]
        return found

    def read(self, targets: dict[str, Mount]) -> Iterator[tuple[str, list[Counted], float]]:
        """All at once, for one that hangs may hold no other up; it is asked again when it has
        answered."""
        answers: dict[str, Counted | _Unread] = {}
        nfs = self._nfs() if any(one.kind in NFS for one in targets.values()) else {}
        for name, mount in targets.items():
            before = self._asked.get(name)
            if mount.kind in NFS:
                if mount.point in nfs:
                    answers[name] = nfs[mount.point]._replace(name=name)
            elif before is None or not before.is_alive():
                ask = threading.Thread(target=self._ask, args=(name, mount, answers), daemon=True)
                self._asked[name] = ask
                ask.start()
        deadline_s = time.monotonic() + ANSWER_S
        for name in targets:
            if name in self._asked:
                self._asked[name].join(max(0.0, deadline_s - time.monotonic()))
        for name in self._asked.keys() - targets.keys():
            del self._asked[name]
        for name in targets:
            answer = answers.get(name) or _Unread(f"no answer in {ANSWER_S:g} s")
            if isinstance(answer, _Unread):
                output.tell([f"{output.printable(name)}: {answer}: left out of this round"])
            else:
                yield name, [answer], 0.0

    def _ask(self, name: str, mount: Mount, answers: dict[str, Counted | _Unread]) -> None:
        try:
            answers[name] = gluster(name, self.root / mount.point.lstrip("/"))
        except (OSError, ValueError) as error:
            answers[name] = _Unread(getattr(error, "strerror", None) or str(error))

    def _nfs(self) -> dict[str, Counted]:
        text = (self.root / "proc/self/mountstats").read_text(errors="surrogateescape")
        return {one.name: one for one in nfs_mounts(text)}


def mounted(text: str) -> Iterator[Mount]:
    """Of /proc/self/mountinfo, in the order of mounting."""
    for line in text.splitlines():
        ahead, _, behind = line.partition(" - ")
        fields, kind = ahead.split(" "), behind.partition(" ")[0]
        if len(fields) > 4:
            yield Mount(_unescaped(fields[4]), kind, fields[2])


def _unescaped(text: str) -> str:
    """Blanks and such are written as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def gluster(name: str, place: Path) -> Counted:
    """What a mounted volume's client has counted; OSError, ValueError: it has not."""
    meta = place / ".meta"
    graph = meta / "graphs" / "active"
    start = f"{(meta / 'process_uuid').read_text().strip()} {os.readlink(graph)}"
    for layer in sorted(os.listdir(graph)):  # counters are of the one that is a volume's own
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            text = (graph / layer / "private").read_text()
            if text.startswith("cumulative.data_read = "):
                return Counted(name, start, _gluster_work(text))
    raise ValueError(NOT_COUNTED)


def _gluster_work(text: str) -> Work:
    found = [(name, int(number)) for name, number in COUNTERS.findall(text)]
    ops = sum(number for name, number in found if name in GLUSTER_METADATA)
    known = dict(found)
    return Work(known["data_read"], known["data_written"], ops)


def nfs_mounts(text: str) -> Iterator[Counted]:
    """Of /proc/self/mountstats, by place."""
    for part in re.split(r"^device ", text, flags=re.M)[1:]:
        head, _, rest = part.partition("\n")
        found = re.search(r" mounted on (.*) with fstype (nfs4?) ", f"{head} ")
        sizes = re.search(r"^\s*bytes:((?:\s+\d+){6})", rest, re.M)
        if found and sizes:
            *_, read, written = map(int, sizes[1].split())
            asked = OPERATIONS.findall(rest.partition("per-op statistics")[2])
            ops = sum(int(number) for name, number in asked if name in NFS_METADATA)
            yield Counted(_unescaped(found[1]), "", Work(read, written, ops))
