# `joulemark plan --site`: what a site's records take, a day and for as long as they are kept.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""By what records of a real joulemarkd and their merge into SQLite took (tests/bench/site, and
test_capacity.py, which holds them to it): other stores differ by what their pages leave free."""

from __future__ import annotations

import math
from dataclasses import dataclass

from joulemark import layout

HEAD_BYTES, INSTRUMENT_BYTES = 260, 60  # of a record's text, with an instrument a channel
ACCOUNT_BYTES, CHANNEL_BYTES = 530, 112  # of the job and of each step; of each channel in them
MESSAGE_BYTES = 200  # a message's topic and head, its receipt and acknowledgements
BLOCK_BYTES = 4096  # a file takes whole ones
STORED_RECORD_BYTES, STORED_ACCOUNT_BYTES = 1230, 330
GB = 1e9


@dataclass(frozen=True)
class Site:
    """How many jobs a day, on how many nodes each, with how many steps, all as means."""

    jobs: float
    wide: float
    steps: float  # with batch and extern
    channels: int
    nodes: int
    days: int

    @property
    def records(self) -> float:
        """A day."""
        return self.jobs * self.wide

    @property
    def record_bytes(self) -> float:
        """Of its text."""
        accounts = (1 + self.steps) * (ACCOUNT_BYTES + CHANNEL_BYTES * self.channels)
        return HEAD_BYTES + INSTRUMENT_BYTES * self.channels + accounts

    @property
    def stored_bytes(self) -> float:
        """Of a record, with its part of its job's rows."""
        rows = (1 + self.steps) * STORED_ACCOUNT_BYTES
        return STORED_RECORD_BYTES + rows


def rows(site: Site) -> list[dict]:
    """A place each; null: nothing is kept there."""
    merged = math.ceil(site.record_bytes / BLOCK_BYTES) * BLOCK_BYTES
    places = [
        ("network", site.records, site.record_bytes + MESSAGE_BYTES, False),
        ("record_dir/merged", site.records, merged, True),
        ("store", site.records, site.stored_bytes, True),
        ("a node that is cut off", site.records / site.nodes, merged, False),
    ]
    return [
        {
            "where": where,
            "records_a_day": round(records, 1),
            "bytes_a_day": round(records * size),
            "bytes_kept": round(records * size * site.days) if kept else None,
        }
        for where, records, size, kept in places
    ]


def run(options, site: Site) -> int:
    """Prints the plan of a site."""
    found = rows(site)
    title = (
        f"{site.jobs:.10g} jobs a day on {site.wide:.10g} nodes each, {site.nodes} nodes in all"
    )
    heads = ["Where", "Records a day", "GB a day", f"GB in {site.days} days"]
    body = [
        (
            "value",
            [
                row["where"],
                f"{row['records_a_day']:.10g}",
                _gb(row["bytes_a_day"]),
                _gb(row["bytes_kept"]) if row["bytes_kept"] else "",
            ],
        )
        for row in found
    ]
    notes = [
        f"A record has {site.record_bytes:.0f} bytes. Profiles, which jobs ask for, are more."
    ]
    layout.show(options, found, [layout.Text(title, heads, body)], notes)
    return 0


def _gb(size: float) -> str:
    return f"{float(f'{size / GB:.3g}'):g}"
