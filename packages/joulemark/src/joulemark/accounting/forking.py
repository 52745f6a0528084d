# A second process for a big merge's work, where there is a second CPU to do it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import marshal
import mmap
import os
from collections.abc import Sequence
from typing import Callable

Work = Callable[[Sequence], list]
# Of what both can do, the helper's part: its answer has to be packed and unpacked as well.
HELPERS_PART = 0.42


class Helper:
    """Does work that it knew when it was made, so that it is forked while the process is small.

    By hand, for by ProcessPoolExecutor a merge of 10 000 records takes 1.11 s where its goal is a
    second and this takes 1.00 s. Work takes and returns plain data. Where there is no helper (it
    is not worth it, there is one CPU, it died), its work is done here, when its result is asked
    for.
    """

    def __init__(self, works: Sequence[Work], is_worth_it: bool):
        self._works = works
        self._given: tuple[Work, Sequence] | None = None
        self._child = 0
        if is_worth_it and len(os.sched_getaffinity(0)) > 1:
            self._fork()

    def __enter__(self) -> Helper:
        return self

    def __exit__(self, *_) -> None:
        """Waits for its end: what it was given last is done then."""
        self._end()

    def start(self, work: Work, items: Sequence) -> None:
        """Gives it one of its works to do meanwhile."""
        self._given = work, items
        if self._child:
            try:
                self._send(self._questions, (self._works.index(work), items))
            except BrokenPipeError:
                self._end()

    def result(self) -> list:
        """Of the work that was given last."""
        work, items = self._given
        if self._child:
            try:
                size = self._receive(self._answers)
                with mmap.mmap(self._memory, size, access=mmap.ACCESS_READ) as answer:
                    return marshal.loads(answer)
            except (EOFError, ValueError, TypeError):
                self._end()
        return work(items)

    def halves(self, work: Work, items: Sequence) -> list:
        """work(items), about half of it done by the helper."""
        own = len(items) - int(len(items) * HELPERS_PART) if self._child else len(items)
        self.start(work, items[own:])
        return work(items[:own]) + self.result()

    def _fork(self) -> None:
        questions, answers = os.pipe(), os.pipe()
        self._memory = os.memfd_create("joulemark-answer")  # a pipe holds 64 kB, and then waits
        self._child = os.fork()
        if self._child == 0:
            self._serve(questions, answers)
        os.close(questions[0])
        os.close(answers[1])
        self._questions = os.fdopen(questions[1], "wb")  # _end() closes both
        self._answers = os.fdopen(answers[0], "rb")

    def _serve(self, questions: tuple[int, int], answers: tuple[int, int]) -> None:
        """The child ends here, whatever happens: the parent's files and locks are not its own."""
        try:
            os.close(questions[1])
            os.close(answers[0])
            with open(questions[0], "rb") as asked, open(answers[1], "wb") as said:
                while True:
                    number, items = self._receive(asked)
                    answer = marshal.dumps(self._works[number](items))
                    with open(self._memory, "wb", closefd=False) as memory:
                        memory.seek(0)
                        memory.write(answer)
                    self._send(said, len(answer))
        except BaseException:
            os._exit(0)

    def _end(self) -> None:
        if self._child:
            for pipe in (self._questions, self._answers):
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
            os.close(self._memory)
            os.waitpid(self._child, 0)
            self._child = 0

    @staticmethod
    def _send(pipe, value) -> None:
        packed = marshal.dumps(value)
        pipe.write(len(packed).to_bytes(8, "little"))
        pipe.write(packed)
        pipe.flush()

    @staticmethod
    def _receive(pipe):
        size = int.from_bytes(pipe.read(8), "little")
        return marshal.loads(pipe.read(size))
