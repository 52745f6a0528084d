# `joulemark budget`: holds accounts that have used up their energy, releases those that have not.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

SUMMARY = "hold accounts that have used up their energy budget, and release them"
EPILOG = """\
Slurm's own limit of energy, GrpTRESMins=energy=N, holds nobody: the usage that it is compared with
leaves energy out (priority/multifactor of 22.05 to 26.05). This command compares the store's sums
with the file that `budgets:` of joulemark.yaml names, a line account,kWh,from,until each, and sets
GrpJobs=0 (sacctmgr) for an account whose budget of today is used up: its jobs that run go on, the
others wait with the reason AssocGrpJobsLimit. Jobs of accounts below it are charged to it, too,
and wait with it. The tree is Slurm's of now: an account that moved, or was deleted, counts where
it is, or was last, with all that it used; one that Slurm does not know counts for its own budget
alone, and one that the store does not know either is named on stderr. What is said of a budget of
which the energy of some jobs is not known says so, `(3 of 4 jobs)`. Once the account has a
budget again, it gets the limit back that it had. Slurm keeps limits where slurm.conf has
AccountingStorageEnforce=limits (or safe); without it nothing is done. Run it from cron as a Slurm
administrator who may write the store, on each cluster that has it: used is what ran on all of
them, held are the jobs of one. `joulemark report usage --budget` only shows.
Exit: 0; 1 where an account is over its budget; 2 where Slurm keeps no limits.

examples:
  joulemark budget --dry-run
  */10 * * * * slurm joulemark budget --quiet          in /etc/cron.d
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to do of it."""
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("--quiet", action="store_true", help="say nothing of what is done")


def run(options: argparse.Namespace) -> int:
    """Holds and releases."""
    from joulemark import config, output, progress, store
    from joulemark.accounting import budget
    from joulemark.slurm import accounts, hold
    from joulemark.store.days import Zone

    site = config.load(for_merge=True)
    known, parents = budget.read(site.budgets), accounts.parents(site.cluster)
    today = Zone(site.timezone).today()
    hold.check()
    with store.writing(site.store, may_make=False) as session:
        with progress.shown("summing jobs"):
            states = budget.states(session, known, parents, today)
        over = budget.over(states, today)
        output.tell([*budget.unknown(states, today), *budget.unmeasured(states, today)])
        tell = (lambda line: None) if options.quiet else print
        partial = budget.partial(states, today)
        hold.settle(session, site.cluster, over, partial, tell, options.dry_run)
    return 1 if over else 0
