# The days of a site's clock: which one holds a moment, and when it begins.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import time
from datetime import date, datetime, timezone, tzinfo

from joulemark.units import NS_PER_S

UTC = "UTC"
EPOCH = date(1970, 1, 1).toordinal()
COLUMNS = ("Month", "Day", "LastDay", "LastMonth")  # of job_run


class Zone:
    """Days of a time zone are numbers since 1970-01-01; each begins once and ends where the next
    begins, also where clocks change at midnight."""

    def __init__(self, name: str = UTC):
        """name: of the IANA database, such as Europe/Berlin; ValueError where it is not known."""
        self.name = name
        self._zone = timezone.utc if name == UTC else _find(name)
        self._begins_ns: dict[int, int] = {}

    def day(self, time_ns: int) -> int:
        """The day that holds a moment."""
        day = datetime.fromtimestamp(time_ns // NS_PER_S, self._zone).toordinal() - EPOCH
        while time_ns < self.begin_ns(day):
            day -= 1
        while time_ns >= self.begin_ns(day + 1):
            day += 1
        return day

    def today(self) -> date:
        """By this zone's clocks."""
        return self.date_of(time.time_ns())

    def date_of(self, time_ns: int) -> date:
        """Likewise of a moment."""
        return date.fromordinal(self.day(time_ns) + EPOCH)

    def begin_ns(self, day: int) -> int:
        """A day's first moment, ns since 1970-01-01 UTC."""
        found = self._begins_ns.get(day)
        if found is None:
            midnight = datetime.fromordinal(day + EPOCH).replace(tzinfo=self._zone)
            found = self._begins_ns[day] = int(midnight.timestamp()) * NS_PER_S
        return found

    def columns(
        self, start_ns: int | None, end_ns: int | None, step: str
    ) -> dict[str, int | None]:
        """Of a row of job_run: when it began, and of a job the last where that is another one."""
        if start_ns is None:
            return dict.fromkeys(COLUMNS)
        first = last = self.day(start_ns)
        if step == "job" and end_ns is not None and end_ns > start_ns:
            last = self.day(end_ns - 1)
        months = month(first), month(last)
        return {
            "Month": months[0],
            "Day": first,
            "LastDay": last if last > first else None,
            "LastMonth": months[1] if months[1] > months[0] else None,
        }


def _find(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo  # here, because UTC needs none

    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise ValueError(name) from None


def month(day: int) -> int:
    """202611"""
    found = date.fromordinal(day + EPOCH)
    return found.year * 100 + found.month


def next_month(day: int) -> int:
    """The first day of the month after a day's."""
    found = date.fromordinal(day + EPOCH)
    return date(found.year + found.month // 12, found.month % 12 + 1, 1).toordinal() - EPOCH
