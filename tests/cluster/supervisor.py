"""Runs one command, and ends all that it started: when it ends, when it is late, when told to.

usage: supervisor.py SECONDS COMMAND...

As the first process of a PID namespace, or else as the subreaper of what it starts, so that
nothing gets away. Standard input is a pipe from who started it: at its end all ends. A command
that is late is described on standard error: its processes, what each waits for, and where each
Python stands. Exit status: the command's (128 + n for signal n); 124 it was late; 125 it left
processes behind; 130 it was told to end.
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LATE, LEFT_BEHIND, TOLD_TO_END = 124, 125, 130
PR_SET_CHILD_SUBREAPER = 36
FITHAW = 0xC0045878
TO_END_BY_ITSELF_S = 30.0  # a run that is interrupted takes its clusters down
TO_VANISH_S = 5.0  # what a command asked to end as its last act
TO_TELL_S = 2.0


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    state: str
    age_s: float
    waits_for: str
    command: str

    def __str__(self) -> str:
        where = f" in {self.waits_for}" if self.waits_for not in ("", "0") else ""
        return f"{self.pid} {self.state}{where}, {self.age_s:.0f} s: {self.command}"


def read_process(pid: int) -> Process | None:
    folder = Path("/proc") / str(pid)
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        words = (folder / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return None
    waits_for = ""
    with contextlib.suppress(OSError):
        waits_for = (folder / "wchan").read_text()
    since_boot_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    age_s = since_boot_s - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    command = shlex.join(word.decode(errors="replace") for word in words)[:200]
    return Process(pid, int(fields[1]), fields[0], age_s, waits_for, command)


def living() -> list[Process]:
    """All below this process, without those that only wait to be reaped."""
    found = {}
    for name in os.listdir("/proc"):
        process = read_process(int(name)) if name.isdigit() else None
        if process and process.state not in "ZX":
            found[process.pid] = process
    own = {os.getpid()}
    while True:
        more = {p.pid for p in found.values() if p.parent in own} - own
        if not more:
            return [found[pid] for pid in sorted(own - {os.getpid()})]
        own |= more


def as_tree(processes: list[Process], parent: int, depth: int = 1) -> Iterator[str]:
    for process in processes:
        if process.parent == parent:
            yield "  " * depth + str(process)
            yield from as_tree(processes, process.pid, depth + 1)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Supervisor:
    def __init__(self, command: list[str], limit_s: float) -> None:
        self.command, self.limit_s = command, limit_s
        self.deadline = time.monotonic() + limit_s
        self.status: int | None = None
        self.awake, wake = os.pipe()
        os.set_blocking(self.awake, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        if os.getpid() != 1:
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # kept, for a Popen that is forgotten reaps its process itself
        self.started = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        self.child = self.started.pid

    def reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, how = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self.child:
                    signalled = os.WIFSIGNALED(how)
                    self.status = 128 + os.WTERMSIG(how) if signalled else os.WEXITSTATUS(how)

    def sleep(self, seconds: float, *also: int) -> list[int]:
        """Until a child ends, or one of the descriptors `also` is ready: those that are."""
        ready = select.select([self.awake, *also], [], [], max(seconds, 0))[0]
        with contextlib.suppress(BlockingIOError):
            os.read(self.awake, 4096)
        self.reap()
        return ready

    def run(self) -> int:
        while self.status is None:
            left_s = self.deadline - time.monotonic()
            if left_s <= 0:
                self.describe()
                self.end(TO_VANISH_S)
                return LATE
            if 0 in self.sleep(left_s, 0):
                self.end(TO_END_BY_ITSELF_S)
                return TOLD_TO_END
        if not self.wait_gone(TO_VANISH_S):
            say("LEFT BEHIND by " + shlex.join(self.command))
            say("\n".join(as_tree(living(), os.getpid())))
            self.end(TO_VANISH_S)
            return self.status or LEFT_BEHIND
        return self.status

    def wait_gone(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while living():
            if time.monotonic() > deadline:
                return False
            self.sleep(0.05)
        return True

    def describe(self) -> None:
        say(f"\nHUNG: no end after {self.limit_s:.0f} s: {shlex.join(self.command)}")
        say("Its processes, and what each waits for:")
        processes = living()
        say("\n".join(as_tree(processes, os.getpid())))
        pythons = [process.pid for process in processes if tells_its_stacks(process.pid)]
        for pid in reversed(pythons):  # the youngest first: who waits for it still stands there
            say(f"Python's stacks of {pid}:")
            self.send(signal.SIGABRT, [pid])
            self.sleep(TO_TELL_S / max(len(pythons), 1))
        self.sleep(0.1)

    def end(self, patience_s: float) -> None:
        """Asks the command, then all that is left, then makes them."""
        thaw()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child, signal.SIGTERM)
        deadline = time.monotonic() + patience_s
        while self.status is None and time.monotonic() < deadline:
            self.sleep(0.1)
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.send(number, [process.pid for process in living()])
            if self.wait_gone(TO_VANISH_S):
                return
        say("These outlive SIGKILL:\n" + "\n".join(as_tree(living(), os.getpid())))

    @staticmethod
    def send(number: int, pids: list[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def thaw() -> None:
    """What a test has frozen keeps its writers, and so the namespace, from ending."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            device, folder = line.split()[:2]
            if device.startswith("/dev/loop"):
                with contextlib.suppress(OSError):
                    place = os.open(folder, os.O_RDONLY)
                    try:
                        fcntl.ioctl(place, FITHAW, 0)
                    finally:
                        os.close(place)


def tells_its_stacks(pid: int) -> bool:
    """A Python under PYTHONFAULTHANDLER=1 catches SIGABRT: it writes all stacks, and ends."""
    try:
        program = os.readlink(f"/proc/{pid}/exe")
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return "python" in Path(program).name and bool(int(caught, 16) >> (signal.SIGABRT - 1) & 1)


if __name__ == "__main__":
    sys.exit(Supervisor(sys.argv[2:], float(sys.argv[1])).run())
