"""Where things are: the state folder, the build's result, locks; and how a run ends on a signal."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import fcntl
import getpass
import hashlib
import os
import shlex
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.errors import ClusterError

CHECKOUT = Path(__file__).resolve().parents[2]


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
            )
        except KeyError as missing:
            raise ClusterError(f"{path}: no {missing}; run environments/build again") from None


@contextlib.contextmanager
def exclusive(path: Path, busy: str | None = None) -> Iterator[None]:
    """Holds a lock file; waits for another holder, or fails with the text `busy` if given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        except BlockingIOError:
            raise ClusterError(f"{busy} (lock: {path})") from None
        yield


def stop_on_signals() -> None:
    """Makes SIGTERM and SIGHUP unwind the program as Ctrl-C does, so that every `finally` runs."""

    def unwind(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, unwind)
    signal.signal(signal.SIGHUP, unwind)
