# What makes runs of one problem runs of another kind: the program's build and the system below it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import NamedTuple

OF_WORDS = ("flags", "libraries", "instruments")  # of which what all have is not told
HASH_DIGITS = 7  # as Spack prints it


class Manifest(NamedTuple):
    """Runs with the same are of one kind, whatever their job, node and date; empty: not told.

    Slurm is one of them, for it starts and binds the ranks, and from release to release otherwise
    (22.05: srun no longer takes over --cpus-per-task); so are the instruments, each of which
    measures something else; and whether threads were pinned, but not to which CPUs. Which
    specimen of an instrument it was, the channel, is not."""

    version: str = ""
    compiler: str = ""
    flags: str = ""
    libraries: str = ""
    spack_spec: str = ""
    spack_hash: str = ""
    os_kernel: str = ""
    governor: str = ""
    pinning: str = ""  # `core`, `NUMA node`, `none`
    slurm: str = ""
    instruments: str = ""  # `nvml/gpu powercap/cpu`; of 3 nodes of 4 `nvml/gpu(3/4)`


def as_record(one: Manifest | None) -> dict[str, str | None]:
    """Its columns for programs."""
    return {key: value or None for key, value in zip(Manifest._fields, one or Manifest())}


def differing(manifests: Iterable[Manifest | None]) -> list[str]:
    """The keys in which those that are known differ."""
    known = {one for one in manifests if one is not None}
    return [key for key in Manifest._fields if len({getattr(one, key) for one in known}) > 1]


def distance(one: Manifest | None, other: Manifest | None) -> int:
    """In how many keys they differ; one that is not told, in all."""
    if one is None or other is None:
        return 0 if one is other else len(Manifest._fields)
    return sum(map(operator.ne, one, other))


def apart(one: Manifest | None, others: Iterable[Manifest | None]) -> str:
    """What tells it from the others, such as `flags -O2`; empty where nothing does."""
    found = {one, *others}
    if len(found) == 1:
        return ""
    if one is None:
        return "no manifest"
    known = [other for other in found if other is not None]
    parts = [f"{key} {_told(one, known, key)}" for key in differing(known)]
    return ", ".join(parts) or "with a manifest"


def change(one: Manifest | None, other: Manifest | None) -> str:
    """From one to the other: `compiler GNU 12.2.0 -> GNU 13.1.0`; empty where nothing differs."""
    if one is None or other is None:
        return "" if one is other else f"{apart(one, [other])} -> {apart(other, [one])}"
    both = [one, other]
    return ", ".join(
        f"{key} {_told(one, both, key)} -> {_told(other, both, key)}" for key in differing(both)
    )


def _told(one: Manifest, known: list[Manifest], key: str) -> str:
    values = {getattr(other, key) for other in known}
    value = getattr(one, key)
    if key in OF_WORDS:
        value = _own_words(values)[value]
    return (value[:HASH_DIGITS] if key == "spack_hash" else value) or "-"


def _own_words(values: set[str]) -> dict[str, str]:
    """Each without the words that all have; whole where only the words' order differs."""
    common = set.intersection(*(set(value.split()) for value in values))
    own = {
        value: " ".join(word for word in value.split() if word not in common) for value in values
    }
    return own if len(set(own.values())) == len(values) else {value: value for value in values}
