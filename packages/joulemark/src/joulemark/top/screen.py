# Rounds of a table: in place on a terminal, one below the other elsewhere; lines of JSON or CSV.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from joulemark import ending, layout, output, progress
from joulemark.layout import Text

# The first round waits so long for those who have not told yet.
FIRST_S = 15.0
KEYBOARD = 0


class Watched(Protocol):
    """What is shown; a context, which is over when nothing is left of it."""

    every_s: float
    is_over: bool

    def begin(self) -> None:
        """Starts what tells, which the context's end ends."""

    def wait(self, moment_s: float, *, for_all: bool = False, is_last: bool = False) -> None:
        """Takes in what comes up to a moment of time.monotonic(), or until all have told;
        is_last: it is not asked again."""

    def news(self) -> list[str]:
        """What happened since it was asked last."""

    def problems(self) -> list[str]:
        """What could not be told of since it was asked last."""

    def table(self) -> tuple[Text, list[str]]:
        """For people: a table, the last row of which may be a total, and notes."""

    columns: tuple[str, ...]  # of rows()

    def rows(self) -> list[dict]:
        """For programs: a record a job or node."""

    def record(self) -> dict:
        """For programs: all of the round."""


def run(watched: Watched, options) -> None:
    """Until nothing is left to be watched, or somebody ends it; --once: one round."""
    until_ended, screen = contextlib.suppress(KeyboardInterrupt), _screen(options)
    signals, by_signal = ending.as_before(), ending.by_the_first(lambda _: KeyboardInterrupt())
    with until_ended, signals, watched, by_signal as check, screen as show:
        _rounds(watched, show, options.once, check)


def _rounds(
    watched: Watched, show: _Lines | _Terminal, once: bool, check: Callable[[], None]
) -> None:
    watched.begin()
    if not once:
        show.begin(watched)
    if not watched.is_over:
        watched.wait(time.monotonic() + FIRST_S, for_all=True, is_last=once)
    while True:
        check()
        show.round(watched)
        if once or watched.is_over:
            return
        watched.wait(time.monotonic() + watched.every_s)


def _screen(options):
    if options.format == "json":
        return _Records(options)
    if options.format == "csv" and options.out is None:
        return _Csv(options)
    is_seen = options.out is None and sys.stdout.isatty()
    return _Terminal() if options.format == "terminal" and is_seen else _Lines(options)


class _Lines:
    """A table a round; into a file, which has one round, records, too."""

    def __init__(self, options):
        self._options = options

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def begin(self, watched: Watched) -> None:
        """Nothing to show yet."""

    def round(self, watched: Watched) -> None:
        output.tell(watched.problems())
        is_file, news = self._options.out is not None, watched.news()
        if is_file or self._options.format != "terminal":
            output.tell(news)
        else:
            sys.stdout.writelines(f"{output.printable(text)}\n" for text in news)
        if is_file or not watched.is_over:
            table, notes = watched.table()
            layout.show(self._options, watched.rows(), [table], notes, watched.columns)
            print(end="" if is_file else "\n", flush=True)


class _Records(_Lines):
    def round(self, watched: Watched) -> None:
        output.tell(watched.problems())
        output.write_text(json.dumps(watched.record()) + "\n", self._options.out)
        sys.stdout.flush()


class _Csv(_Lines):
    """One header, and each round's rows below those of the last one."""

    _add = None

    def round(self, watched: Watched) -> None:
        output.tell([*watched.problems(), *watched.news()])
        self._add = self._add or output.csv_rows(sys.stdout, watched.columns)
        self._add(watched.rows())
        sys.stdout.flush()


class _Keyboard:
    """Its q ends it as Ctrl-C does, while we are what the terminal's user types to."""

    def __init__(self):
        self._before = None
        if self._is_ours():
            self._before = termios.tcgetattr(KEYBOARD)
            tty.setcbreak(KEYBOARD)  # keys come one by one, and are not shown in the table
            threading.Thread(target=self._wait, daemon=True).start()

    def restore(self) -> None:
        if self._before and self._is_ours():
            termios.tcsetattr(KEYBOARD, termios.TCSADRAIN, self._before)

    def _wait(self) -> None:
        with contextlib.suppress(OSError):  # the terminal is gone
            while True:
                select.select([KEYBOARD], [], [])
                if not self._is_ours():  # by Ctrl-Z and bg
                    time.sleep(1.0)
                elif os.read(KEYBOARD, 1) == b"q":
                    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    @staticmethod
    def _is_ours() -> bool:
        try:
            return os.tcgetpgrp(KEYBOARD) == os.getpgrp()
        except OSError:  # it is no terminal
            return False


class _Terminal:
    """Its last table stays when it ends."""

    def __enter__(self):
        from rich.console import Console
        from rich.live import Live

        self._console = Console(highlight=False, markup=False)
        self._live = Live(console=self._console, auto_refresh=False)
        self._live.__enter__()
        self._alone = progress.hidden()
        self._alone.__enter__()
        self._keyboard = _Keyboard()
        return self

    def __exit__(self, *reason):
        self._keyboard.restore()
        self._alone.__exit__(*reason)
        self._live.__exit__(*reason)

    def begin(self, watched: Watched) -> None:
        """Who is asked."""
        self.round(watched)

    def round(self, watched: Watched) -> None:
        from rich.text import Text as Styled

        for text in [*watched.problems(), *watched.news()]:
            self._console.print(output.printable(text))
        shown = "" if watched.is_over else self._drawn(*watched.table())
        self._live.update(Styled.from_ansi(shown), refresh=True)

    def _drawn(self, table: Text, notes: list[str]) -> str:
        """As much of it as there is room for."""
        lines = shutil.get_terminal_size().lines
        text = layout.as_terminal([table], notes, to_terminal=True).rstrip("\n")
        over = text.count("\n") + 1 - (lines - 1)
        if over > 0:
            text = layout.as_terminal([_cut(table, over)], notes, to_terminal=True).rstrip("\n")
        return text


def _cut(table: Text, over: int) -> Text:
    """Shorter by so many lines; the total stays, and so do the first."""
    total = [row for row in table.body if row[0] == "total"]
    rows = [row for row in table.body if row[0] != "total"]
    kept = rows[: max(0, len(rows) - over - 1)]
    more = [f"{len(rows) - len(kept)} more", *[""] * (len(table.heads) - 1)]
    return replace(table, body=[*kept, ("value", more), *total])
