# The steps of a build: one command at a time, each with its log; one build in a state at a time.
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from building.lock import Held, locked

CHECKOUT = Path(__file__).resolve().parent.parent.parent
#: the environment of the machine that builds
OWN = {"armv7l": "armv7"}.get(platform.machine(), platform.machine())
JOBS = len(os.sched_getaffinity(0))
TAIL_LINES = 30
PATIENCE_S = 1800.0  # another build's, cold and on a loaded machine


class Unavailable(Exception):
    """There is no Spack here and no way to get one; the text says why, in one line."""


class StepFailed(Exception):
    """A command of the build failed; its log says why."""

    def __init__(self, step: str, log: Path, advice: str):
        super().__init__(step)
        self.step, self.log, self.advice = step, log, advice

    def report(self) -> str:
        with open(self.log, errors="replace") as file:
            tail = "".join(deque(file, TAIL_LINES))
        return f"{self.step} FAILED. The end of {self.log}:\n{tail.rstrip()}\nbuild: {self.advice}"


class Interruption:
    """A signal that ends a build. Python drops the exception where it comes while an object is
    deleted: what has come is asked before each step, too."""

    came = False

    @classmethod
    def note(cls, *_: object) -> None:
        cls.came = True
        raise KeyboardInterrupt

    @classmethod
    def check(cls) -> None:
        if cls.came:
            raise KeyboardInterrupt


class Steps:
    """Runs the commands of a build in one state folder."""

    advice = "mend what the log names, then run this again: it goes on from here"

    def __init__(self, state: Path):
        self.cache = state / "cache"
        self.logs = self.cache / "log"
        self.logs.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the state's lock: a second build of the same state waits for the first."""
        lock = self.cache / "build.lock"
        with locked(lock, PATIENCE_S, lambda who: say(f"waiting for another build: {who}")):
            yield

    def run(self, step: str, *command: str | Path, timeout_s: float | None = None) -> None:
        """Run one command, all of its output into the step's log."""
        log = self.logs / f"{step.replace(' ', '-')}.log"
        Interruption.check()
        began = time.monotonic()
        with open(log, "w") as output:
            output.write(f"$ {shlex.join(map(str, command))}\n")
            output.flush()
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status = child.wait(timeout_s)
            except subprocess.TimeoutExpired:
                end_session(child)
                late = f"{step} (no end after {timeout_s:g} s)"
                raise StepFailed(late, log, self.advice) from None
            except BaseException:
                end_session(child)
                raise
        if status:
            raise StepFailed(step, log, self.advice)
        say(f"{step} {time.monotonic() - began:.1f} s")

    def attempt(self, step: str, *command: str | Path, timeout_s: float, why: str) -> None:
        """Run a command that needs the network: without one it is no failure, but Unavailable.

        What one build of a run of the suite ($JOULEMARK_RUN, a folder) has failed to get, the next
        does not wait for.
        """
        run = os.environ.get("JOULEMARK_RUN")
        known = Path(run, "unavailable", step.replace(" ", "-")) if run else None
        if known and known.exists():
            raise Unavailable(f"{known.read_text()}, as another build of this run has found")
        try:
            self.run(step, *command, timeout_s=timeout_s)
        except StepFailed as failure:
            text = f"{why} ({failure.log})"
            if known:
                known.parent.mkdir(parents=True, exist_ok=True)
                known.write_text(text)
            raise Unavailable(text) from failure


def exit_code(state: Path, work: Callable[[Steps], None], unavailable: str) -> int:
    """Of a program whose work has the state to itself: 0, 1 failed, 3 unavailable, 130."""
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(sign) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(sign, Interruption.note)  # nothing stays behind
    os.umask(0o022)  # jobs of other users read the result
    try:
        steps = Steps(state.resolve())
        with steps.alone():
            work(steps)
            Interruption.check()
    except Unavailable as why:
        say(f"{unavailable}: {why}")
        return 3
    except Held as held:
        say(f"another build has not ended: {held}")
        return 1
    except StepFailed as failure:
        say(failure.report())
        return 1
    except KeyboardInterrupt:
        say("interrupted; the next run goes on from here")
        return 130
    return 0


def ask(*command: str | Path) -> str | None:
    """A short command's output, or None if it fails or does not exist."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def modules_by_library() -> dict[str, bool]:
    """The instruments that are modules, and whether this machine has what each links with."""
    text = (CHECKOUT / "slurm-plugins/CMakeLists.txt").read_text()
    lines = re.findall(r"^jm_instrument_module\((\w+)([^)]*)\)", text, re.MULTILINE)
    libraries = {module: rest.partition("SOURCES")[0].split() for module, rest in lines}
    there = {
        module: not names or ask("pkg-config", "--exists", *names) is not None
        for module, names in libraries.items()
    }
    return dict(sorted(there.items()))


def say(text: str) -> None:
    print(f"build: {text}", file=sys.stderr, flush=True)


def end_session(child: subprocess.Popen) -> None:
    """End a command and all that it started: asked first, then made to."""
    for sign in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(10)
