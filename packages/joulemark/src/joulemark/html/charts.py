# Figures as SVG within a page: bars, and charts of lines; pointing at a value says its number.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from joulemark import units
from joulemark.bench.stats import Value
from joulemark.html.page import escaped
from joulemark.layout import ESTIMATE_MARK
from joulemark.plots.model import HOLLOW, PARTLY_HOLLOW, VALUES, Axis, Chart, Line, decimal
from joulemark.plots.ticks import Scale

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 610, 10, 40  # BOTTOM: from below; right of it half a number
NAMES, BAR = 190, 22  # a bar's name has the left, and so many pixels from one to the next
LONGEST = 27  # letters of a name beside its bar; its tooltip has all of it
COLOURS, DASHES = 7, 4  # of page.css
MARKS = (  # a point's outline
    "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "M-3.2-3.2h6.4v6.4h-6.4z",
    "M0-4.6L4.6 0 0 4.6-4.6 0z",
    "M0-4.4L4.2 3.2h-8.4z",
)


class Look(NamedTuple):
    """Of a line: colour and dash are classes; dash and mark tell 16 apart in grey print."""

    colour: str
    dash: str
    outline: str

    @classmethod
    def of(cls, index: int) -> Look:
        """The how manieth line it is."""
        marks = len(MARKS)
        dash = (index + index // marks) % DASHES
        return cls(f"c{index % COLOURS}", f"d{dash}", MARKS[index % marks])

    @property
    def curve(self) -> str:
        """Its classes."""
        return f"curve {self.colour} {self.dash}"

    def mark(self, place: Iterable[float], face: str = "") -> str:
        """A point."""
        at = " ".join(map(str, place))
        return (
            f'<path class="mark {self.colour}{face}" transform="translate({at})" '
            f'd="{self.outline}"/>'
        )


class Bar(NamedTuple):
    """A value in SI, with its error at k=2; lacks: marks behind its name, `(2 of 3)`."""

    name: str
    value: float
    error: float
    estimated: bool
    lacks: str = ""


def bars(title: str, axis: Axis, found: Sequence[Bar], notes: Sequence[str]) -> str:
    """One below the other, with their error bars."""
    exponent = axis.exponent([one.value for one in found])
    most = max(one.value + one.error for one in found) / 10.0**exponent
    scale = Scale.of(Axis("", from_zero_to=most), [most], NAMES, RIGHT)
    height = TOP + BAR * len(found) + BOTTOM
    drawn = _grid_across(scale, axis.text(exponent), height - BOTTOM)
    for index, one in enumerate(found):
        drawn += _bar(one, axis, exponent, scale, TOP + BAR * index + 3)
    warning = PARTLY_HOLLOW if any(one.estimated for one in found) else ""
    return _figure(title, notes, warning, height, drawn)


def _bar(one: Bar, axis: Axis, exponent: int, scale: Scale, top: int) -> str:
    room = LONGEST - len(one.lacks)
    name = one.name if len(one.name) <= room else f"{one.name[: room - 1]}…"
    mark = ESTIMATE_MARK if one.estimated else ""
    value = _said(Value(one.value, uncertainty=one.error), axis, exponent, one.estimated)
    said = f"{one.name}: {mark}{value}{one.lacks}"
    ends = (one.value - one.error, one.value, one.value + one.error)
    low, end, high = (scale.at(value / 10.0**exponent) for value in ends)
    return (
        f"<g><title>{escaped(said)}</title>"
        f'<text class="end" x="{NAMES - 8}" y="{top + 12}">{escaped(name + one.lacks)}</text>'
        f'<rect class="c0{_face(one)}" x="{NAMES}" y="{top}" width="{end - NAMES:.1f}" '
        f'height="16"/><path class="thin" d="M{low} {top + 4}v8m0-4H{high}m0-4v8"/></g>'
    )


def looks(figures: Iterable[Sequence[Line]]) -> dict[str, Look]:
    """Of the lines' identities, the same in all figures: the first that none beside it has."""
    beside: dict[str, set[str]] = {}
    for lines in figures:
        names = [line.identity for line in lines]
        for name in names:
            beside.setdefault(name, set()).update(names)
    places: dict[str, int] = {}
    for name, others in beside.items():
        taken = {places.get(other) for other in others}
        places[name] = next(place for place in itertools.count() if place not in taken)
    return {name: Look.of(place) for name, place in places.items()}


def chart(
    what: Chart, lines: Sequence[Line], look_of: dict[str, Look], has_marks: bool = True
) -> str:
    """Lines with their errors, those of runs thin, the instrument's wide; the legend is below.

    look_of: as looks() has them."""
    plane = _Plane(what, lines)
    with_looks = [(line, look_of[line.identity]) for line in lines]
    drawn = plane.grid()
    for line, look in with_looks:
        drawn += f"<g><title>{escaped(line.label)}</title>"
        drawn += plane.path(f"ideal {look.colour}", line.ideal) if line.ideal else ""
        means = [(x.mean, y.mean) for x, y in line.points]
        drawn += plane.path(look.curve, means)
        drawn += "".join(plane.mark(line, look, point) for point in line.points if has_marks)
        drawn += "</g>"
    legend = [
        (look.curve, look.mark((15, 5), _face(line)) if has_marks else "", line.label)
        for line, look in with_looks
    ]
    legend += [("ideal c6", "", "ideal")] if any(line.ideal for line in lines) else []
    warning = HOLLOW if any(line.estimated for line in lines) else ""
    return _figure(what.title, what.notes, warning, HEIGHT, drawn, legend)


class _Plane:
    """Where the points of a chart lie, and its ideal lines."""

    def __init__(self, what: Chart, lines: Sequence[Line]):
        columns = list(zip(*(point for line in lines for point in line.points)))
        ideals = list(zip(*(point for line in lines for point in line.ideal))) or [(), ()]
        self._axes = (what.across, what.up)
        means = [[value.mean for value in column] for column in columns]
        self._exponents = [axis.exponent(found) for axis, found in zip(self._axes, means)]
        places = ((LEFT, RIGHT), (HEIGHT - BOTTOM, TOP))
        self._scales = []
        for axis, column, ideal, exponent, place in zip(
            self._axes, columns, ideals, self._exponents, places
        ):
            ends = [one.mean + error for one in column for error in (0, *_errors(one).values())]
            scale = Scale.of(axis, [end / 10.0**exponent for end in (*ends, *ideal)], *place)
            self._scales.append(scale)

    def grid(self) -> str:
        """With the ticks' numbers and the axes' names."""
        across, up = (axis.text(power) for axis, power in zip(self._axes, self._exponents))
        drawn = _grid_across(self._scales[0], across, HEIGHT - BOTTOM)
        for tick in self._scales[1].ticks:
            y = self._scales[1].at(tick)
            drawn += f'<path class="grid" d="M{LEFT} {y}H{RIGHT}"/>'
            drawn += f'<text class="end" x="{LEFT - 6}" y="{y + 4}">{decimal(tick)}</text>'
        turned = f'x="14" y="{HEIGHT // 2}" transform="rotate(-90 14 {HEIGHT // 2})"'
        return f'{drawn}<text class="middle" {turned}>{escaped(up)}</text>'

    def path(self, look: str, points: Iterable[Sequence[float]]) -> str:
        """From point to point."""
        places = "L".join(f"{x} {y}" for x, y in map(self._place, points))
        return f'<path class="{look}" d="M{places}"/>'

    def mark(self, line: Line, look: Look, point: tuple[Value, Value]) -> str:
        """A point with its error bars, and what it says."""
        means = [value.mean for value in point]
        texts = [*map(_said, point, self._axes, self._exponents)]
        texts += ["estimated"] if line.estimated else []
        drawn = f"<g><title>{escaped(f'{line.label}: ' + ', '.join(texts))}</title>"
        for at, value in enumerate(point):
            for kind, error in _errors(value).items():
                ends = (value.mean - error, value.mean + error)
                bar = [(end, means[1]) if at == 0 else (means[0], end) for end in ends]
                drawn += self.path(f"{kind} {look.colour}", bar)
        return f"{drawn}{look.mark(self._place(means), _face(line))}</g>"

    def _place(self, point: Sequence[float]) -> list[float]:
        found = zip(self._scales, point, self._exponents)
        return [scale.at(value / 10.0**exponent) for scale, value, exponent in found]


def _errors(value: Value) -> dict[str, float]:
    found = {"broad": value.uncertainty, "bar": value.interval}
    return {kind: error for kind, error in found.items() if error}


def _face(one: Bar | Line) -> str:
    return " hollow" if one.estimated else ""


def _said(value: Value, axis: Axis, exponent: int, estimated: bool = False) -> str:
    """`3.00 kJ ± 60.2 J`; of an estimate no digit that its error leaves unknown; a count says its
    axis: `nodes 4`."""
    if axis.kind != VALUES:
        return f"{axis.label.lower()} {decimal(value.mean)}"
    numbers = [value.mean] if value.error is None else [value.mean, value.error]
    if not axis.is_scaled:
        return " ± ".join(map(units.digits, numbers)) + f" {axis.unit}"
    unit = f" {units.prefix(exponent)}{axis.unit}"
    least = value.error if estimated and value.error else 0.0
    cells = [units.cell(number, exponent, axis.unit, least) for number in numbers]
    return " ± ".join(text if " " in text else text + unit for text in cells)


def _grid_across(scale: Scale, name: str, bottom: int) -> str:
    drawn = f'<text x="{scale.begin}" y="{bottom + 33}">{escaped(name)}</text>'
    for tick in scale.ticks:
        x = scale.at(tick)
        drawn += f'<path class="grid" d="M{x} {TOP}V{bottom}"/>'
        drawn += f'<text class="middle" x="{x}" y="{bottom + 17}">{decimal(tick)}</text>'
    return drawn


def _figure(
    title: str, notes: Iterable[str], warning: str, height: int, drawn: str, legend=()
) -> str:
    said = "".join(f"<p>{escaped(note)}</p>" for note in notes)
    said += f'<p class="warning">{escaped(warning)}</p>' if warning else ""
    keys = "".join(
        f'<li><svg viewBox="0 0 30 10" aria-hidden="true"><path class="{curve}" d="M0 5H30"/>'
        f"{mark}</svg>{escaped(label)}</li>"
        for curve, mark, label in legend
    )
    return (
        f"<figure><figcaption>{escaped(title)}{said}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escaped(title)}">'
        f'{drawn}</svg><ul class="legend">{keys}</ul></figure>'
    )
