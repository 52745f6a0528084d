# `joulemark export thicket`: a .cali file for each run, as Thicket.from_caliperreader reads them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterable, Iterator

from joulemark.bench.cooked import Measurement
from joulemark.bench.export import cali, figures
from joulemark.bench.export.profiles import profiles

# Hatchet calls this one `time`, and takes it for what a tree shows.
NAMES = {"time_s": "sum#time.duration"}


def files(measurements: Iterable[Measurement]) -> Iterator[tuple[str, str]]:
    """Each file's name and text."""
    for number, profile in enumerate(profiles(measurements), 1):
        one = profile.first
        name = figures.as_file_name(one.benchmark, one.variant, one.size, f"{number:05}.cali")
        yield name, cali.text(profile.metadata(), profile.regions(NAMES))
