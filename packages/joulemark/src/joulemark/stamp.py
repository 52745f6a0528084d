# What tells a file from the one that had its name before.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os

Stamp = tuple[int, int, int, int]


def stamp(found: os.stat_result) -> Stamp:
    """Another one whenever another file has the name, or its content is another."""
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
