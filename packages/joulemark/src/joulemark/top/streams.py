# Programs whose lines are read while they run: `srun joulemarkctl ...`, one a job or a node.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import queue
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator

from joulemark.slurm.queue import own_environment

# They end with their input: who is killed leaves none behind. Else srun is told to end; one that
# waits for its place reads no input, and gives up by itself (--immediate).
GRACE_S = 1.0
LINES_MOST = 10_000  # that wait to be read
STEP_NAME = "joulemark-top"
# After the program has said why; where the site binds no tasks to CPUs, which we do not ask for.
SAYS_NOTHING = re.compile(
    r"srun: (error: .*tasks? .*: Exited with exit code|cluster configuration lacks .* cpu binding)"
)


class Streams:
    """All that run; their lines come as (of, line), of what they tell of, at an end None."""

    def __init__(self):
        self._running: list[subprocess.Popen] = []
        self._lines = queue.Queue(LINES_MOST)  # who tells faster than is read waits
        self._starting = threading.Lock()
        self._is_over = False

    def __enter__(self) -> Streams:
        return self

    def start(self, of: object, words: list[str]) -> None:
        """A program that tells of this.

        Begun by its reader: a signal's exception, which is the main thread's, loses none.
        """
        threading.Thread(target=self._run, args=(of, words), daemon=True).start()

    def until(self, moment_s: float) -> Iterator[tuple[object, str | None]]:
        """What comes up to a moment of time.monotonic()."""
        with contextlib.suppress(queue.Empty):
            while (left_s := moment_s - time.monotonic()) > 0:
                yield self._lines.get(timeout=left_s)

    def _run(self, of: object, words: list[str]) -> None:
        try:
            process = self._begin(words)
        except OSError as error:
            self._lines.put((of, f"{words[0]}: {error.strerror}: it must be on PATH"))
        else:
            for line in process.stdout if process else ():
                if not SAYS_NOTHING.match(line):
                    self._lines.put((of, line.rstrip()))
        self._lines.put((of, None))

    def _begin(self, words: list[str]) -> subprocess.Popen | None:
        """In a session of its own, so that the terminal's Ctrl-C is not its; None: all is over."""
        with self._starting:
            if self._is_over:
                return None
            self._running = [one for one in self._running if one.poll() is None]
            process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=own_environment(),
                text=True,
                errors="replace",
                start_new_session=True,
            )
            self._running.append(process)
        return process

    def __exit__(self, *_) -> None:
        with self._starting:
            self._is_over = True
        for process in self._running:
            with contextlib.suppress(OSError):
                process.stdin.close()
        for end in (lambda _: None, subprocess.Popen.terminate, subprocess.Popen.kill):
            left_s = time.monotonic() + GRACE_S
            for process in self._running:
                end(process)
            for process in self._running:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, left_s - time.monotonic()))


def joulemarkctl() -> str:
    """Its path here, which it is taken to have on the nodes, too."""
    return shutil.which("joulemarkctl") or "joulemarkctl"
