# Signals that end a command: the first is an exception, further ones let it clean up.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE_S = 2.0  # a launcher ends its tasks; then it is killed. Slurm's KillWait is longer


@contextlib.contextmanager
def as_before() -> Iterator[None]:
    """What is done about them is at the end what it was."""
    before = {one: signal.getsignal(one) for one in SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextlib.contextmanager
def by_the_first(ended: Callable[[int], BaseException]) -> Iterator[Callable[[], None]]:
    """Raises what is made of its number; further ones, then or afterwards, are ignored, until
    as_before() ends. Python drops an exception that comes while an object is deleted: what is
    yielded raises it again."""
    taken = [one for one in SIGNALS if signal.getsignal(one) is not signal.SIG_IGN]  # as by nohup
    came: list[int] = []

    def ignore() -> None:
        for one in taken:
            signal.signal(one, signal.SIG_IGN)

    def end(number: int, _frame: object) -> None:
        ignore()
        came.append(number)
        raise ended(number)

    def check() -> None:
        if came:
            raise ended(came[0])

    for one in taken:
        signal.signal(one, end)
    try:
        yield check
    finally:
        ignore()


@contextlib.contextmanager
def leaving() -> Iterator[None]:
    """The first ends the command, with the exit status that shells give to who died of it."""
    with as_before(), by_the_first(lambda number: SystemExit(128 + number)):
        yield


@contextlib.contextmanager
def deferred(are: bool = True) -> Iterator[None]:
    """They come when this is over; or, within it, they come again."""
    change = signal.SIG_BLOCK if are else signal.SIG_UNBLOCK
    before = signal.pthread_sigmask(change, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def child(
    words: Sequence[object], end: Callable[[subprocess.Popen], object], **options
) -> Iterator[subprocess.Popen]:
    """A process of Popen's options. They wait while it begins, until we know whom to end; by what
    ends us, or is raised meanwhile, end() ends it."""
    with deferred():
        begun = subprocess.Popen(words, preexec_fn=_let_come, **options)
        try:
            with deferred(False):
                yield begun
        except BaseException:
            end(begun)
            raise


def _let_come() -> None:
    """In a process that begins where they are deferred."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def ended(child: subprocess.Popen, limit_s: float) -> bool:
    """Waits for it, then kills it; False: it does not even die, as who waits in the kernel for a
    file system's server that is away."""
    for kill, wait_s in ((False, limit_s), (True, PATIENCE_S)):
        if kill:
            child.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(wait_s)
            return True
    return False


def end_group(leader: subprocess.Popen) -> None:
    """A process that began a session of its own, with all that it has begun."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            leader.wait(PATIENCE_S)
