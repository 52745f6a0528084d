# Whose jobs and sums Slurm shows the caller: the store knows no users, slurmdbd does.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""As slurmdbd does it itself. Where its PrivateData has `jobs`, or `usage`, it shows all to root,
SlurmUser, operators and administrators, and others what is theirs or of an account that they
coordinate (not with DisableCoordDBD). Who owns the store's file, or its password's, has all by
other means."""

from __future__ import annotations

import os
import pwd
from collections.abc import Collection
from dataclasses import dataclass

from joulemark import output, progress
from joulemark.config import Config
from joulemark.errors import UserError
from joulemark.slurm import command, configuration
from joulemark.store.place import Place
from joulemark.store.whose import Whose

KINDS = {"jobs": "listed", "usage": "summed"}  # of PrivateData: what we do with them
SEE_ALL = ("Operator", "Administrator")
OF_EVERYBODY = "are of everybody's jobs, which you are not shown"
TELLS = "does slurmdbd run?"


@dataclass(frozen=True)
class Rights:
    """The caller's; of the kinds in `hidden` he is shown his own alone."""

    own: Whose
    hidden: Collection[str] = ()
    why: str = ""

    def whose(self, kind: str) -> Whose | None:
        """Whose jobs he is shown of a kind; None: everybody's."""
        return self.own if kind in self.hidden else None

    def note(self, *kinds: str) -> str:
        """What those who read these kinds must know; empty: nothing."""
        done = [KINDS[kind] for kind in kinds if kind in self.hidden]
        if not done:
            return ""
        coordinated = ", ".join(self.own.accounts)
        accounts = f" and those of accounts that you coordinate ({coordinated})"
        jobs = f"your own jobs{accounts if coordinated else ''}"
        return f"{' and '.join(done)} are {jobs} alone: {self.why}"

    def refuse(self, kind: str, what: str) -> None:
        """What cannot be of his own alone, where he is shown no more."""
        if kind in self.hidden:
            raise UserError(f"{what} {OF_EVERYBODY}: {self.why}")

    def tell(self, *kinds: str) -> None:
        """That, on stderr."""
        if note := self.note(*kinds):
            output.tell([note])


def of_caller(site: Config) -> Rights:
    """Of who runs this; where Slurm does not tell, those of a user without any more."""
    uid = os.geteuid()
    own = Whose(site.cluster, uid, _name(uid))
    if uid == 0 or _owns(uid, site.store):
        return Rights(own)
    try:
        with progress.shown("asking slurmdbd"):
            conf = _configuration()
            hidden = _hidden_from(uid, conf)
            level, accounts = _user(own) if hidden else ("", ())
        if level in SEE_ALL:
            return Rights(own)
        _check(conf)
    except UserError as error:
        return Rights(own, KINDS, f"whose else Slurm shows you is not known: {error}")
    if conf.get("disablecoorddbd", "").lower() == "yes":  # from 24.11 on
        accounts = ()
    why = f"slurmdbd.conf has PrivateData={','.join(hidden)}"
    return Rights(own._replace(accounts=accounts), hidden, why)


def _name(uid: int) -> str | None:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


def _owns(uid: int, place: Place) -> bool:
    path = place.path or place.password_file
    try:
        return path is not None and path.stat().st_uid == uid
    except OSError:  # the store's own to say
        return False


def _configuration() -> dict[str, str]:
    return configuration.of_slurmdbd(command.answer(TELLS, "sacctmgr", "show", "configuration"))


def _check(conf: dict[str, str]) -> None:
    if "privatedata" not in conf:
        raise UserError("sacctmgr show configuration: slurmdbd's PrivateData is not there")


def _hidden_from(uid: int, conf: dict[str, str]) -> list[str]:
    """The kinds that slurmdbd hides from who is no operator, or may hide."""
    if "privatedata" not in conf:
        return list(KINDS)
    if conf.get("slurmuser", "").endswith(f"({uid})"):
        return []
    private = configuration.words(conf["privatedata"])
    return [kind for kind in KINDS if private & {kind, "all"}]


def _user(one: Whose) -> tuple[str, tuple[str, ...]]:
    """A user's AdminLevel, and the accounts that he coordinates, those below them, too."""
    if one.user is None:
        raise UserError(f"uid {one.uid} has no name on this machine")
    columns = "format=AdminLevel,Coordinators"
    words = ("-nP", "show", "user", f"name={one.user}", "withcoord", columns)
    said = command.answer(TELLS, "sacctmgr", *words)
    level, _, accounts = said.strip().partition("|")
    return level, tuple(filter(None, accounts.split(",")))
