# Profiles: from the nodes' files into one HDF5 file a job, and back.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The file is profile_dir/CLUSTER.JOB.h5 (profile_dir: by default profiles/ beside record_dir):

/nodes/NODE/CHANNEL/{time_s, power_w, energy_j}  CHANNEL with `.` for `/`: rapl.package-0
/nodes/NODE/marks/{time_s, kind, name, rank, thread}

energy_j is what the job was charged since its start, never what the node drew; power_w is the mean
since the sample before. The job's user may read the file, and nobody else but its owner.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection
from pathlib import Path

from joulemark import output, progress
from joulemark.errors import UserError, module_missing
from joulemark.profile.node import (
    KINDS,
    SCHEMA,
    SUFFIX,
    Channel,
    Mark,
    NodeProfile,
    is_later,
    read_node,
)


def path_of(config, cluster: str, job: int) -> Path:
    """Where a job's profile is, if it has one."""
    return config.profile_dir / f"{cluster}.{job}.h5"


def waiting(config, jobs: Collection[int] = ()) -> list[str]:
    """Names of what nodes sent of these jobs (none: of every job)."""
    folder = config.record_dir / "profiles"
    wanted = {str(job) for job in jobs}
    return [
        name
        for name in (sorted(os.listdir(folder)) if folder.is_dir() else [])
        if name.endswith(SUFFIX) and not (wanted and wanted.isdisjoint(name.split(".")[1:2]))
    ]


def merge(config, jobs: Collection[int] = ()) -> None:
    """Puts what the nodes sent of these jobs (none: of every job) into HDF5 files.

    Says on stderr what could not be done: a profile never fails a merge of records.
    """
    folder = config.record_dir / "profiles"
    found: dict[tuple[str, int], list[tuple[Path, NodeProfile]]] = {}
    for name in progress.counted(waiting(config, jobs), "profiles read"):
        try:
            profile = read_node(folder / name)
            if name != f"{profile.cluster}.{profile.job}.{profile.node}{SUFFIX}":
                raise ValueError("it belongs to another job or node than its name says")
            stands = folder / "merged" / name
            if stands.is_file() and is_later(stands, (folder / name).read_bytes()):
                _complain(f"{stands}: is later than what has come of this job, and stays")
                (folder / name).unlink()
                continue
        except FileNotFoundError:
            continue  # another merge was faster
        except Exception as error:  # a node may send anything
            _complain(f"{folder / name}: not a profile: {error!r}")
            continue
        found.setdefault((profile.cluster, profile.job), []).append((folder / name, profile))
    for (cluster, number), parts in progress.counted(found.items(), "jobs' profiles written"):
        _merge_job(config, cluster, number, parts)


def _complain(text: str) -> None:
    output.tell([text])


def _merge_job(config, cluster: str, job: int, parts: list[tuple[Path, NodeProfile]]) -> None:
    target = path_of(config, cluster, job)
    try:
        _make_folder(config.profile_dir)
        _write(target, [profile for _, profile in parts])
        kept = config.record_dir / "profiles" / "merged"
        kept.mkdir(mode=0o750, exist_ok=True)
        for path, _ in parts:
            os.replace(path, kept / path.name)
    except ImportError:
        _complain(f"job {job}: its profile waits in {parts[0][0].parent}: install h5py")
    except OSError as error:
        _complain(f"{target}: {error}: the profile waits in {parts[0][0].parent}")
    except Exception as error:  # HDF5 cannot hold what a node sent
        names = ", ".join(str(path) for path, _ in parts)
        _complain(f"{names}: not a profile: {error!r}")


def _make_folder(folder: Path) -> None:
    """Users reach their files in it, and cannot list it; an administrator's own mode stays."""
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        folder.chmod(0o711)


def _write(target: Path, profiles: list[NodeProfile]) -> None:
    """The file, with the nodes that it has already; put in its place whole."""
    import h5py  # only a job with a profile pays for it

    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    draft.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with h5py.File(draft, "w") as file:
            first = profiles[0]
            file.attrs["schema"] = SCHEMA
            file.attrs["cluster"], file.attrs["job"] = first.cluster, first.job
            file.attrs["uid"] = max(profile.uid for profile in profiles)
            nodes = file.create_group("nodes")
            _copy_other_nodes(target, nodes, {profile.node for profile in profiles})
            for profile in profiles:
                _put_node(nodes.create_group(profile.node), profile)
        _give(draft, max(profile.uid for profile in profiles))
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def _copy_other_nodes(target: Path, nodes, own: set[str]) -> None:
    import h5py

    if not target.exists():
        return
    with h5py.File(target, "r") as before:
        for name in set(before["nodes"]) - own:
            before.copy(f"nodes/{name}", nodes)


def _put_node(group, profile: NodeProfile) -> None:
    group.attrs["samples_per_s"] = profile.hz
    for channel in profile.channels.values():
        _put_channel(group.create_group(channel.name.replace("/", ".")), channel)
    _put_marks(group.create_group("marks"), profile)


def _put_channel(group, channel: Channel) -> None:
    import numpy

    times_s = numpy.array(channel.times_s)
    energies_j = numpy.array(channel.energies_j)
    power_w = numpy.full(len(times_s), numpy.nan)  # of the first sample nothing is known
    power_w[1:] = numpy.diff(energies_j) / numpy.diff(times_s)
    for name, values, unit in (
        ("time_s", times_s, "s since 1970-01-01 00:00 UTC"),
        ("power_w", power_w, "W, mean since the sample before"),
        ("energy_j", energies_j, "J, charged to the job since its start"),
    ):
        made = group.create_dataset(name, data=values, compression="gzip", shuffle=True)
        made.attrs["unit"] = unit
    group.attrs["channel"] = channel.name
    group.attrs["domain"], group.attrs["method"] = channel.domain, channel.method
    group.attrs["outermost"] = channel.outermost
    group.attrs["estimated"] = channel.method == "model"
    if channel.uncertainty_j is not None:
        group.attrs["uncertainty_j"] = channel.uncertainty_j
        group.attrs["uncertainty"] = "of the last energy_j, coverage factor k=2"


def _put_marks(group, profile: NodeProfile) -> None:
    import h5py

    marks = profile.marks
    for name, values, kind in (
        ("time_s", [mark.time_s for mark in marks], "f8"),
        ("kind", [KINDS[mark.kind] for mark in marks], h5py.enum_dtype(KINDS, basetype="u1")),
        ("name", [mark.name for mark in marks], h5py.string_dtype()),
        ("rank", [mark.rank for mark in marks], "i4"),
        ("thread", [mark.thread for mark in marks], "u4"),
    ):
        group.create_dataset(name, data=values, dtype=kind, maxshape=(None,), compression="gzip")
    group.attrs["left_out"] = profile.marks_left_out


def _give(path: Path, uid: int) -> None:
    """Root gives the file to the job's user; SlurmUser, who cannot, lets that user read it."""
    if os.geteuid() == 0:
        os.chown(path, uid, -1)
        return
    if uid == os.geteuid():
        return
    try:
        os.setxattr(path, "system.posix_acl_access", _acl(uid))
    except OSError as error:
        _complain(
            f"{path.parent}: user {uid} cannot be let read a profile: {error.strerror}: "
            "put profile_dir on a file system with POSIX ACLs"
        )


def _acl(uid: int) -> bytes:
    """POSIX ACL, version 2: owner rw, this user r, nobody else (acl(5))."""
    none = 0xFFFFFFFF
    owner, user, group, mask, other = 0x01, 0x02, 0x04, 0x10, 0x20
    entries = (
        (owner, 6, none),
        (user, 4, uid),
        (group, 0, none),
        (mask, 4, none),
        (other, 0, none),
    )
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


# ---- reading ----


def load(config, job: int) -> list[NodeProfile]:
    """The nodes of a job's profile, in their order; UserError if it cannot be read."""
    path = path_of(config, config.cluster, job)
    try:
        import h5py
    except ImportError:
        raise module_missing("profiles", "h5py", "profile") from None
    try:
        with h5py.File(path, "r") as file:
            nodes = file["nodes"]
            names = progress.counted(sorted(nodes), "nodes read", len(nodes))
            return [_get_node(file, nodes[name], name) for name in names]
    except FileNotFoundError:
        raise UserError(
            f"{path}: job {job} has no profile: submit with --energy=profile, wait for its end"
        ) from None
    except PermissionError:
        raise UserError(f"{path}: only job {job}'s user may read its profile") from None
    except (OSError, KeyError) as error:
        raise UserError(f"{path}: not a profile: {error}") from None


def _get_node(file, group, name: str) -> NodeProfile:
    channels = {}
    for key in group:
        if key == "marks":
            continue
        found, said = group[key], group[key].attrs
        channels[said["channel"]] = Channel(
            said["channel"],
            said["domain"],
            said["method"],
            bool(said["outermost"]),
            said.get("uncertainty_j"),
            found["time_s"][:].tolist(),
            found["energy_j"][:].tolist(),
        )
    return NodeProfile(
        file.attrs["cluster"],
        int(file.attrs["job"]),
        name,
        int(file.attrs["uid"]),
        float(group.attrs["samples_per_s"]),
        channels,
        _get_marks(group["marks"]),
        int(group["marks"].attrs["left_out"]),
    )


def _get_marks(group) -> list[Mark]:
    names = {number: kind for kind, number in KINDS.items()}
    columns = (
        group["time_s"][:].tolist(),
        (names[kind] for kind in group["kind"][:].tolist()),
        group["name"].asstr()[:].tolist(),
        group["rank"][:].tolist(),
        group["thread"][:].tolist(),
    )
    return [Mark(*values) for values in zip(*columns)]
