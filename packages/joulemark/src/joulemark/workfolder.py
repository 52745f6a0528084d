# A folder of a command's own on the file system that is measured; nothing of it is left.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import errno
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from joulemark import ending, output
from joulemark.errors import UsageError

TRIES, PAUSE_S = 25, 0.2  # to make one, and to remove what tasks still write to


@contextlib.contextmanager
def made(within: str, name: str, limit_s: float | None = None) -> Iterator[Path]:
    """`joulemark-NAME-...` in that folder; signals wait while it is made and removed. limit_s: for
    its removal, on file systems that may hang."""
    with ending.deferred():
        folder = _make(within, f"joulemark-{name}-")
        try:
            with ending.deferred(False):
                yield folder
        finally:
            _remove(folder) if limit_s is None else _remove_within(folder, limit_s)


def _make(within: str, prefix: str, tries: int = TRIES) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=prefix, dir=within)).resolve()
    except OSError as error:
        # which of a GlusterFS' servers makes it is a matter of its name
        if error.errno == errno.ENOTCONN and tries > 1:
            return _make(within, prefix, tries - 1)
        raise UsageError(f"{within}: {error.strerror}: give a folder to write in") from None


def _remove(folder: Path) -> None:
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(PAUSE_S)
    _tell(folder)


def _remove_within(folder: Path, limit_s: float) -> None:
    """By a process that may be left behind."""
    nothing = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)  # of ours held
    child = subprocess.Popen(["rm", "-rf", "--", folder], **nothing)
    if not ending.ended(child, limit_s) or child.returncode:
        _tell(folder)


def _tell(folder: Path) -> None:
    output.tell([f"{folder}: could not be removed: remove it"])
