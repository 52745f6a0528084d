# What `joulemark report html` shows: usage, the top jobs, nodes, profiles, benchmarks.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace

from joulemark.accounting import bynode, joblist, usage
from joulemark.accounting.job import used
from joulemark.bench.cooked import Measurement
from joulemark.bench.stats import Value
from joulemark.errors import UsageError, UserError
from joulemark.html import charts
from joulemark.html.charts import Bar, Look
from joulemark.html.page import Section, table
from joulemark.layout import ESTIMATED, LEGEND_ESTIMATED
from joulemark.plots.model import Axis, Chart, Line
from joulemark.slurm.rights import OF_EVERYBODY, Rights
from joulemark.store.node_sums import node_uses
from joulemark.store.session import Session
from joulemark.store.sums import Chosen, top_jobs, uses
from joulemark.store.zones import Zones

BY = ("cluster", "user", "account", "partition", "month")
ENERGY = Axis("Energy", "J")
BARS_MOST, CURVES_MOST = 20, 7  # of a figure
STEPS = 200  # of a profile's curve, each with its mean power


def of_store(session: Session, site, top: int, chosen: Chosen, shown: Rights) -> list[Section]:
    """The sections of a site's store; chosen: of which days and clusters."""
    of_usage = _usage(session, chosen._replace(whose=shown.whose("usage")))
    listed = chosen._replace(whose=shown.whose("jobs"))
    rows = top_jobs(session, top, listed)
    of_jobs = _jobs(rows, chosen, joblist.unlisted(session, listed))
    found = (of_usage, of_jobs, _nodes(session, chosen, shown), _profiles(site, rows))
    return [section for sections in found for section in sections]


def _is_bounded(chosen: Chosen) -> bool:
    return (chosen.first_day, chosen.end_day) != (None, None)


# -- usage ---------------------------------------------------------------------------------------


def _usage(session: Session, chosen: Chosen) -> Iterator[Section]:
    of_all, of_months = (uses(session, period, chosen) for period in (None, "month"))
    left_out = usage.left_out(session, chosen)
    if not of_all:
        notes = ["There is no record of a job in this time.", *left_out]
        yield Section("usage", "Usage", [], notes)
        return
    zones = Zones(session)
    parts, groups = [], []
    for by in BY:
        found = usage.group(of_months if by == "month" else of_all, [by])
        parts += [*_bars_of(found, by), table(usage.as_text(found, [by]))]
        groups += found
    names = set(map(zones.told, {one.cluster for one in of_months}))
    yield Section("usage", "Usage", parts, [*usage.notes(groups, names), *left_out])


def _bars_of(found: list[usage.Group], by: str) -> Iterator[str]:
    """The greatest, or the latest months."""
    known = [one for one in found if one.energy_uj is not None]
    shown = known[-BARS_MOST:] if by == "month" else known[:BARS_MOST]
    if len(shown) > 1:
        which = "latest" if by == "month" else "greatest"
        yield _bars(f"Energy by {by}", shown, usage.bar_notes(found, shown, which))


def _bars(title: str, groups: list[usage.Group], notes: list[str]) -> str:
    bars = [
        Bar(
            " ".join(one.keys.values()),
            one.energy_j,
            one.energy_error_j,
            bool(one.estimated_jobs),
            usage.bar_marks(one),
        )
        for one in groups
    ]
    return charts.bars(title, ENERGY, bars, notes)


# -- jobs, nodes and profiles --------------------------------------------------------------


def _jobs(rows: list[dict], chosen: Chosen, unlisted: list[str]) -> Iterator[Section]:
    if not rows:
        return
    began = ["Jobs that began in this time, whole."] if _is_bounded(chosen) else []
    text = joblist.as_text(rows)
    groups = [
        replace(used([row]), keys=dict(zip(text.heads, cells[:2])))
        for row, (_, cells) in zip(rows, text.body)
    ]
    shown = groups[:BARS_MOST]
    notes = usage.bar_notes(groups, shown, "greatest")
    parts = [_bars("Jobs by energy", shown, notes), table(text)]
    yield Section("jobs", "Top jobs", parts, [*joblist.notes(rows), *began, *unlisted])


def _nodes(session: Session, chosen: Chosen, shown: Rights) -> Iterator[Section]:
    if shown.whose("usage"):
        yield Section("nodes", "Nodes", [], [f"Sums by node {OF_EVERYBODY}."])
        return
    found = bynode.by_node(node_uses(session, chosen))
    if found:
        ended = ["Jobs that ended in this time, whole."] if _is_bounded(chosen) else []
        parts = [*_bars_of(bynode.groups(found), "node"), table(bynode.as_text(found))]
        yield Section("nodes", "Nodes", parts, [*bynode.notes(found), *ended])


def _profiles(site, rows: list[dict]) -> Iterator[Section]:
    """What cannot be read is said."""
    from joulemark.profile import hdf5, text
    from joulemark.profile import rows as profile

    parts, notes, options = [], [], argparse.Namespace(label=None, node=None, channel=None)
    for cluster, job in dict.fromkeys((row["Cluster"], row["Job"]) for row in rows):
        if os.path.isfile(hdf5.path_of(site, cluster, job)):
            try:
                if found := profile.rows_of(replace(site, cluster=cluster), job, options, 0):
                    parts += [_curves(job, found), table(text.as_table(job, found))]
                    notes += [LEGEND_ESTIMATED] if any(one.estimated for one in found) else []
            except UserError as error:
                notes.append(str(error))
    if parts or notes:
        yield Section("profiles", "Profiles", parts, list(dict.fromkeys([text.LEGEND, *notes])))


def _curves(job: int, found: list) -> str:
    shown = found[:CURVES_MOST]
    of = (f"the first {len(shown)} of {len(found)} nodes",) if len(shown) < len(found) else ()
    notes = (*of, ESTIMATED) if any(one.estimated for one in shown) else of
    # In seconds, as the table below it.
    axes = (Axis("Time [s]", from_zero_to=0), Axis("Power", "W", from_zero_to=0))
    lines = [Line(one.label, list(_steps(one))) for one in shown]
    what = Chart(f"Raw id {job}: power over time", *axes, notes)
    return charts.chart(what, lines, charts.looks([lines]), has_marks=False)


def _steps(row) -> Iterator[tuple[Value, Value]]:
    step_s = row.seconds / STEPS
    for begin_s, end_s in ((step * step_s, (step + 1) * step_s) for step in range(STEPS)):
        mean_w = (row.energy_until(end_s) - row.energy_until(begin_s)) / step_s
        yield from ((Value(at_s), Value(mean_w)) for at_s in (begin_s, end_s))


# -- benchmarks ----------------------------------------------------------------------------------


def of_benchmarks(sources: list[str]) -> list[Section]:
    """Cooked results beside what was published, and over nodes, ranks or threads."""
    from joulemark.bench import compare, cooked, scaling
    from joulemark.plots import compare as of_sides
    from joulemark.plots import scaling as of_workers

    measured = cooked.load(sources)
    if not measured:
        raise UsageError(f"--from {' '.join(sources)}: no line of a benchmark's results is sound")
    compared, scaled = [], []
    for options in _options(measured):
        groups, _ = compare.families(options, measured)
        compared.append((groups, list(of_sides.charts(groups))))
        found, why = scaling.find(options, measured)
        if not why:
            scaled.append((found, list(of_workers.charts(found, options.kernel))))
    figures = [figure for _, figures in (*compared, *scaled) for figure in figures]
    look_of = charts.looks(lines for _, _, lines in figures)
    return [*_compared(compared, look_of), *_scaled(scaled, look_of)]


def _options(measured: list[Measurement]) -> Iterator[argparse.Namespace]:
    """As `joulemark compare KERNEL` and `report scaling KERNEL` have them, of each benchmark."""
    from joulemark.bench import published

    for name in dict.fromkeys(one.benchmark for one in measured):
        yield argparse.Namespace(
            **{"kernel": name, "prototypes": list(published.prototypes()), "best": False},
            **{"peak": None, "peak_bandwidth": None, "peaks": "auto", "kind": "auto"},
        )


def _compared(compared: list[tuple], look_of: dict[str, Look]) -> Iterator[Section]:
    """compared: each benchmark's sides by kernel, and their figures."""
    from joulemark.bench import compare

    parts, sides = [], []
    for groups, figures in compared:
        parts += [charts.chart(*each, look_of) for _, *each in figures]
        for kernel, found in groups.items():
            parts += [table(text) for text in compare.tables(kernel, found)]
            sides += found
    yield Section("benchmarks", "Benchmarks", parts, compare.notes(sides))


def _scaled(scaled: list[tuple], look_of: dict[str, Look]) -> Iterator[Section]:
    """scaled: each benchmark's scalings, and their figures."""
    from joulemark.bench import scaling

    parts, shown = [], []
    for found, figures in scaled:
        parts += [charts.chart(*each, look_of) for _, *each in figures]
        parts += [table(scaling.as_text(one)) for one in found]
        shown += found
    if shown:
        yield Section("scaling", "Scaling", parts, scaling.notes(shown))
