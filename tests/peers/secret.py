"""Passwords and keys as the daemon wants them: nobody else may read the file."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from pathlib import Path


def secret(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text + "\n")
    path.chmod(mode)
    return path


def seen_in_process_list(text: str) -> bool:
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                if text.encode() in (process / name).read_bytes():
                    return True
            except OSError:  # it has ended
                continue
    return False
