# What comes on top of a job's energy, each in a column of its own: overhead, carbon, money, I/O.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import math
import time

from joulemark import output
from joulemark.accounting import rates, shared, storagework
from joulemark.accounting.jobrecord import few
from joulemark.accounting.rates import UJ_PER_KWH
from joulemark.accounting.runs import Run
from joulemark.accounting.shared import IO
from joulemark.config import Config
from joulemark.units import NS_PER_S, UJ_PER_J

# Lines that did not come in this time will not come.
PATIENCE_NS = 7 * 86_400 * NS_PER_S

OVERHEAD = ("EnergyOverhead_uj", "OverheadSystematic_uj", "OverheadRandom_uj", "OverheadJoules")
NONE = {
    **dict.fromkeys(OVERHEAD),
    "Carbon_g": None,
    "CarbonError_g": None,
    "CarbonOverhead_g": None,
    "Cost": None,
    "CostError": None,
    "CostOverhead": None,
    "Currency": None,
    **storagework.NONE,
}
COLUMNS = (*NONE, "Notes")


class Charges:
    """The site's shared channels and rates, read once a merge; before it changes anything, for
    rates that are not sound refuse it."""

    def __init__(self, config: Config):
        self._config = config
        channels, self._lost = shared.channels(config.record_dir)
        of_storage = [one for one in channels if (line := one.last_line()) and line.split == IO]
        self._channels = [one for one in channels if one not in of_storage]
        self._carbon_rate = rates.of(config.rates.carbon_g_per_kwh)
        self._price = rates.of(config.rates.price_per_kwh)
        self._now_ns = time.time_ns()
        self._storage = storagework.Storage(config.record_dir, of_storage, self._now_ns)
        self._asked = False
        self._bad: dict[shared.Channel, set[int]] = {}  # where lines begin that are not sound

    def of(self, row: dict, run: Run) -> dict:
        """COLUMNS, Notes where there are more; overhead is the job's alone, not its steps'."""
        found = dict(NONE)
        if row["Start_ns"] is None:
            return found
        if row["Step"] == "job" and (self._channels or self._lost):
            found.update(self._overhead(row, run))
        work, said = self._storage.of(row, run)
        found.update(work)
        if said:
            found["Notes"] = "; ".join(filter(None, [found.get("Notes", row["Notes"]), *said]))
        if row["ConsumedEnergy_uj"] is not None:
            found.update(self._carbon(row, found))
            found.update(self._cost(row, found))
        return found

    def may_grow(self, runs: list[Run]) -> bool:
        """Whether lines about the job may still come: then a later merge looks again."""
        ends = [a["end_ns"] for run in runs for r in run.records for a in r["accounts"]]
        end_ns = max(ends, default=0)
        if end_ns < self._now_ns - PATIENCE_NS:
            return False
        return (
            any(one.may_come for one in self._lost)
            or self._channels_may_grow(runs, end_ns)
            or self._storage.may_grow(end_ns, {n for r in runs for n in (*r.nodes(), *r.silent)})
            or any(rate.may_grow(end_ns) for rate in (self._carbon_rate, self._price) if rate)
        )

    def _channels_may_grow(self, runs: list[Run], end_ns: int) -> bool:
        names = {record["node"] for run in runs for record in run.records}
        return any(
            line.time_ns < end_ns and not names.isdisjoint(channel.nodes())
            for channel in self._channels
            if (line := channel.last_line())
        )

    # -- overhead --------------------------------------------------------------------------------

    def _overhead(self, row: dict, run: Run) -> dict:
        self._asked = True
        uses = [use for record in run.records if (use := _use(record))]
        parts, notes = [], [*filter(None, [row["Notes"]]), *(one.note for one in self._lost)]
        for channel in self._channels:
            shares = shared.Shares(channel, row["Start_ns"], row["End_ns"])
            concerned = [use for use in uses if use[0] in channel.nodes()]
            if not concerned:
                continue
            part, problems = _of_channel(channel, shares, concerned)
            notes += [*problems, *self._bad_lines(channel, shares)]
            if part.covered_ns:
                parts.append(part)
        found = shared.charged(parts, OVERHEAD) if parts else {}
        return {**found, "Notes": "; ".join(notes) or None}

    def _bad_lines(self, channel: shared.Channel, shares: shared.Shares) -> list[str]:
        """A note for the job."""
        count = len(shares.bad_lines)
        if count:
            self._bad.setdefault(channel, set()).update(shares.bad_lines)
        return [f"{channel.name}: unsound lines, bridged by neighbours: {count}"] if count else []

    def tell(self) -> None:
        """On stderr what is wrong with channels that jobs were asked of: of lines the first."""
        output.tell(one.said for one in self._lost if self._asked)
        for channel, bad in self._bad.items():
            more = len(bad) - 1
            others = f"; more of its lines that are not sound: {more}" if more else ""
            fix = "correct or remove them" if more else "correct or remove it"
            output.tell([f"{channel.wrong(min(bad))}: bridged by its neighbours{others}; {fix}"])
        self._storage.tell()

    # -- carbon and money ------------------------------------------------------------------------

    def _carbon(self, row: dict, found: dict) -> dict:
        mean = _mean(self._carbon_rate, row)
        if mean is None:
            return {}
        grams = row["ConsumedEnergy_uj"] / UJ_PER_KWH * mean
        of_energy = _interval_kwh(row) * mean
        of_factor = 2 * self._config.rates.carbon_relative_error * grams
        return {
            "Carbon_g": grams,
            "CarbonError_g": math.hypot(of_energy, of_factor),
            "CarbonOverhead_g": _times(found["EnergyOverhead_uj"], mean),
        }

    def _cost(self, row: dict, found: dict) -> dict:
        mean = _mean(self._price, row)
        if mean is None:
            return {}
        return {
            "Cost": row["ConsumedEnergy_uj"] / UJ_PER_KWH * mean,
            "CostError": abs(_interval_kwh(row) * mean),  # prices can be negative
            "CostOverhead": _times(found["EnergyOverhead_uj"], mean),
            "Currency": self._config.rates.currency,
        }


def _mean(rate: rates.Constant | rates.Series | None, row: dict) -> float | None:
    """Over the job's time: its power is taken for even, since records have no curve."""
    return rate.mean(row["Start_ns"], row["End_ns"]) if rate else None


def _interval_kwh(row: dict) -> float:
    return row["UncertaintyJoules"] * UJ_PER_J / UJ_PER_KWH


def _times(energy_uj: int | None, per_kwh: float) -> float | None:
    return None if energy_uj is None else energy_uj / UJ_PER_KWH * per_kwh


def _use(record: dict) -> tuple[str, int, int, int | None, int | None] | None:
    """Node, start, end, the job's CPUs there and all of the node's."""
    for account in record["accounts"]:
        if account["step"] == "job":
            times = account["start_ns"], account["end_ns"]
            return (record["node"], *times, account.get("cpus"), record.get("node_cpus"))
    return None


def _of_channel(channel, shares, uses) -> tuple[shared.Part, list[str]]:
    """One channel's part of all the job's nodes; what it does for one it does for all: linear."""
    parts, unknown, covered_ns, asked_ns, evenly_ns = [], [], 0, 0, 0
    for node, start_ns, end_ns, cpus, node_cpus in uses:
        asked_ns += end_ns - start_ns
        if cpus is None or not node_cpus:
            unknown.append(node)
            continue
        part = shares.part(node, start_ns, end_ns)
        covered_ns += part.covered_ns
        evenly_ns += part.evenly_ns
        cpus = min(cpus, node_cpus)
        parts.append(
            shared.Part(
                part.energy_uj * cpus // node_cpus,
                part.systematic_uj * cpus / node_cpus,
                part.random_uj * cpus / node_cpus,
            )
        )
    notes = []
    if evenly_ns:
        evenly_s, covered_s = evenly_ns / NS_PER_S, covered_ns / NS_PER_S
        notes.append(
            f"{channel.name}: {evenly_s:.1f} of {covered_s:.1f} node-seconds split equally: what "
            "each node used is not known"
        )
    if unknown:
        notes.append(f"{channel.name}: no overhead: records of {few(unknown)} lack node_cpus")
    elif covered_ns < asked_ns:
        lacking_s, asked_s = (asked_ns - covered_ns) / NS_PER_S, asked_ns / NS_PER_S
        notes.append(f"{channel.name}: {lacking_s:.1f} of {asked_s:.1f} node-seconds not covered")
    total = shared.Part(
        sum(part.energy_uj for part in parts),
        math.fsum(part.systematic_uj for part in parts),
        math.fsum(part.random_uj for part in parts),
        covered_ns,
    )
    return total, notes
