# `joulemark store prune`: jobs that ended long ago leave the store, and their files the disk.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

from joulemark import progress, store
from joulemark.config import Config
from joulemark.errors import UsageError
from joulemark.store import retention
from joulemark.store.days import EPOCH, Zone

LEAST_DAYS = 30  # so long nodes' records and lines of prices may still come


def first_kept(text: str, today: date) -> date:
    """`5y`, `18m` or `400d` before today: the first day whose jobs stay."""
    found = re.fullmatch(r"([1-9]\d{0,4})([ymd])", text)
    if not found:
        raise UsageError(f"--keep {text}: it is not a time such as 5y, 18m or 400d")
    number, unit = int(found[1]), found[2]
    try:
        day = today - timedelta(number) if unit == "d" else _months_before(today, number, unit)
    except (ValueError, OverflowError):
        raise UsageError(f"--keep {text}: that is before there were dates") from None
    if (today - day).days < LEAST_DAYS:
        raise UsageError(f"--keep {text}: keep {LEAST_DAYS} days at least: records may still come")
    return day


def _months_before(today: date, number: int, unit: str) -> date:
    months = today.year * 12 + today.month - 1 - number * (12 if unit == "y" else 1)
    first = date(months // 12, months % 12 + 1, 1)
    after = date(first.year + first.month // 12, first.month % 12 + 1, 1)
    return first.replace(day=min(today.day, (after - timedelta(1)).day))


def count(config: Config, day: date) -> int:
    """How many jobs would go."""
    with store.reading(config.store) as session:
        found = retention.jobs_before(session, day.toordinal() - EPOCH)
        return sum(map(len, progress.counted(found, "jobs found", of=len)))


def run(config: Config, day: date) -> tuple[int, int]:
    """How many jobs and files went. What is cut off leaves files, which the next time takes."""
    with store.writing(config.store, may_make=False) as session:
        n_jobs = retention.prune(session, day.toordinal() - EPOCH)
    n_files = 0
    with store.reading(config.store) as session:
        for path, job in progress.counted(_files(config, day), "files looked at"):
            if retention.is_pruned(session, config.cluster, job):
                path.unlink(missing_ok=True)
                n_files += 1
    with progress.shown("giving room back"):
        store.compact(config.store)
    return n_jobs, n_files


def _files(config: Config, day: date) -> Iterator[tuple[Path, int]]:
    """Records and profiles of this cluster that were written before that day, and whose they are.

    A record is written after its job's end.
    """
    before_s = Zone(config.timezone).begin_ns(day.toordinal() - EPOCH) / 1e9
    whose = re.compile(rf"{re.escape(config.cluster)}\.(\d+)\.")
    merged = (config.record_dir / "merged", config.record_dir / "profiles" / "merged")
    for folder in (*merged, config.profile_dir):
        for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
            path, found = folder / name, whose.match(name)
            if found and path.is_file() and path.stat().st_mtime < before_s:
                yield path, int(found[1])
