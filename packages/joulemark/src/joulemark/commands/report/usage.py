# `joulemark report usage`: its options; joulemark.accounting.usage and the database do the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands import arguments
from joulemark.errors import UsageError

SUMMARY = "sum jobs' energy, carbon and cost by user, account, partition or time"
EPILOG = """\
From the site's store. Energy has an uncertainty (k=2): the systematic parts of jobs that the same
instruments measured add up, the random ones average out. Overhead is the jobs' part of shared
channels (cooling, switches), Storage what file servers drew for their reads, writes and metadata
operations; they are in no other column. Carbon and cost are of Energy, by the factors that
joulemark.yaml named when the jobs were merged. Days are those of joulemark.yaml's
timezone (UTC without); a job of several is counted in each, its energy split by time. One of which
no node told has no time and no energy: of some days a note, or stderr, says how many there are.
A sum that lacks jobs says so, `720 (2 of 3)`: of one there was no factor; so does a bar's name.
In csv, json and parquet energy_jobs, overhead_jobs, storage_jobs, work_jobs (bytes and
operations), carbon_jobs and cost_jobs say of how many of `jobs` a sum is.
csv, json and parquet hold joules, whole microjoules (_uj), grams and money; null: not known. Where
the price changed its currency, `cost` is of those of one currency alone, and each currency has a
column of its own, too (cost_EUR, cost_CHF), with the jobs that it is of (cost_jobs_EUR).
Where slurmdbd's PrivateData has `usage`, who is no operator is shown sums of his own jobs and of
those of accounts that he coordinates; where Slurm cannot be asked, of his own. stderr says so. Of
budgets he is shown those of accounts that he coordinates.
--budget asks sacctmgr for the tree of accounts: see `joulemark budget --help`.

examples:
  joulemark report usage
  joulemark report usage --by account,month --since 2026-01-01 --format csv --out usage.csv
  joulemark report usage --budget --levels 50,80,100
  joulemark report usage --by day --since 2026-11-01 --until 2026-11-30 --plot november.png
"""
LEVELS = [0.8, 1.0]
KEYS = ("cluster", "user", "account", "partition", "month", "day")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """By what, from when to when, and how to print."""
    parser.add_argument(
        "--by",
        type=_keys,
        metavar="KEYS",
        help=f"one or more of {','.join(KEYS)} (default: user)",
    )
    arguments.add_clusters(parser)
    parser.add_argument(
        "--budget",
        action="store_true",
        help="instead: what accounts have used of the budgets that joulemark.yaml names",
    )
    parser.add_argument(
        "--levels",
        type=_levels,
        metavar="PERCENT,...",
        help="with --budget: warn on stderr where so much is used (default: 80,100)",
    )
    parser.add_argument("--since", metavar="DAY", help="what was used on this day and later")
    parser.add_argument("--until", metavar="DAY", help="what was used on this day and earlier")
    output.add_arguments(parser)
    parser.add_argument("--plot", metavar="FILE", help="bars with error bars: .png, .svg, .pdf")


def _keys(text: str) -> list[str]:
    keys = text.split(",")
    for key in keys:
        if key not in KEYS:
            raise argparse.ArgumentTypeError(f"'{key}' is not one of {', '.join(KEYS)}")
    return list(dict.fromkeys(keys))


def _levels(text: str) -> list[float]:
    what = "a level in percent, as in 80,100"
    return [
        arguments.number(one, lambda level: 0 < level < 1e4, what, "%") / 100
        for one in text.split(",")
    ]


def run(options: argparse.Namespace) -> int:
    """Prints sums over the store's jobs; draws them where a plot is asked for."""
    _check(options)
    if options.budget:
        return _run_budget(options)
    from joulemark import config, layout, progress, store
    from joulemark.accounting import usage
    from joulemark.slurm import rights
    from joulemark.store.sums import Chosen, uses
    from joulemark.store.zones import Zones

    if options.plot:
        output.check_figure("--plot", options.plot)
    by = options.by or ["user"]
    period = next((name for name in ("day", "month") if name in by), None)
    days = usage.days(options.since, options.until)
    site = config.load()
    shown = rights.of_caller(site)
    with progress.shown("summing jobs"), store.reading(site.store) as session:
        clusters = usage.chosen_clusters(session, options.clusters)
        chosen = Chosen(*days, clusters, shown.whose("usage"))
        found, left_out = uses(session, period, chosen), usage.left_out(session, chosen)
        has_days = period or days != (None, None)
        zones, dated = Zones(session), {one.cluster for one in found} if has_days else set()
        names = set(map(zones.told, dated))
    shown.tell("usage")
    groups = usage.group(found, by)
    if site.cluster in dated:
        output.tell(_of_another_zone(site, zones[site.cluster].name))
    tables, notes = (
        (usage.as_text(one, by) for one in [groups]),
        usage.notes(groups, names),
    )
    layout.show(options, usage.as_records(groups), tables, notes, usage.columns(by), left_out)
    if options.plot:
        from joulemark.plots import draw_bars

        draw_bars(groups, by, options.plot, left_out)
    return 0


def _of_another_zone(site, name: str) -> list[str]:
    """Where no merge has put the days into the site's zone yet, or none can."""
    if name == site.timezone:
        return []
    return [
        f"days of {site.cluster} are those of {name}, and joulemark.yaml has timezone: "
        f"{site.timezone}: the next merge puts them right, or refuses a zone that is not known"
    ]


def _check(options: argparse.Namespace) -> None:
    """Nothing that was asked for is left out in silence."""
    if options.levels and not options.budget:
        raise UsageError("--levels: goes with --budget")
    for name in ("by", "clusters", "since", "until", "plot"):
        if options.budget and getattr(options, name) is not None:
            raise UsageError(f"--{name}: is of sums, not of --budget: leave one of them away")


def _run_budget(options: argparse.Namespace) -> int:
    from joulemark import config, layout, progress, store
    from joulemark.accounting import budget
    from joulemark.slurm import accounts, rights
    from joulemark.store.days import Zone

    site = config.load(for_merge=True)
    known, today = budget.read(site.budgets), Zone(site.timezone).today()
    shown = rights.of_caller(site)
    if whose := shown.whose("usage"):
        known = [one for one in known if one.account in whose.accounts]
        if not known:
            shown.refuse("usage", "accounts' budgets")
        coordinated = ", ".join(whose.accounts)
        whose_budgets = f"budgets are those of accounts that you coordinate ({coordinated}) alone"
        output.tell([f"{whose_budgets}: {shown.why}"])
    with progress.shown("summing jobs"), store.reading(site.store) as session:
        found = budget.states(session, known, accounts.parents(site.cluster), today)
    tables, notes = [budget.as_text(found)], budget.notes(found)
    layout.show(options, budget.as_records(found), tables, notes)
    levels = options.levels or LEVELS
    output.tell([*budget.unknown(found, today), *budget.warnings(found, levels, today)])
    return 0
