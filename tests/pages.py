# The files that a page shows, each after its name.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import re
from pathlib import Path

FILE = re.compile(r"^`([\w./-]+)`\n\n((?:    .*\n|\n)+)", re.MULTILINE)


def files_of(page: Path) -> dict[str, str]:
    """By their names, without the page's indentation."""
    return {
        name: re.sub(r"^    ", "", block, flags=re.MULTILINE).strip("\n") + "\n"
        for name, block in FILE.findall(page.read_text())
    }
