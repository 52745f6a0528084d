# `joulemark io rpcs`: what a Lustre client reaches by how many calls it has under way.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from joulemark import ending, layout, workfolder
from joulemark.errors import UsageError
from joulemark.storage import rounds, targets
from joulemark.storage.targets import lustre

PARAMETER = re.compile(r"^(osc\.\S+)=(\d+)$", re.M)  # `lctl get_param`


def run(options: argparse.Namespace) -> int:
    """Prints the rates at each number; 1: one has failed."""
    if os.geteuid() != 0:
        raise UsageError("io rpcs: only root can set max_rpcs_in_flight: run it as root")
    with (
        ending.leaving(),
        workfolder.made(options.folder, "rpcs", rounds.removal_s(options)) as folder,
    ):
        path = targets.over_all(folder)
        rounds.check_room(folder, options.size)
        with restored(parameters(folder)) as before:

            def set_number(number: str) -> Path:
                set_all(dict.fromkeys(before, number))
                return path

            found = rounds.measured([str(one) for one in options.numbers], options, set_number)
    rows = [
        {
            "max_rpcs_in_flight": int(number),
            **rounds.columns(one),
            "trouble": one.trouble,
            "before": sum(value == number for value in before.values()),
        }
        for number, one in found.items()
    ]
    table = rounds.as_text(options, "Calls to an OST", rows, lambda row: said(row, len(before)))
    layout.show(options, rows, [table], [])
    return 1 if any(row["trouble"] for row in rows) else 0


def said(row: dict, n_targets: int) -> str:
    """What is not well, or what it was before."""
    as_before = {0: "", n_targets: "as before"}
    some = f"as before, of {row['before']} of {n_targets}"
    return row["trouble"] or as_before.get(row["before"], some)


def parameters(folder: Path) -> dict[str, str]:
    """This client's, of the folder's file system, a name and a value for each OST."""
    name, _, client = lustre("lfs", "getname", folder).split()[0].rpartition("-")
    pattern = f"osc.{name}-OST*-osc-{client}.max_rpcs_in_flight"
    return dict(PARAMETER.findall(lustre("lctl", "get_param", pattern)))


@contextlib.contextmanager
def restored(before: dict[str, str]) -> Iterator[dict[str, str]]:
    """They are at the end what they are now; signals wait meanwhile."""
    try:
        yield before
    finally:
        with ending.deferred():
            set_all(before)


def set_all(values: dict[str, str]) -> None:
    """UsageError: it is not root that asks, or Lustre took another value."""
    lustre("lctl", "set_param", *(f"{name}={value}" for name, value in values.items()))
    taken = dict(PARAMETER.findall(lustre("lctl", "get_param", *values)))
    for name, value in values.items():
        if taken.get(name) != value:
            raise UsageError(f"{name}: asked for {value}, it is {taken.get(name)}")
