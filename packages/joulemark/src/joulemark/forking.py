# Shares a long list of work with a forked process, where there is a second CPU to do it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import marshal
import os
from collections.abc import Sequence
from typing import Callable

WORTH_IT = 2000  # items: fewer take less time than a fork's copies


def in_halves(work: Callable[[Sequence], list], items: Sequence) -> list:
    """work(items), half of it done by a child; work's result must be plain data."""
    if len(items) < WORTH_IT or len(os.sched_getaffinity(0)) < 2:
        return work(items)
    half = len(items) // 2
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        _work_and_exit(work, items[half:], read_end, write_end)
    os.close(write_end)
    first = work(items[:half])
    with open(read_end, "rb") as answer:
        second = answer.read()
    _, status = os.waitpid(child, 0)
    return first + (marshal.loads(second) if status == 0 else work(items[half:]))


def _work_and_exit(work, items: Sequence, read_end: int, write_end: int) -> None:
    """The child ends here, whatever happens: the parent's files and locks are not its own."""
    try:
        os.close(read_end)
        with open(write_end, "wb") as answer:
            answer.write(marshal.dumps(work(items)))
    except BaseException:
        os._exit(1)
    os._exit(0)
