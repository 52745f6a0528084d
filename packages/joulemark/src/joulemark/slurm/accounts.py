# Slurm's accounts: their tree and their limits, as sacctmgr tells and sets them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from joulemark.errors import UserError
from joulemark.slurm import command

ROOT = "root"  # above all others of a cluster
TELLS = "does slurmdbd run?"
SETS = "run this as a Slurm administrator"


def parents(cluster: str) -> dict[tuple[str, str], str]:
    """Of each (cluster, account) the account above it now, of a deleted one the last.

    cluster: one whose tree must be told."""
    rows = _rows("withdeleted", "format=Cluster,Account,User,ParentName")
    found = {(where, account): parent for where, account, user, parent in rows if not user}
    if (cluster, ROOT) not in found:
        raise UserError(
            f"sacctmgr show assoc: no account {ROOT} of cluster {cluster}: which accounts are "
            "below others is not known: does slurmdbd know the cluster, and may we see all "
            "accounts (PrivateData)?"
        )
    return found


def limits(cluster: str) -> dict[str, str]:
    """GrpJobs of each account; empty: none."""
    rows = _rows("where", f"cluster={cluster}", "format=Account,User,GrpJobs")
    return {account: limit for account, user, limit in rows if not user}


def set_limit(cluster: str, account: str, limit: str) -> None:
    """GrpJobs, which holds the accounts below, too."""
    where = ["where", f"cluster={cluster}", f"name={account}"]
    words = ("-i", "modify", "account", *where, "set", f"GrpJobs={limit}")
    command.answer(SETS, "sacctmgr", *words)


def _rows(*words: str) -> list[list[str]]:
    text = command.answer(TELLS, "sacctmgr", "-nP", "show", "assoc", *words)
    return [line.split("|") for line in text.splitlines()]
