# Reads Lustre's job_stats.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What each job did at one target (OST or MDT) since its entry began. Lustre 2.4 to 2.17 write it
alike but for details: it is YAML since 2.16; `key   :` or `key:   `; names in quotes since 2.15;
bytes are `read_bytes`, in 2.4 `read`, which is a time since; entries have a start_time since 2.15.

Sources: lustre/obdclass/lprocfs_jobstats.c of lustre-release at 04e7562 (2.4) and c881f8e (2.17);
a run of 2.17.57 on a real Lustre.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from joulemark.storage.work import Work

ENTRY = re.compile(
    rb"^[ \t]*-[ \t]+job_id[ \t]*:?[ \t]*(?P<name>[^\n]*)\n"
    rb"(?P<lines>(?:(?![ \t]*-[ \t]+job_id)[^\n]*(?:\n|\Z))*)",
    re.M,
)
START = re.compile(rb"^\s*start_time\s*:\s*(\S+)", re.M)
COUNTER = re.compile(rb"^\s*(\w+)\s*:\s*\{\s*samples:\s*(\d+)(?:,\s*unit:\s*(\w+))?([^\n]*)", re.M)
SUM = re.compile(rb"\bsum:\s*(\d+)")
# What an MDT counts, but for kinds of rename, which are counted as renames, too, and for data
# (read, write, punch, fallocate). A create is an open and a mknod.
METADATA = frozenset(
    (
        *(b"open", b"close", b"mknod", b"link", b"unlink", b"mkdir", b"rmdir", b"rename"),
        *(b"getattr", b"setattr", b"getxattr", b"setxattr", b"statfs", b"sync"),
        *(b"readpage", b"migrate"),
    )
)


class Entry(NamedTuple):
    """A job's lines at a target, not yet read: most have not changed since."""

    name: str
    lines: bytes
    is_mdt: bool

    @property
    def key(self) -> str:
        """Its own among the target's."""
        return self.name

    @property
    def digest(self) -> int:
        """Another one where anything has changed."""
        return hash(self.lines)

    @property
    def start(self) -> str:
        """When its counters began, by the server's clock; "": it does not say."""
        found = START.search(self.lines)
        return found[1].decode("ascii", "replace") if found else ""

    @property
    def work(self) -> Work:
        """Its counters; an OST's requests are data's, none of metadata."""
        read = written = ops = 0
        for name, samples, unit, rest in COUNTER.findall(self.lines):
            if name in (b"read_bytes", b"write_bytes") or (
                name in (b"read", b"write") and unit == b"bytes"
            ):
                found = SUM.search(rest)
                total = int(found[1]) if found else 0
                if name.startswith(b"read"):
                    read += total
                else:
                    written += total
            elif self.is_mdt and name in METADATA:
                ops += int(samples)
        return Work(read, written, ops)


def entries(text: bytes, is_mdt: bool) -> Iterator[Entry]:
    """All of a target's, with names as they are: a blank more is another name."""
    for found in ENTRY.finditer(text):
        name = found["name"]
        if len(name) > 1 and name[:1] == name[-1:] == b'"':
            name = name[1:-1]
        if name.strip():
            yield Entry(name.decode("utf-8", "surrogateescape"), found["lines"], is_mdt)
