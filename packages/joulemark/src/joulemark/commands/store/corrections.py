# `joulemark store corrections`: who corrected which job's charge, when and why.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands import arguments

SUMMARY = "list all corrections of jobs' charges: who, when, why"
EPILOG = """\
Of several of one job the last one holds. Nothing takes a correction from the list: one that was
wrong is corrected by another (`joulemark store correct JOB --charge 100% --why ...`). Those of
jobs that `report jobs` does not show you are left out.

example:
  joulemark store corrections --format csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of which clusters, and how to print."""
    arguments.add_clusters(parser)
    output.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the list."""
    from joulemark import config, layout, store
    from joulemark.accounting import correction, usage
    from joulemark.slurm import rights
    from joulemark.store import corrections

    site = config.load()
    shown = rights.of_caller(site)
    with store.reading(site.store) as session:
        clusters = usage.chosen_clusters(session, options.clusters)
        found = corrections.all_of(session, shown.whose("jobs"))
    found = [one for one in found if not clusters or one.cluster in clusters]
    shown.tell("jobs")
    tables = [correction.as_text(found)]
    layout.show(options, correction.as_records(found), tables, [], correction.columns())
    return 0
