# The one way to hold a lock file: for a bounded time waited for, its holder named, not inherited.
# usage, for a shell: python3 lock.py FILE SECONDS COMMAND...    exit 75: another holds it
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

POLL_S = 0.05


class Held(Exception):
    """Another process has the lock; says which, and since when."""


@contextlib.contextmanager
def locked(
    path: Path, patience_s: float, on_wait: Callable[[str], None] = lambda holder: None
) -> Iterator[None]:
    """Hold the lock file; wait for another holder for patience_s at most, else raise Held.

    The kernel lets go of it when this process ends; a child never has it, for Python's descriptors
    are closed at exec.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        deadline = time.monotonic() + patience_s
        waits = False
        while not _taken(file.fileno()):
            if not waits:
                on_wait(_holder(path))
            waits = True
            if time.monotonic() >= deadline:
                raise Held(f"{path} is held by {_holder(path)}; waited {patience_s:g} s for it")
            time.sleep(POLL_S)
        file.truncate(0)
        now = time.strftime("%H:%M:%S")
        print(f"process {os.getpid()} since {now}: {shlex.join(sys.argv)}", file=file, flush=True)
        yield
        file.truncate(0)


def _taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(path: Path) -> str:
    return path.read_text(errors="replace").strip() or "a process that has not said its name"


def main(path: str, patience_s: str, *command: str) -> int:
    def say(text: str) -> None:
        print(f"lock: {text}", file=sys.stderr, flush=True)

    for sign in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, signal.default_int_handler)  # the command ends, too
    try:
        with locked(Path(path), float(patience_s), lambda holder: say(f"waiting for {holder}")):
            return subprocess.run(command).returncode
    except Held as held:
        say(str(held))
        return os.EX_TEMPFAIL
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
