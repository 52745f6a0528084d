# Folders beneath record_dir: whoever makes them, they belong to whom record_dir belongs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
from pathlib import Path


def make(folder: Path, like: Path, mode: int = 0o755) -> None:
    """A merge or a receiver that root runs must not shut out SlurmUser's later."""
    try:
        folder.mkdir(mode=mode)
    except FileExistsError:
        return
    give_to_owner(folder, like)


def give_to_owner(made: int | Path, like: Path) -> None:
    """A path or an open file, to the owner of `like`, where we may."""
    if os.geteuid() == 0:
        owner = like.stat()
        os.chown(made, owner.st_uid, owner.st_gid)
