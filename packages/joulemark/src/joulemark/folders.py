# Folders and files beneath record_dir: whoever makes them, they belong to whom record_dir belongs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import functools
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


def replace(target: Path, draft: Path, content: bytes, like: Path, mode: int) -> None:
    """By way of the draft, so that target is whole or as it was; to the owner of `like`, whose
    folder it may be, so that no link is followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(draft, flags, mode), "wb") as file:
            give_to_owner(file.fileno(), like)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@functools.cache  # a directory server may have to be asked
def owner_name(uid: int) -> str:
    """Its number where it has no name here."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
