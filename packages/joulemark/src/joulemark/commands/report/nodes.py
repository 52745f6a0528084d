# `joulemark report nodes`: its options; joulemark.accounting.bynode and the database do the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands import arguments

SUMMARY = "compare nodes by what jobs used on them"
EPILOG = """\
From the site's store: of each node the energy that all jobs were charged there, with its
uncertainty (k=2), and the mean power of a job: energy over the jobs' time, where two jobs at once
have two seconds in a second. Among nodes that jobs have alone, one that draws more than its
likes at the same work, or less because it runs slowly, stands out; where jobs share nodes, one
that had fewer at once does, too. What a node draws, `joulemark top --nodes` says; what no job used
is in no record: ask `joulemarkctl books` on the node. Who is shown his own sums alone (`joulemark
report usage --help`) is refused.

examples:
  joulemark report nodes
  joulemark report nodes --since 2026-11-01 --format csv --out nodes.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """From when to when, of which clusters, and how to print."""
    arguments.add_clusters(parser, "nodes of these clusters (default: all)")
    parser.add_argument("--since", metavar="DAY", help="jobs that ended on this day or later")
    parser.add_argument("--until", metavar="DAY", help="jobs that ended on this day or earlier")
    output.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints sums over the store's node records."""
    from joulemark import config, layout, progress, store
    from joulemark.accounting import bynode, usage
    from joulemark.slurm import rights
    from joulemark.store.node_sums import node_uses
    from joulemark.store.sums import Chosen

    days = usage.days(options.since, options.until)
    site = config.load()
    rights.of_caller(site).refuse("usage", "sums by node")
    with progress.shown("summing jobs"), store.reading(site.store) as session:
        clusters = usage.chosen_clusters(session, options.clusters)
        found = bynode.by_node(node_uses(session, Chosen(*days, clusters)))
    tables, notes = [bynode.as_text(found)], bynode.notes(found)
    layout.show(options, bynode.as_records(found), tables, notes, bynode.columns())
    return 0
