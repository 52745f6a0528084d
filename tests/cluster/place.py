"""Where things are: state folder, build's result, locks; and how a run ends on a signal."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import fcntl
import getpass
import hashlib
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.errors import ClusterError

CHECKOUT = Path(__file__).resolve().parents[2]
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        except BlockingIOError:
            raise ClusterError(f"{busy} (lock: {path})") from None
        yield


def stop_on_signals() -> None:
    """Makes SIGTERM and SIGHUP unwind the program as Ctrl-C does, so that every `finally` runs.

    SIGINT as well: a shell starts what it runs in the background with SIGINT ignored.
    """
    for number in STOPPING:
        signal.signal(number, signal.default_int_handler)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Holds signals back while something is being cleaned up; they arrive afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _later() -> Iterator[None]:
    """Signals arrive afterwards, but are not blocked: what is started here would have them so.

    Only in the main thread, where Python delivers them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {n: signal.signal(n, lambda number, _: came.append(number)) for n in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came[:1]:
            signal.raise_signal(number)


_children: set[subprocess.Popen] = set()  # those of run_child
_starting = threading.Lock()
_ended = threading.Event()


def run_child(command: Sequence[str | Path], **more: object) -> int:
    """Runs a program to its end; if we are stopped, it and what it started end before we do."""
    child = None
    try:
        with _later(), _starting:
            if _ended.is_set():
                raise KeyboardInterrupt
            child = subprocess.Popen(list(map(str, command)), start_new_session=True, **more)
            _children.add(child)
        return child.wait()
    except BaseException:
        if child:
            with undisturbed():
                _end_session(child)
        raise
    finally:
        _children.discard(child)  # type: ignore[arg-type]


def end_children() -> None:
    """Ends what other threads run by run_child, and lets none start more."""
    with undisturbed():
        with _starting:
            _ended.set()
            living = list(_children)
        for child in living:
            _end_session(child)


def _end_session(child: subprocess.Popen) -> None:
    """Asks first; then makes it end, with what it may have left in its group."""
    for number, patience_s in ((signal.SIGTERM, 30), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(patience_s)
