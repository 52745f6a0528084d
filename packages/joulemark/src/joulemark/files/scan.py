# Runs fs-scan, and keeps the joules of that in its database.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass

from joulemark import ending, layout, progress, regions, units
from joulemark.errors import UsageError, UserError
from joulemark.files import database
from joulemark.files.database import Scan

PROGRAM = "fs-scan"
NO_DATABASE = 3  # fs-scan's exit status
NOT_READ = 1
HEADS = ["Folder", "Scanned", "Folders", "Names", "Size", "Seconds", "Names/s", "Joules"]
HEADS += ["+-", "J/million"]
COLUMNS = ("root", "began", "folders", "names", "objects", "size_bytes", "denied", "failed")
COLUMNS += ("moved", "mounts", "scan_seconds", "names_per_second", "energy_j", "energy_error_j")
COLUMNS += ("estimated", "energy_per_name_j")


class Ended(UserError):
    """By a signal."""

    def __init__(self, number: int):
        name = signal.Signals(number).name
        super().__init__(f"{PROGRAM}: ended by {name}: no new database")
        self.exit_code = 128 + number


@dataclass(frozen=True)
class Done:
    """What fs-scan ended with, and the joules of that where a daemon measures."""

    status: int
    energy: regions.Energy | None


def run(options: argparse.Namespace) -> int:
    """`joulemark fs scan`."""
    status = into(options.folder, options.database, options.threads)
    if status != NO_DATABASE:
        with database.opened(options.database) as scan:
            show(options, [scan])
    return status


def into(folder: str, path: str, threads: int | None) -> int:
    """Scans it; fs-scan's exit status. What it could not read it has told on stderr."""
    if not os.path.isdir(folder):
        raise UsageError(f"{folder}: no such folder")
    path = os.path.realpath(path)  # a link stays one
    words = [] if threads is None else ["--threads", str(threads)]
    done = _measured([_program(), *words, os.path.abspath(folder), path])
    if done.status != NO_DATABASE and done.energy is not None:
        _keep(path, done.energy)
    return done.status


def _program() -> str:
    path = shutil.which(PROGRAM)
    if path is None:
        fix = f"load its module, or install it: spack install {PROGRAM}"
        raise UserError(f"{PROGRAM}: is not on the PATH: {fix}")
    return path


def _measured(command: list[str]) -> Done:
    with ending.as_before(), ending.by_the_first(Ended) as check:
        with progress.shown("scanning"), regions.region(PROGRAM, measure=True) as measured:
            status = _status_of(command)
        check()
    return Done(status if status in (0, NOT_READ) else NO_DATABASE, measured.energy)


def _status_of(command: list[str]) -> int:
    with ending.child(command, _end, stdout=subprocess.DEVNULL) as child:
        return child.wait()


def _end(child: subprocess.Popen) -> None:
    child.terminate()  # it removes what is not whole
    child.wait()


def _keep(path: str, energy: regions.Energy) -> None:
    whole = [round(one * units.UJ_PER_J) for one in (energy.energy_j, energy.uncertainty_j)]
    with database.opened(path, writable=True) as scan, scan.session:
        keep = "UPDATE scan SET energy_uj = ?, energy_error_uj = ?, estimated = ?"
        scan.rows(keep, *whole, energy.estimated)


# -- scans side by side --------------------------------------------------------------------------


def show(options: argparse.Namespace, scans: list[Scan]) -> None:
    """A row a scan."""
    records = [_record(scan) for scan in scans]
    body = [("value", _cells(one)) for one in records]
    table = layout.Text("Scans", HEADS, body, optional=((2,), (9,)))
    layout.show(options, records, [table], notes(scans, records), COLUMNS)


def _record(scan: Scan) -> dict:
    told = scan.told
    sums = scan.rows(f"SELECT {database.SIZES_SUMMED} FROM object WHERE NOT again").fetchone()
    energy_j, error_j = (
        None if told[name] is None else told[name] / units.UJ_PER_J
        for name in ("energy_uj", "energy_error_uj")
    )
    seconds, names = told["seconds"], told["names"]
    values = (scan.root_text, scan.began, told["folders"], names, told["objects"])
    values += (database.summed(*sums), told["denied"], told["failed"], told["moved"])
    values += (told["mounts"], seconds)
    values += (names / seconds if seconds else None, energy_j, error_j)
    values += (None if told["estimated"] is None else bool(told["estimated"]),)
    values += (None if energy_j is None else energy_j / names,)
    return dict(zip(COLUMNS, values))


def _cells(one: dict) -> list[str]:
    energy_j, error_j = one["energy_j"], one["energy_error_j"]
    rate = one["names_per_second"]
    cells = [one["root"], one["began"], str(one["folders"]), str(one["names"])]
    cells += [database.bytes_text(one["size_bytes"]), units.digits(one["scan_seconds"])]
    cells.append("-" if rate is None else units.digits(rate))
    if energy_j is None:
        return [*cells, "-", "-", "-"]
    mark, error = (layout.ESTIMATE_MARK, error_j) if one["estimated"] else ("", 0.0)
    per_million = [1e6 * value / one["names"] for value in (energy_j, error)]
    return [
        *cells,
        mark + units.fixed(energy_j, 1, error),
        mark + units.fixed(error_j, 1, error),
        mark + units.digits(*per_million),
    ]


def notes(scans: list[Scan], records: list[dict]) -> list[str]:
    """What the table does not say."""
    found = []
    for scan in scans:
        if scan.unread:
            found.append(
                f"{scan.root_text}: {scan.unread} could not be read: it is not all there."
            )
        if scan.told["moved"]:
            moved = f"{scan.told['moved']} folders moved before they could be read"
            found.append(f"{scan.root_text}: {moved}: scan once more.")
        if scan.told["mounts"]:
            found.append(f"{scan.root_text}: {scan.told['mounts']} mounts were left out.")
    if any(one["energy_j"] is None for one in records):
        found.append("Joules: - is not measured: scans are within Slurm jobs, beside joulemarkd.")
    if any(one["estimated"] for one in records):
        found.append(layout.LEGEND_ESTIMATED)
    return found
