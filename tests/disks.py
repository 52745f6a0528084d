"""A disk with no room left, for tests of what must survive one."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
from pathlib import Path


def fill(folder: Path) -> Path:
    """Takes all that is left of the folder's file system; the file to delete."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size):
                    pass
    return filler
