# Slurm's configuration as `scontrol show config` and `sacctmgr show configuration` tell it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import re

from joulemark.slurm import command


def keys(said: str) -> dict[str, str]:
    """Values by lower-case key."""
    pairs = re.findall(r"^(\w+)(?:\[\d+\])?[ \t]*=[ \t]*(.*)$", said, re.MULTILINE)
    return {key.lower(): value.strip() for key, value in pairs}


def cluster() -> str:
    """The name of the cluster of this machine; UserError where slurmctld does not tell."""
    said = command.answer("does slurmctld run?", "scontrol", "show", "config")
    return keys(said).get("clustername", "")


def of_slurmdbd(said: str) -> dict[str, str]:
    """Likewise those of sacctmgr's words that are slurmdbd's own, not its slurm.conf's; none where
    it tells these a second time, as 26.05.5 does: PrivateData=none, whatever slurmdbd hides."""
    found = keys(said.partition("SlurmDBD")[2])
    return {} if found.get("storagetype") == "accounting_storage/slurmdbd" else found


def words(text: str) -> set[str]:
    """A comma list's, in lower case."""
    return {word.strip().lower() for word in text.split(",") if word.strip()}
