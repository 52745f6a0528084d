# Mounts that are one job's each, on a compute node, and what was done through them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Of file systems whose servers know no jobs. Each counts from its mounting on:

GlusterFS, in its FUSE client, above its caches, of volumes that are profiled (both
diagnostics.count-fop-hits and diagnostics.latency-measurement), else the file is empty:
MOUNT/.meta/graphs/active/VOLUME/private, `cumulative.data_read = 0` and operations,
`demo.cumulative.LOOKUP = 28,...`; .meta/process_uuid names the client. Found on a client of 10.3
(xlators/debug/io-stats and xlators/meta).

NFS, in the kernel: /proc/self/mountstats, `bytes:` (the fifth and sixth are of the servers) and
operations, `LOOKUP: 28 ...`; mounts of one superblock have the same figures, so that of those with
one job each `nosharecache` is asked for; `age:` s ago it was mounted. fs/nfs/iostat.h and
net/sunrpc/stats.c of Linux 6.1.
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
from joulemark.storage.work import Work

GLUSTER, NFS = ("fuse.glusterfs",), ("nfs", "nfs4")
SHARD = "64MB"  # of volumes that do not say (xlators/features/shard)
NOT_COUNTED = "its volume does not count: `gluster volume profile VOLUME start`"
LEAST_LIFE_S = 60.0
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
    """A joulemark.storage.source.Entry, the only one of its target."""

    name: str
    start: str
    work: Work
    key = "mount"

    @property
    def digest(self) -> int:
        """Another one where anything has changed."""
        return hash((self.start, self.work))


@dataclass
class Mounts:
    """A joulemark.storage.source.Source; a target is a superblock, `nfs4 0:50`."""

    root: Path  # / but in tests
    period_s: float  # of rounds
    whose = ""
    comes_back = False
    _names: dict[str, str] = field(default_factory=dict)
    _asked: dict[str, threading.Thread] = field(default_factory=dict)
    _said: dict[str, str] = field(default_factory=dict)  # what is wrong, until that changes

    @property
    def life_s(self) -> float:
        """A mount can be as short as a job."""
        return max(2 * self.period_s, LEAST_LIFE_S)

    def targets(self) -> dict[str, Mount]:
        """A FUSE client's first place is where it was mounted. Of an NFS superblock with several
        places nobody knows in which of them what was done."""
        places: dict[str, list[Mount]] = {}
        text = (self.root / "proc/self/mountinfo").read_text(errors="surrogateescape")
        found = list(mounted(text))
        upper = {one.point: one for one in found}
        for one in found:
            if one.kind in (*GLUSTER, *NFS) and upper[one.point] == one:
                places.setdefault(f"{one.kind} {one.device}", []).append(one)
        self._names = {
            target: mounts[0].point
            for target, mounts in places.items()
            if mounts[0].kind in GLUSTER or len({one.point for one in mounts}) == 1
        }
        return {target: mounts[0] for target, mounts in places.items()}

    def name(self, target: str) -> str:
        """Its place, where it has one."""
        return self._names.get(target, target)

    def read(self, targets: dict[str, Mount]) -> Iterator[tuple[str, list[Counted], float]]:
        """All at once, for one that hangs may hold no other up; it is asked again when it has
        answered."""
        answers: dict[str, Counted | _Unread] = {}
        self._read_nfs(targets, answers)
        waited_for = []
        for target, mount in targets.items():
            before = self._asked.get(target)
            if mount.kind in GLUSTER and (before is None or not before.is_alive()):
                words = (target, mount, answers)
                ask = threading.Thread(target=self._ask, args=words, daemon=True)
                self._asked[target] = ask
                ask.start()
                waited_for.append(ask)
        deadline_s = time.monotonic() + ANSWER_S
        for ask in waited_for:
            ask.join(max(0.0, deadline_s - time.monotonic()))
        for gone in self._asked.keys() - targets.keys():
            del self._asked[gone]
        unread = {}
        for target in targets:
            answer = answers.get(target) or _Unread("no answer")
            if isinstance(answer, _Unread):
                unread[target] = f"{output.printable(self.name(target))}: {answer}"
            else:
                yield target, [answer], 0.0
        self._tell(unread)

    def _tell(self, unread: dict[str, str]) -> None:
        """What was said stands until it is another thing."""
        output.tell(
            [
                f"{said}: left out of this round, and of others until it can be read"
                for target, said in unread.items()
                if self._said.get(target) != said
            ]
        )
        self._said = unread

    def _ask(self, target: str, mount: Mount, answers: dict[str, Counted | _Unread]) -> None:
        try:
            answers[target] = gluster(self.name(target), self.root / mount.point.lstrip("/"))
        except (OSError, ValueError) as error:
            answers[target] = _Unread(getattr(error, "strerror", None) or str(error))

    def _read_nfs(self, targets: dict[str, Mount], answers: dict[str, Counted | _Unread]) -> None:
        """Without a question to any server."""
        nfs = {target: mount for target, mount in targets.items() if mount.kind in NFS}
        if not nfs:
            return
        text = (self.root / "proc/self/mountstats").read_text(errors="surrogateescape")
        found = {one.name: one for one in nfs_mounts(text)}
        for target, mount in nfs.items():
            if mount.point in found:
                answers[target] = found[mount.point]._replace(name=self.name(target))
            else:
                answers[target] = _Unread("has no figures in /proc/self/mountstats")


class _Unread(str):
    """Why a mount could not be read."""


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
    """What a mounted volume's client has counted; OSError, ValueError: it has not.

    From one open folder on: a look at MOUNT/.meta is itself an operation that is counted.
    """
    meta = os.open(place / ".meta", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        graph = "graphs/active"
        start = f"{_text('process_uuid', meta).strip()} {os.readlink(graph, dir_fd=meta)}"
        for layer in _names(graph, meta):  # counters are of the one that is a volume's own
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                text = _text(f"{graph}/{layer}/private", meta)
                if text.startswith("cumulative.data_read = "):
                    return Counted(name, start, _gluster_work(text))
    finally:
        os.close(meta)
    raise ValueError(NOT_COUNTED)


def gluster_away(place: Path) -> Iterator[str]:
    """Bricks that a mounted volume's client has no connection to, SERVER:SUBVOLUME."""
    for layer in _layers(place, "protocol/client"):
        if not re.search(r"^connected = 1$", (layer / "private").read_text(), re.M):
            yield ":".join(_option(layer, f"remote-{what}", "?") for what in ("host", "subvolume"))


def gluster_shard(place: Path) -> int | None:
    """Bytes of a file that are together on a brick; None: all are."""
    for layer in _layers(place, "features/shard"):
        found = re.fullmatch(r"(\d+)([KMGT]?)B?", _option(layer, "shard-block-size", SHARD))
        return int(found[1]) << 10 * " KMGT".index(found[2] or " ") if found else 1
    return None


def _layers(place: Path, kind: str) -> Iterator[Path]:
    """None where the mount shows a part of its volume alone."""
    with contextlib.suppress(FileNotFoundError):
        for layer in (place / ".meta/graphs/active").iterdir():
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                if (layer / "type").read_text().strip() == kind:
                    yield layer


def _option(layer: Path, name: str, default: str) -> str:
    try:
        return (layer / "options" / name).read_text().strip()
    except OSError:
        return default


def _text(name: str, folder: int) -> str:
    def opened(path: str, flags: int) -> int:
        return os.open(path, flags, dir_fd=folder)

    with open(name, opener=opened) as file:
        return file.read()


def _names(name: str, folder: int) -> list[str]:
    number = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return sorted(os.listdir(number))
    finally:
        os.close(number)


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
        age = re.search(r"^\s*age:\s*(\d+)", rest, re.M)
        sizes = re.search(r"^\s*bytes:((?:\s+\d+){6})", rest, re.M)
        if found and sizes:
            *_, read, written = map(int, sizes[1].split())
            asked = OPERATIONS.findall(rest.partition("per-op statistics")[2])
            ops = sum(int(number) for name, number in asked if name in NFS_METADATA)
            start = f"@{round(time.monotonic()) - int(age[1])}" if age else ""
            yield Counted(_unescaped(found[1]), start, Work(read, written, ops))
