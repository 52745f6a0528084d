# `joulemark store prune`: its options; joulemark.accounting.prune does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

SUMMARY = "take jobs that ended long ago from the store, and keep their sums"
EPILOG = """\
Jobs that ended before the first day that is kept go, with their steps, their nodes' records
(record_dir/merged too) and profiles. What they used stays in `joulemark report usage` to the
microjoule, by day, user, account and partition; so do the corrections of their charges, which are
none of a later job of the same number. Records of theirs that still come are left out. A job of
which nobody knows when it ran stays, and so do files of jobs that the store never had. One who
needs the jobs themselves exports them first: `joulemark report jobs --all --steps`.
A store of several clusters is pruned as a whole, whichever's joulemark.yaml says so; only that
cluster's files go, the others' by their own `store prune`.
Back the store up: `joulemark merge --rebuild` into a new one does not know what was pruned.

examples:
  joulemark store prune --keep 5y --dry-run
  joulemark store prune --keep 5y
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How long to keep."""
    parser.add_argument(
        "--keep", required=True, metavar="TIME", help="jobs of this time stay: 5y, 18m, 400d"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say how many jobs would go")


def run(options: argparse.Namespace) -> int:
    """Prunes, and says what went."""
    from joulemark import config
    from joulemark.accounting import prune
    from joulemark.store.days import Zone

    site = config.load(for_merge=True)
    day = prune.first_kept(options.keep, Zone(site.timezone).today())
    if options.dry_run:
        print(f"{prune.count(site, day)} jobs of all clusters ended before {day}")
        return 0
    n_jobs, n_files = prune.run(site, day)
    print(
        f"pruned {n_jobs} jobs of all clusters that ended before {day}, and {n_files} files of "
        f"cluster {site.cluster}; their sums stay"
    )
    return 0
