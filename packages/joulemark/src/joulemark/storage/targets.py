# A file on each target of a file system: a Lustre's OSTs, a GlusterFS' bricks.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from joulemark.errors import UsageError
from joulemark.storage.mounts import GLUSTER, Mount, gluster_away, mounted

LUSTRE = "lustre"
AWAY = "is not connected"
LIMIT_S = 60.0  # of a question to servers
OST = re.compile(r"^(\d+): (\S+?)(?:_UUID)? (\w+)", re.M)  # `lfs osts`
FREE = re.compile(r"^\S+ +\d+ +\d+ +(\d+) .*\[OST:(\d+)\]", re.M)  # `lfs df`, in KiB
BRICK = re.compile(r"<POSIX\((.*?)\):([^:>]*):")  # xlators/cluster/dht: glusterfs.pathinfo
TRIES = 100  # names for each brick: which name goes to which is a hash's choice


def files(folder: Path, n_bytes: float) -> tuple[dict[str, Path], dict[str, str]]:
    """New empty files in a folder of our own, one on each target alone, by its name; and why
    others have none. n_bytes: that need room, where the file system tells of each target's.
    UsageError: its file system has no targets that a file can be put on."""
    mount = mount_of(folder)
    if mount.kind == LUSTRE:
        return _of_lustre(folder, n_bytes)
    if mount.kind in GLUSTER:
        found, missing = _of_gluster(folder)
        return found, {**missing, **dict.fromkeys(gluster_away(Path(mount.point)), AWAY)}
    raise UsageError(f"{folder.parent}: is on {mount.kind}: give one on Lustre or GlusterFS")


def mount_of(folder: Path) -> Mount:
    """The first of its file system's that /proc/self/mountinfo has."""
    number = folder.stat().st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    text = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    unknown = Mount(str(folder), "a file system of no mount", device)
    return next((one for one in mounted(text) if one.device == device), unknown)


def over_all(folder: Path) -> Path:
    """A new empty file on all OSTs of a Lustre. UsageError: it is on no Lustre."""
    kind = mount_of(folder).kind
    if kind != LUSTRE:
        raise UsageError(f"{folder.parent}: is on {kind}: give a folder on Lustre")
    path = folder / "striped"
    lustre("lfs", "setstripe", "--stripe-count", -1, path)
    return path


def _of_lustre(folder: Path, n_bytes: float) -> tuple[dict[str, Path], dict[str, str]]:
    said = lustre("lfs", "df", "--lazy", folder)  # else it waits for servers that are away
    free = {number: int(kib) << 10 for kib, number in FREE.findall(said)}
    found, missing = {}, {}
    for number, name, state in OST.findall(lustre("lfs", "osts", folder)):
        path = folder / name
        if state != "ACTIVE":
            missing[name] = f"is {state}"
        elif number not in free:
            missing[name] = "does not answer"
        elif free[number] < n_bytes:
            missing[name] = f"has room for {free[number]} bytes"
        else:
            try:
                lustre("lfs", "setstripe", "--stripe-count", 1, "--stripe-index", number, path)
                found[name] = path
            except UsageError as error:
                missing[name] = str(error)
    return found, missing


def lustre(*words: object) -> str:
    """What lfs or lctl prints; UsageError: it failed, or is not there."""
    command = [str(word) for word in words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    except OSError as error:
        raise UsageError(f"{command[0]}: {error.strerror}: Lustre's commands are needed") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"{' '.join(command)}: no answer within {LIMIT_S:g} s") from None
    if done.returncode:
        said = " ".join(f"{done.stderr}{done.stdout}".split())
        raise UsageError(f"{' '.join(command)}: exit status {done.returncode}: {said}")
    return done.stdout


def _of_gluster(folder: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """A replicated file's target is all of its bricks."""
    missing = set(_bricks(folder))
    found: dict[str, Path] = {}
    for number in range(TRIES * len(missing)):
        if not missing:
            break
        path = folder / f"file{number}"
        try:
            path.touch()
        except OSError:  # a server is away
            continue
        bricks = _bricks(path)
        if missing.isdisjoint(bricks):
            path.unlink()
            continue
        missing.difference_update(bricks)
        found["+".join(bricks)] = path
    return found, {one: "no file came to lie there" for one in missing}


def _bricks(path: Path) -> list[str]:
    """SERVER:FOLDER of each on which it lies; a folder lies on all."""
    text = os.getxattr(path, "glusterfs.pathinfo").decode(errors="surrogateescape")
    return sorted({f"{server}:{brick}" for brick, server in BRICK.findall(text)})
