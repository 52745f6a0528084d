# Holds accounts whose budget is used up, by Slurm's own limit of running jobs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""GrpJobs=0 lets no job of the account or of one below it begin: those that run go on, the others
wait with the reason AssocGrpJobsLimit. Slurm keeps limits where AccountingStorageEnforce has
`limits`, which `safe` brings, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from joulemark.errors import UsageError
from joulemark.slurm import accounts, command, configuration
from joulemark.store import holds
from joulemark.store.session import Session

HELD, NO_LIMIT = "0", "-1"


def check() -> None:
    """Refuses a Slurm that holds nobody by a limit."""
    said = command.answer("does slurmctld run?", "scontrol", "show", "config")
    enforced = configuration.keys(said).get("accountingstorageenforce", "")
    if "limits" not in configuration.words(enforced):
        raise UsageError(
            f"slurm.conf: AccountingStorageEnforce={enforced}: Slurm would hold nobody: set it "
            "to limits, which refuses jobs of users that sacctmgr does not know, and restart "
            "slurmctld"
        )


def settle(
    session: Session,
    cluster: str,
    over: set[str],
    partial: Mapping[str, str],
    tell: Callable[[str], None],
    dry: bool = False,
) -> None:
    """Holds those that are over and gives the others back what they had; tells each, and what its
    sum lacks: `partial`, by account.

    What was there is kept before it is changed: who is cut off in between does both again.
    """
    held, limits = holds.of_cluster(session, cluster), accounts.limits(cluster)
    for account in sorted(over - limits.keys()):
        why = f"but Slurm has no such account on {cluster}"
        tell(f"{account}: over its budget{partial.get(account, '')}, {why}")
    new = sorted((over & limits.keys()) - held.keys())
    again = sorted(one for one in over & held.keys() if limits.get(one, HELD) != HELD)
    for account in [*new, *again]:
        tell(f"{account}: over its budget{partial.get(account, '')}: held")
    if not dry:
        for account in [*new, *again]:
            holds.add(session, cluster, account, limits[account] or NO_LIMIT)
        session.commit()
        session.begin()
        for account in [*new, *again]:
            accounts.set_limit(cluster, account, HELD)
    for account in sorted(held.keys() - over):
        is_ours = limits.get(account) == HELD
        what = "released" if is_ours else "its limit is not ours"
        tell(f"{account}: within its budget{partial.get(account, '')}: {what}")
        if not dry:
            if is_ours:
                accounts.set_limit(cluster, account, held[account])
            holds.remove(session, cluster, account)
