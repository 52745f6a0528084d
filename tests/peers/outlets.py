"""What snmpd asks for the objects of a simulated PDU (`pass_persist`, see snmpd.conf(5)).

usage: outlets.py FILE     each line `OID TYPE VALUE`, read again whenever the file has changed
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import sys


class Objects:
    """The file's objects, as fresh as the file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.stamp = (-1, -1)
        self.lines: dict[str, str] = {}

    def get(self, oid: str) -> str:
        status = os.stat(self.path)
        stamp = (status.st_ino, status.st_mtime_ns)
        if stamp != self.stamp:
            with open(self.path) as file:
                rows = [line.rstrip("\n").split(" ", 2) for line in file]
            self.lines = {row[0]: "\n".join(row) for row in rows}
            self.stamp = stamp
        return self.lines.get(oid, "NONE")


def main() -> None:
    objects = Objects(sys.argv[1])
    for line in sys.stdin:
        word = line.strip()
        if word == "PING":
            print("PONG", flush=True)
        elif word == "get":
            print(objects.get(sys.stdin.readline().strip()), flush=True)
        elif word:  # getnext, set: nobody here asks for them
            sys.stdin.readline()
            print("NONE", flush=True)


if __name__ == "__main__":
    main()
