# `joulemark report html`: its options; joulemark.html makes the page.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark.commands import arguments
from joulemark.commands.report import sources
from joulemark.commands.report.jobs import count

SUMMARY = "write one page for a browser or paper: usage, top jobs, nodes, profiles, benchmarks"
EPILOG = """\
One file that needs no network and no other file: usage by cluster, user, account, partition and
month, the jobs that used the most energy, the profiles of those that have one, as far as who runs
this may read them, and nodes as `joulemark report nodes` compares them. With --from benchmarks'
cooked results, too, beside the published prototypes (as `joulemark compare` has them) and, where a
size was measured with several counts of nodes, ranks or threads, `report scaling`. Tables, marks
and legends are those of these commands. A click on a column's head sorts; all is there without
scripts. Whose jobs and sums are shown is as by `report jobs`, `report usage` and `report nodes`.

examples:
  joulemark report html --out report.html
  joulemark report html --since 2026-11-01 --until 2026-11-30 --title November --out 2026-11.html
  joulemark report html --from results/ --top 50 --out report.html
  joulemark report html -M north,south --out report.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of which clusters, from when to when, how many jobs, and which results."""
    arguments.add_clusters(parser)
    parser.add_argument("--since", metavar="DAY", help="what was used on this day and later")
    parser.add_argument("--until", metavar="DAY", help="what was used on this day and earlier")
    parser.add_argument(
        "--top", type=count, default=20, metavar="N", help="how many jobs (default: 20)"
    )
    sources.add_from(parser, "cooked files of benchmarks", "none")
    parser.add_argument("--title", metavar="TEXT", help="of the page (default: Energy of CLUSTER)")
    parser.add_argument("--out", metavar="FILE", help="write there (default: stdout)")


def run(options: argparse.Namespace) -> int:
    """Writes the page."""
    import time

    from joulemark import __version__, config, output, progress, store
    from joulemark.accounting import usage
    from joulemark.html import page, report
    from joulemark.slurm import rights
    from joulemark.store.sums import Chosen

    output.check_page("--out", options.out)
    site, days = config.load(), usage.days(options.since, options.until)
    sections = report.of_benchmarks(options.sources) if options.sources else []
    shown = rights.of_caller(site)
    with progress.shown("summing jobs"), store.reading(site.store) as session:
        clusters = usage.chosen_clusters(session, options.clusters)
        of_store = report.of_store(session, site, options.top, Chosen(*days, clusters), shown)
        sections = [*of_store, *sections]
    span = [
        f"{word} {day}" for word, day in (("from", options.since), ("to", options.until)) if day
    ]
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    about = f"{' '.join(span) or 'All days'}. Made {made} by joulemark {__version__}."
    if note := shown.note(*rights.KINDS):
        shown.tell(*rights.KINDS)
        about += f" {note[0].upper()}{note[1:]}."
    title = options.title or f"Energy of {', '.join(clusters) or site.cluster}"
    output.write_text(page.document(title, about, sections), options.out)
    return 0
