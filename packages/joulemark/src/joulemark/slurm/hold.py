# Holds accounts whose budget is used up, by Slurm's own limit of running jobs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""GrpJobs=0 lets no job of the account begin: those that run go on, the others wait with the
reason AssocGrpJobsLimit. Slurm keeps limits where AccountingStorageEnforce has `limits`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from joulemark.errors import UserError
from joulemark.store import holds
from joulemark.store.session import Session

HELD, NO_LIMIT = "0", "-1"


def settle(
    session: Session, cluster: str, over: set[str], tell: Callable[[str], None], dry: bool = False
) -> None:
    """Holds those that are over and gives the others back what they had; tells each.

    What was there is kept before it is changed: who is cut off in between does both again.
    """
    held, limits = holds.of_cluster(session, cluster), _limits(cluster)
    for account in sorted(over - limits.keys()):
        tell(f"{account}: over its budget, but Slurm has no such account on {cluster}")
    new = sorted((over & limits.keys()) - held.keys())
    again = sorted(one for one in over & held.keys() if limits.get(one, HELD) != HELD)
    for account in [*new, *again]:
        tell(f"{account}: over its budget: held")
    if not dry:
        for account in new:
            holds.add(session, cluster, account, limits[account] or NO_LIMIT)
        session.commit()
        session.begin()
        for account in [*new, *again]:
            _set(cluster, account, HELD)
    for account in sorted(held.keys() - over):
        is_ours = limits.get(account) == HELD
        tell(f"{account}: within its budget: {'released' if is_ours else 'its limit is not ours'}")
        if not dry:
            if is_ours:
                _set(cluster, account, held[account])
            holds.remove(session, cluster, account)


def _limits(cluster: str) -> dict[str, str]:
    """GrpJobs of each account; empty: none."""
    text = _sacctmgr(
        "-nP", "show", "assoc", "where", f"cluster={cluster}", "format=Account,User,GrpJobs"
    )
    rows = (line.split("|") for line in text.splitlines())
    return {account: limit for account, user, limit in rows if not user}


def _set(cluster: str, account: str, limit: str) -> None:
    where = ["where", f"cluster={cluster}", f"name={account}"]
    _sacctmgr("-i", "modify", "account", *where, "set", f"GrpJobs={limit}")


def _sacctmgr(*words: str) -> str:
    try:
        done = subprocess.run(
            ["sacctmgr", *words], capture_output=True, text=True, errors="replace"
        )
    except FileNotFoundError:
        raise UserError("sacctmgr: not found on PATH: run this on slurmctld's machine") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise UserError(f"sacctmgr {' '.join(words)}: {said}: run this as a Slurm administrator")
    return done.stdout
