"""Programs that end: in time, with all that they have started, and when we are stopped."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.cluster import supervisor
from tests.cluster.errors import ClusterError
from tests.cluster.place import exclusive

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: how long the supervisor may take beyond its limit: to describe, to ask, to insist
GRACE_S = supervisor.TO_END_BY_ITSELF_S + 4 * supervisor.TO_VANISH_S


def stop_on_signals() -> None:
    """Makes SIGTERM and SIGHUP unwind the program as Ctrl-C does, so that every `finally` runs.

    SIGINT as well: a shell starts what it runs in the background with SIGINT ignored.
    """
    for number in STOPPING:
        signal.signal(number, signal.default_int_handler)


def one_at_a_time(name: str, lock: Path, work: Callable[[], int]) -> int:
    """A program's exit status; it is interrupted well, and says what failed in a line."""
    stop_on_signals()
    try:
        with exclusive(lock, f"another {name} runs here"):
            return work()
    except ClusterError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{name}: interrupted; what it had started is stopped", file=sys.stderr)
        return 130


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


@functools.cache
def _namespace() -> tuple[str, ...]:
    """Words that give a program a PID namespace, where we may make one."""
    words = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    with contextlib.suppress(OSError):
        if subprocess.run([*words, "true"], capture_output=True).returncode == 0:
            return words
    return ()


_children: set[subprocess.Popen] = set()  # those of run_child
_starting = threading.Lock()
_ended = threading.Event()


def run_child(command: Sequence[str | Path], limit_s: float, **more: object) -> int:
    """Runs a program to its end, at most limit_s; what it started ends with it, and with us.

    Returns its exit status, or one of supervisor's own; **more is for subprocess.Popen.
    """
    words = [*_namespace(), sys.executable, supervisor.__file__, str(limit_s), *map(str, command)]
    child = None
    try:
        with _later(), _starting:
            if _ended.is_set():
                raise KeyboardInterrupt
            child = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True, **more)
            _children.add(child)
        return child.wait(limit_s + GRACE_S)
    except subprocess.TimeoutExpired:
        return supervisor.LATE
    finally:
        if child:
            with undisturbed():
                _end(child)
            _children.discard(child)


def end_children() -> None:
    """Ends what other threads run by run_child, and lets none start more."""
    with undisturbed():
        with _starting:
            _ended.set()
            living = list(_children)
        for child in living:
            _close(child)
        for child in living:
            _end(child)


def _close(child: subprocess.Popen) -> None:
    """By which its supervisor knows that it is to end all."""
    with contextlib.suppress(OSError):
        child.stdin.close()


def _end(child: subprocess.Popen) -> None:
    _close(child)
    try:
        child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # `unshare --kill-child`: and the namespace
        child.wait(5)
