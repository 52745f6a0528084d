"""The files of this checkout, and copies of some of them that a test may spoil."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.cluster import CHECKOUT


def tracked(*patterns: str) -> list[str]:
    """Files under version control, and new ones that are not ignored."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    listed = subprocess.run(
        [*words, *patterns], cwd=CHECKOUT, check=True, capture_output=True, text=True, timeout=60
    ).stdout
    return [name for name in listed.split("\0") if name and (CHECKOUT / name).is_file()]


def copy_to(place: Path, *patterns: str) -> Path:
    """The sources as a clone has them, in another place."""
    for name in tracked(*patterns):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / name, place / name)
    return place
