"""What a guide shows beside what a command prints: the same words, and figures near its own."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import islice

SCALES = {"n": 1e-9, "u": 1e-6, "μ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
UNIT = rf"([{''.join(SCALES)}]?)((?:J|Wh|W|F/s|F/J|s)\b)"
IN_HEAD = re.compile(rf"\[{UNIT}\]")
CELL = re.compile(r"\S+(?: \S+)*")
NUMBER = re.compile(rf"\d{{4}}-\d\d(?:-\d\d)?|(\d+(?:[.,:]\d+)*(?:e[+-]?\d+|\.)?)(?: {UNIT})?")
MARK = "\0"  # stands for a number in a word
MODELLED = 10.0  # how far figures may be apart: a model's node has 20 W idle, 120 W when busy
COUNTS = 100  # below it a whole number without a unit is a job's, a node's or a count


@dataclass(frozen=True)
class Word:
    text: str  # marks for its numbers; without the prefix of a head's unit
    figures: tuple[float | None, ...] = ()  # in units without a prefix; None: may be any but zero


ANY = Word("...")
LINE_END = Word("\n")


def _words(text: str) -> list[Word]:
    found = []
    scales: dict[int, tuple[str, float]] = {}  # unit and its size, by the end of a table's column
    for line in text.splitlines():
        own = _scales(line)
        if not line.strip() or own:
            scales = own
        figures = iter([_figure(number, line, scales) for number in NUMBER.finditer(line)])
        marked = NUMBER.sub(partial(_mark, scales), line)
        for word in re.sub("--+", "-", IN_HEAD.sub(r"[\2]", marked)).split():
            found.append(Word(word, tuple(islice(figures, word.count(MARK)))))
        if line.strip() not in ("", ANY.text):
            found.append(LINE_END)
    return found


def _mark(scales: dict[int, tuple[str, float]], number: re.Match) -> str:
    """With its unit, but for a cell that repeats its column's with another prefix."""
    unit = number[3] or ""
    return MARK if unit == scales.get(number.end(), ("", 1.0))[0] else MARK + unit


def _scales(line: str) -> dict[int, tuple[str, float]]:
    """Of a table's head; `+-` has the unit of the column before it."""
    found = {}
    scale = None
    for cell in CELL.finditer(line):
        unit = IN_HEAD.search(cell[0])
        scale = (unit[2], SCALES[unit[1]]) if unit else scale if cell[0] == "+-" else None
        if scale:
            found[cell.end()] = scale
    return found


def _figure(number: re.Match, line: str, scales: dict[int, tuple[str, float]]) -> float | None:
    """What scatters, times, dates and names of things are none."""
    try:
        value = float(number[1] or "date")
    except ValueError:
        return None
    row = IN_HEAD.search(line[: number.start()])
    column = scales.get(number.end(), ("", None))
    scale = SCALES[number[2]] if number[3] else SCALES[row[1]] if row else column[1]
    is_name = scale is None and value.is_integer() and 0 < value < COUNTS
    scatters = line[: number.start()].endswith("± ")
    return None if is_name or scatters else value * (scale or 1)


def begins(printed: str, shown: str, factor: float = MODELLED) -> bool:
    """Whether these are the first lines; `...` stands for any words, in a word for a part."""
    return _begin(_words(printed), _words(shown), factor)


def _begin(printed: list[Word], shown: list[Word], factor: float) -> bool:
    if not shown:
        return True
    if shown[0] == ANY:
        rest = range(len(printed) + 1)
        return any(_begin(printed[start:], shown[1:], factor) for start in rest)
    return (
        bool(printed)
        and _is_same(printed[0], shown[0], factor)
        and _begin(printed[1:], shown[1:], factor)
    )


def _is_same(printed: Word, shown: Word, factor: float) -> bool:
    pattern = re.escape(shown.text).replace(r"\.\.\.", r"\S*")
    figures = zip(printed.figures, shown.figures)
    return re.fullmatch(pattern, printed.text) is not None and all(
        (one == 0) == (other == 0)
        and (not one or not other or 1 / factor <= one / other <= factor)
        for one, other in figures
    )
