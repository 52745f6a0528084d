"""What all of them have: a start that waits for an answer, a log, an end in bounded time."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tests.cluster import PATIENCE_S, wait_for
from tests.cluster.service import find_program

Self = TypeVar("Self", bound="Peer")

#: a test that is killed leaves none behind; as words, for code after a fork may hang in Python
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")
END_S = 60.0
#: Debian keeps servers where users do not look
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"


class Peer:
    """One process, in a context or by start() and kill(); a subclass says what runs, and when it
    is ready."""

    log_file: Path
    env: Mapping[str, str] = {}  # beside our own
    folder: Path | None = None  # where it runs
    output_file: Path | None = None  # what it prints, where that is no part of the log
    stdin: int = subprocess.DEVNULL
    start_s = PATIENCE_S
    process: subprocess.Popen | None = None

    def command(self) -> Sequence[object]:
        raise NotImplementedError

    def ready(self) -> object:
        """True once it answers."""
        return True

    def launch(self: Self) -> Self:
        """As start(), but of what may end at once."""
        program, *more = map(str, self.command())
        if "/" not in program:
            program = find_program(program)
        words = [*DIES_WITH_US, program, *more]
        with self.log_file.open("a") as log, (self.output_file or self.log_file).open("a") as out:
            self.process = subprocess.Popen(
                words,
                stdin=self.stdin,
                stdout=out,
                stderr=log,
                env={**os.environ, "PATH": PATH, **self.env},
                cwd=self.folder,
                text=True,
            )
        return self

    def start(self: Self) -> Self:
        self.launch()
        try:
            what = f"{type(self).__name__} to answer; log: {self.log_file}"
            wait_for(self._lives_and_is_ready, self.start_s, what)
        except BaseException:
            self.kill()
            raise
        return self

    def _lives_and_is_ready(self) -> object:
        assert self.process
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.process.args} has ended: {self.log()[-2000:]}")
        return self.ready()

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def send(self, number: int) -> None:
        assert self.process, "it does not run"
        self.process.send_signal(number)

    def kill(self, number: int = signal.SIGKILL) -> int | None:
        """Its exit status once it has ended; None: it did not run."""
        process, self.process = self.process, None
        if not process:
            return None
        process.send_signal(number)
        if process.stdin:
            with contextlib.suppress(OSError):  # what it has not read
                process.stdin.close()
        try:
            return process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(END_S)
            raise

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def wait_log(self, part: str) -> None:
        wait_for(lambda: part in self.log(), what=f"'{part}' in {self.log_file}")

    def __enter__(self: Self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()
