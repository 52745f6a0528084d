# A file on each target of a file system: a Lustre's OSTs, a GlusterFS' bricks.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from joulemark.errors import UsageError
from joulemark.storage.mounts import GLUSTER, Mount, gluster_away, gluster_shard, mounted

LUSTRE = "lustre"
AWAY = "is not connected"
NOWHERE = "no file came to lie there: is it nearly full?"  # cluster.min-free-disk
SPARE = 1.05
LIMIT_S = 60.0  # of a question to servers
OST = re.compile(r"^(\d+): (\S+?)(?:_UUID)? (\w+)", re.M)  # `lfs osts`
FREE = re.compile(r"^\S+ +\d+ +\d+ +(\d+) .*\[OST:(\d+)\]", re.M)  # `lfs df`, in KiB
WHY = re.compile(r"^(\S+-OST[0-9a-f]{4})_UUID *: (.+)", re.M)
BRICK = re.compile(r"<POSIX\((.*?)\):([^:>]*):")  # xlators/cluster/dht: glusterfs.pathinfo
TRIES = 100  # names for each brick: which name goes to which is a hash's choice


def files(folder: Path, n_bytes: float) -> tuple[dict[str, Path], dict[str, str]]:
    """New empty files in a folder of our own, one on each target alone, by its name; and why
    others have none. n_bytes: what a file is to have, looked at where a target tells its room.
    UsageError: its file system has no targets that a file can be put on."""
    mount = mount_of(folder)
    if mount.kind == LUSTRE:
        return _of_lustre(folder, n_bytes)
    if mount.kind in GLUSTER:
        place = Path(mount.point)
        shard = gluster_shard(place)
        if shard is not None and n_bytes > shard:
            fix = "give a --size of one shard at most"
            raise UsageError(f"{mount.point}: puts each {shard} bytes on another brick: {fix}")
        found, missing = _of_gluster(folder)
        return found, {**missing, **dict.fromkeys(gluster_away(place), AWAY)}
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
    # not lazy, it waits for servers that are away; one that just died makes its exit status
    said = lustre("lfs", "df", "--lazy", folder, is_checked=False)
    free = {number: int(kib) << 10 for kib, number in FREE.findall(said)}
    why = dict(WHY.findall(said))
    found, missing = {}, {}
    for number, name, state in OST.findall(lustre("lfs", "osts", folder)):
        if state != "ACTIVE":
            missing[name] = f"is {state}"
        elif number not in free:
            missing[name] = why.get(name, "does not answer")
        elif free[number] < SPARE * n_bytes:
            missing[name] = f"has room for {free[number]} bytes"
        else:
            try:
                found[name] = _on_ost(folder / name, number)
            except UsageError as error:
                missing[name] = str(error)
    return found, missing


def _on_ost(path: Path, number: str) -> Path:
    """A new file; the MDS puts it on another one where an OST takes no new files, as one that is
    being drained (lod_alloc_specific, lustre/lod/lod_qos.c)."""
    lustre("lfs", "setstripe", "--stripe-count", 1, "--stripe-index", number, path)
    lies_on = lustre("lfs", "getstripe", "--stripe-index", path).strip()
    if lies_on != number:
        path.unlink()
        raise UsageError(f"takes no new files: one for it came to lie on OST {lies_on}")
    return path


def lustre(*words: object, is_checked: bool = True) -> str:
    """What lfs or lctl prints; UsageError: it is not there, or, is_checked, it failed."""
    command = [str(word) for word in words]
    pipes = {"capture_output": True, "text": True, "errors": "surrogateescape"}
    try:
        done = subprocess.run(command, timeout=LIMIT_S, **pipes)
    except OSError as error:
        raise UsageError(f"{command[0]}: {error.strerror}: Lustre's commands are needed") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"{' '.join(command)}: no answer within {LIMIT_S:g} s") from None
    if is_checked and done.returncode:
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
    return found, dict.fromkeys(missing, NOWHERE)


def _bricks(path: Path) -> list[str]:
    """SERVER:FOLDER of each on which it lies; a folder lies on all."""
    text = os.getxattr(path, "glusterfs.pathinfo").decode(errors="surrogateescape")
    return sorted({f"{server}:{brick}" for brick, server in BRICK.findall(text)})
