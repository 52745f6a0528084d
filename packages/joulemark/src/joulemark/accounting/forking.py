# A second process for a big merge's work, where there is a second CPU to do it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import marshal
import os
import select
import struct
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Callable

Work = Callable[[Sequence], list]
AHEAD = 4  # parts that the helper is given at once, so that it never waits for the next
PLACE = struct.Struct("QQ")  # where in the shared memory an answer begins, and its size


class Helper:
    """Does work that it knew when it was made, so that it is forked while the process is small.

    By hand, for with ProcessPoolExecutor a merge of 10 000 records takes 0.1 s more, and its goal
    is a second. Work takes and returns plain data. Where there is no helper (it is not worth it,
    there is one CPU, it died), its work is done here, when its result is asked for.
    """

    def __init__(self, works: Sequence[Work], is_worth_it: bool):
        self._works = works
        self._given: deque[tuple[Work, Sequence]] = deque()  # what result() was not asked of yet
        self._child = 0
        if is_worth_it and len(os.sched_getaffinity(0)) > 1:
            self._fork()

    def __enter__(self) -> Helper:
        return self

    def __exit__(self, *_) -> None:
        """Waits for its end: what it was given last is done then."""
        self._end()

    @property
    def is_there(self) -> bool:
        """Whether there is one that works meanwhile."""
        return bool(self._child)

    def start(self, work: Work, items: Sequence) -> None:
        """Gives it one of its works to do meanwhile, after those that it was given before."""
        self._given.append((work, items))
        if self._child:
            try:
                self._send(self._questions, (self._works.index(work), items))
            except BrokenPipeError:
                self._end()

    def result(self) -> list:
        """Of the first work of which none was asked yet."""
        work, items = self._given.popleft()
        if self._child:
            try:
                begin, size = PLACE.unpack(os.read(self._answers, PLACE.size))
                return marshal.loads(os.pread(self._memory, size, begin))
            except (struct.error, EOFError, ValueError, TypeError):
                self._end()
        return work(items)

    def each(self, work: Work, items: Sequence, at_once: int) -> Iterator[list]:
        """work() of a part of the items after another, by the helper, from now on, and here."""
        left = deque(items[at : at + at_once] for at in range(0, len(items), at_once))
        self._keep_busy(work, left)
        return self._each(work, left)

    def _each(self, work: Work, left: deque[Sequence]) -> Iterator[list]:
        while left or self._given:
            if self._given and (not left or self._has_answered()):
                done = self.result()
            else:
                done = work(left.popleft())
            self._keep_busy(work, left)
            yield done

    def _keep_busy(self, work: Work, left: deque[Sequence]) -> None:
        while left and self._child and len(self._given) < AHEAD:
            self.start(work, left.popleft())

    def _has_answered(self) -> bool:
        return not self._child or bool(select.select([self._answers], [], [], 0)[0])

    def _fork(self) -> None:
        questions, answers = os.pipe(), os.pipe()
        self._memory = os.memfd_create("joulemark-answer")  # a pipe holds 64 kB, and then waits
        self._child = os.fork()
        if self._child == 0:
            self._serve(questions, answers)
        os.close(questions[0])
        os.close(answers[1])
        self._questions = os.fdopen(questions[1], "wb")  # _end() closes both
        self._answers = answers[0]

    def _serve(self, questions: tuple[int, int], answers: tuple[int, int]) -> None:
        """The child ends here, whatever happens: the parent's files and locks are not its own."""
        try:
            os.close(questions[1])
            os.close(answers[0])
            with open(questions[0], "rb") as asked, open(self._memory, "wb") as memory:
                while True:
                    number, items = self._receive(asked)
                    begin = memory.tell()
                    memory.write(marshal.dumps(self._works[number](items)))
                    memory.flush()
                    os.write(answers[1], PLACE.pack(begin, memory.tell() - begin))
        except BaseException:
            os._exit(0)

    def _end(self) -> None:
        if self._child:
            with contextlib.suppress(BrokenPipeError):
                self._questions.close()
            os.close(self._answers)
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
