# A job's power over time on one node, as joulemarkd writes it: lines of JSON.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

SCHEMA = 1
SUFFIX = ".profile.jsonl"
NS, UJ = 1e9, 1e6
KINDS = {"begin": 1, "end": 2}


@dataclass
class Channel:
    """One channel's samples: Unix seconds, and joules charged since the job's start."""

    name: str
    domain: str
    method: str
    outermost: bool
    uncertainty_j: float | None = None  # of the whole, k=2
    times_s: list[float] = field(default_factory=list)
    energies_j: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Mark:
    """A region's begin or end."""

    time_s: float
    kind: str
    name: str
    rank: int  # -1: not known
    thread: int


@dataclass
class NodeProfile:
    """What one node measured of a job."""

    cluster: str
    job: int
    node: str
    uid: int
    hz: float
    channels: dict[str, Channel]
    marks: list[Mark] = field(default_factory=list)
    marks_left_out: int = 0


# ---- the nodes' files ----


def read_node(path: Path) -> NodeProfile:
    """A node's file; ValueError says what is wrong with it."""
    profile = None
    order: list[Channel] = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            if "channels" in entry:
                profile, order = _begin(entry, profile)
            elif profile is None:
                raise ValueError("it does not begin with a line of channels")
            elif "m" in entry:
                at_s = entry["t"] / NS
                profile.marks.append(Mark(at_s, entry["m"], entry["n"], entry["r"], entry["th"]))
            else:
                _add_sample(order, entry)
                profile.marks_left_out = entry.get("marks_left_out", 0)
    if profile is None:
        raise ValueError("it is empty")
    profile.marks.sort(key=lambda mark: mark.time_s)
    return profile


def _begin(head: dict, known: NodeProfile | None) -> tuple[NodeProfile, list[Channel]]:
    """A daemon that restarted writes another head: its channels may have another order."""
    if head["schema"] != SCHEMA:
        raise ValueError(f"schema {head['schema']}: install the same version of joulemark")
    profile = known or NodeProfile(
        head["cluster"], head["JobIDRaw"], head["node"], head["uid"], head["hz"], {}
    )
    order = []
    for said in head["channels"]:
        made = Channel(said["name"], said["domain"], said["method"], said["outermost"])
        order.append(profile.channels.setdefault(said["name"], made))
    return profile, order


def _add_sample(order: list[Channel], entry: dict) -> None:
    at_s = entry.get("t", entry.get("end")) / NS
    for index, (channel, energy_uj) in enumerate(zip(order, entry["e"])):
        if "u" in entry:
            channel.uncertainty_j = entry["u"][index] / UJ
        if channel.times_s and at_s <= channel.times_s[-1]:
            continue  # a clock that was set back, or an end with the last sample
        channel.times_s.append(at_s)
        channel.energies_j.append(energy_uj / UJ)


def is_later(there: Path, payload: bytes) -> bool:
    """Whether the file holds a profile of a later run of the job, or one of this run that ends
    after this one."""
    if not there.is_file():
        return False
    stands, ours = _run_of(there.read_bytes()), _run_of(payload)
    return bool(stands and ours) and stands > ours


def _run_of(payload: bytes) -> tuple[int, int] | None:
    """When the profile's run began and ended, 0: it is cut off; None: it is no profile."""
    head, end = payload[: payload.find(b"\n")], payload[payload.rfind(b"\n", 0, -1) + 1 :]
    start_ns = _time_in(head, "start_ns")
    return (start_ns, _time_in(end, "end") or 0) if start_ns else None


def _time_in(line: bytes, key: str) -> int | None:
    try:
        return int(json.loads(line)[key])
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return None
