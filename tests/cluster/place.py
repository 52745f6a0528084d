"""Where things are: state folder, build's result, locks."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from environments.building.lock import Held, locked
from tests.cluster.errors import ClusterError

CHECKOUT = Path(__file__).resolve().parents[2]
#: each Debian has it, and it has no rights; Slurm 26.05 takes nobody for no user
ORDINARY_USER = "games"
BUILD_LIMIT_S = 3600.0  # by Spack, all from source, on a loaded machine
LOCK_PATIENCE_S = 300.0  # a cluster of another process comes up or goes down meanwhile


def state_folder() -> Path:
    """$JOULEMARK_STATE, or a folder of this user and checkout that jobs of any user can read."""
    named = os.environ.get("JOULEMARK_STATE")
    if named:
        return Path(named).absolute()
    digest = hashlib.sha256(str(CHECKOUT).encode()).hexdigest()[:8]
    return Path(f"/var/tmp/joulemark-{getpass.getuser()}-{digest}")


def cache_folder() -> Path:
    return state_folder() / "cache"


@dataclass(frozen=True)
class Build:
    """What environments/build left behind: plugins, daemon, modules and the Python command."""

    slurm_prefix: Path
    modules: Path | None = None
    bin: Path | None = None
    built_by: str = ""
    why: str = ""
    slurm_root: Path | None = None  # prefix of the Slurm that it is for; None: the machine's

    @property
    def slurm_path(self) -> list[str]:
        """Folders of that Slurm's programs, ahead of the machine's."""
        return [f"{self.slurm_root}/sbin", f"{self.slurm_root}/bin"] if self.slurm_root else []

    @classmethod
    def load(cls, cache: Path) -> Build:
        path = cache / "build.env"
        try:
            words = shlex.split(path.read_text(), comments=True)
        except FileNotFoundError:
            raise ClusterError(f"{path} is missing: run environments/build first") from None
        values = dict(word.split("=", 1) for word in words if "=" in word)
        try:
            return cls(
                slurm_prefix=Path(values["JOULEMARK_SLURM_PREFIX"]),
                modules=Path(values["JOULEMARK_MODULES"]),
                bin=Path(values["JOULEMARK_BIN"]),
                built_by=values["JOULEMARK_BUILT_BY"],
                why=values.get("JOULEMARK_WHY", ""),
                slurm_root=Path(root) if (root := values.get("JOULEMARK_SLURM_ROOT")) else None,
            )
        except KeyError as missing:
            raise ClusterError(f"{path}: no {missing}; run environments/build again") from None


@contextlib.contextmanager
def exclusive(path: Path, busy: str | None = None) -> Iterator[None]:
    """Holds a lock file; waits for another holder, or fails with the text `busy` if given."""
    try:
        with locked(path, 0 if busy else LOCK_PATIENCE_S):
            yield
    except Held as held:
        raise ClusterError(f"{busy}: {held}" if busy else str(held)) from None
