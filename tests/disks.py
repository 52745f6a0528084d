"""A disk with no room left, for tests of what must survive one."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path


class Unavailable(Exception):
    """This machine does not let it be made."""


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 1 MiB that everybody may fill."""
    folder.mkdir(exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0777", "small", folder]
    made = subprocess.run(words, capture_output=True, text=True)
    if made.returncode:
        raise Unavailable(f"a small disk cannot be made: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> Path:
    """Takes all that is left of the folder's file system; the file to delete."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size):
                    pass
    return filler
