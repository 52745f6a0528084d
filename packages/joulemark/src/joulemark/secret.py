# Reads passwords from files that nobody else may read.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from pathlib import Path

from joulemark.errors import UsageError


def read(path: Path) -> str:
    """The file's first line; UsageError where others may read it, or where it has none."""
    try:
        if path.stat().st_mode & 0o077:
            raise UsageError(
                f"{path}: holds a password, but others may read it: `chmod 600 {path}`"
            )
        found = path.read_text(encoding="utf-8").split("\n")[0]
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}: the password is read from this file: make it, mode 600, "
            "for who runs this"
        ) from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: the password in it is not UTF-8: save it as such") from None
    if not found:
        raise UsageError(f"{path}: no password in its first line: write it there")
    return found
