# `joulemark report`: from cooked files and from the store to tables and plots.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import sys
from pathlib import Path

from joulemark import config, cooked, output, stats, store, table
from joulemark.errors import UserError


def run_table(options) -> int:
    """Prints the tables of one kernel or benchmark."""
    series = _series(options)
    _write(_formatted(series, options), options.out)
    return 0


def run_usage(options) -> int:
    """Prints sums over the store's jobs; draws them where a plot is asked for."""
    from joulemark import usage
    from joulemark.store.usage import uses
    from joulemark.store.zones import Zones

    if options.plot:
        output.check_figure("--plot", options.plot)
    period = next((name for name in ("day", "month") if name in options.by), None)
    days = usage.days(options.since, options.until)
    with store.reading(config.load().store) as session:
        found = uses(session, period, *days)
        zones = Zones(session)
    groups = usage.group(found, options.by)
    if options.format in output.FORMATS:
        output.write([usage.as_records(groups)], options.format, options.out)
    else:
        has_days = period or days != (None, None)
        names = {zones[one.cluster].name for one in found} if has_days else ()
        _lay_out([usage.as_text(groups, options.by)], usage.notes(groups, names), options)
    if options.plot:
        from joulemark.plots import usage as bars

        bars.draw(groups, options.by, options.plot)
    return 0


def run_jobs(options) -> int:
    """Prints the greatest jobs, or writes all of them batch by batch."""
    from joulemark import joblist, usage
    from joulemark.store.usage import all_rows, top_jobs

    days = usage.days(options.since, options.until)
    if options.all and options.format not in output.FORMATS:
        raise UserError(f"--all: it is for the formats {', '.join(output.FORMATS)}")
    with store.reading(config.load().store) as session:
        if options.all:
            output.write(all_rows(session, *days, options.steps), options.format, options.out)
            return 0
        rows = top_jobs(session, options.top, *days)
    if options.format in output.FORMATS:
        output.write([rows], options.format, options.out)
    else:
        _lay_out([joblist.as_text(rows)], joblist.notes(rows), options)
    return 0


def run_scaling(options) -> int:
    """Prints series over workers; draws them where a folder for figures is given."""
    from joulemark import scaling

    found = scaling.find(options)
    if options.format in output.FORMATS:
        output.write([scaling.records(found)], options.format, options.out)
    else:
        _lay_out([scaling.as_text(one) for one in found], scaling.notes(found), options)
    if options.plot:
        from joulemark.plots import chart
        from joulemark.plots.scaling import charts

        chart.draw_all(charts(found, options.kernel), options, "plot")
    return 0


def _lay_out(tables: list[table.Text], notes: list[str], options) -> None:
    _write(table.written(tables, notes, options), options.out)


def _series(options) -> list[stats.Series]:
    series = stats.series_of(cooked.load(options.sources), options.kernel)
    series = stats.best_of(series) if options.best else series
    if options.prototypes:
        from joulemark import compare

        series += compare.beside(series, options.kernel, options.prototypes)
    return series


def _formatted(series: list[stats.Series], options) -> str:
    if options.format in ("csv", "json"):
        if options.compare:
            raise UserError("--compare: it is for the formats terminal and markdown")
        records = table.as_records(series)
        return table.as_csv(records) if options.format == "csv" else table.as_json(records)
    tables = [table.lay_out(one, options.prefixes) for one in series]
    notes = [table.LEGEND]
    if any(one.estimated for one in series):
        notes.append(table.LEGEND_ESTIMATED)
    if options.compare:
        tables += table.comparison(series, *options.compare)
    notes += table.summary(series)
    return table.written(tables, notes, options)


def _write(text: str, out: str | None) -> None:
    if out is None:
        sys.stdout.write(text)
        return
    try:
        Path(out).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror}") from None


def run_plot(options) -> int:
    """Draws three figures for each kernel and prints their paths."""
    from joulemark.plots import chart, kernels

    chart.draw_all(kernels.charts(_series(options), options.peak), options, "out")
    return 0
