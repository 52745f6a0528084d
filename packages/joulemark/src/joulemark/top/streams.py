# Programs whose lines are read while they run: `srun joulemarkctl ...`, one a job or a node.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import queue
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator

from joulemark.errors import UserError
from joulemark.slurm.queue import own_environment

# They end with their input: who is killed leaves none behind. Else srun is told to end.
GRACE_S = 1.0
STEP_NAME = "joulemark-top"


class Stream:
    """One program; a session of its own, so that the terminal's Ctrl-C is not its."""

    def __init__(self, words: list[str], lines: queue.Queue):
        pipe = subprocess.PIPE
        try:
            self.process = subprocess.Popen(
                words,
                stdin=pipe,
                stdout=pipe,
                stderr=subprocess.STDOUT,
                env=own_environment(),
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise UserError(f"{words[0]}: {error.strerror}: it must be on PATH") from None
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()

    def _read(self, lines: queue.Queue) -> None:
        for line in self.process.stdout:
            lines.put((self, line.rstrip("\n")))
        lines.put((self, None))


class Streams:
    """All that run, by what they tell of; their lines come as (of, line), at an end None."""

    def __init__(self):
        self._of: dict[Stream, object] = {}
        self._lines = queue.Queue()

    def __enter__(self) -> Streams:
        return self

    def start(self, of: object, words: list[str]) -> None:
        """A program that tells of this."""
        self._of[Stream(words, self._lines)] = of

    def until(self, moment_s: float) -> Iterator[tuple[object, str | None]]:
        """What comes up to a moment of time.monotonic()."""
        while True:
            with contextlib.suppress(queue.Empty):
                left_s = max(0.0, moment_s - time.monotonic())
                stream, line = self._lines.get(timeout=left_s)
                yield self._of[stream], line
                if line is None:
                    self._end(stream)
                continue
            return

    def _end(self, stream: Stream) -> None:
        stream.process.stdin.close()
        stream.process.wait()
        del self._of[stream]

    def __exit__(self, *_) -> None:
        for stream in self._of:
            with contextlib.suppress(OSError):
                stream.process.stdin.close()
        for end in (lambda _: None, subprocess.Popen.terminate, subprocess.Popen.kill):
            left_s = time.monotonic() + GRACE_S
            for stream in self._of:
                end(stream.process)
            for stream in self._of:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    stream.process.wait(max(0.0, left_s - time.monotonic()))


def joulemarkctl() -> str:
    """Its path here, which it is taken to have on the nodes, too."""
    return shutil.which("joulemarkctl") or "joulemarkctl"
