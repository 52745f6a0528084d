# What a storage server's power is made of: what it draws idle, and joules for what it works.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""P = idle_w + costs . rates, with rates of bytes read, bytes written and metadata operations, and
no cost below 0: weighted least squares over the server's own history, by that set of kinds whose
costs are not negative and which leaves the least. What is written goes to disks over the next
late_s seconds, that one of LATE_S with which the least is left. Moments that are FAR off count in
the errors alone: a server that is away, whose clients ask again and again, or one that checks its
disks, tells nothing of costs.

The covariance is that of least squares, larger where what is left of a moment is like that of the
moment before it.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LATE_S = (0.0, 2.0, 5.0, 10.0, 20.0, 40.0)
KINDS = 3  # read, written, operations
SETS = [
    (0, *chosen)  # 0 is idle
    for count in range(KINDS + 1)
    for chosen in itertools.combinations(range(1, KINDS + 1), count)
]
LEAST = 100  # moments: fewer tell no costs, and not by how much they fail
TOGETHER = 10  # moments, in which it is looked for what is not linear
FAR = 4.0  # standard deviations, which are taken from the median: of a normal law's
SD_OF_MEDIAN = 1.4826
TURNS = 20  # of leaving out what is far off, and fitting again
USUAL = 0.75  # of a kind's rates: the first fit is without greater ones, which could draw it
MOST_FAR = 0.2  # of the moments with a kind of work: where more are far off, none is left out
FEW = 60  # moments with a kind of work do not tell that
Vector = list[float]
Matrix = list[Vector]


@dataclass(frozen=True)
class Moment:
    """A time between two readings of the meter, with what the server did meanwhile."""

    seconds: float
    mean_w: float
    rates: tuple[float, ...]  # bytes a second read and written, operations a second


@dataclass(frozen=True)
class Model:
    """costs: J a byte read, a byte written, an operation; covariance: of (idle_w, *costs)."""

    idle_w: float
    costs: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    noise_w: float  # SD of a moment's mean power where little is done
    lasting: float  # by how much noise of one moment that is like the next's is more than others
    misfit: float  # by how much of what the costs say a server is not linear, RMS
    late_s: float
    busy: tuple[int, ...]  # moments with each kind of work, by which its cost is known

    def above_idle(self, work: Sequence[float]) -> float:
        """J of bytes and operations, or W of rates."""
        return math.fsum(cost * amount for cost, amount in zip(self.costs, work))

    def variance(self, weights: Sequence[float]) -> float:
        """Of weights . (idle_w, *costs)."""
        return max(0.0, _times(weights, [_times(row, weights) for row in self.covariance]))


def fit(of_late: Callable[[float], Sequence[Moment]]) -> Model | None:
    """of_late: the history, with what is written late by so much; None: it is too short."""
    found = [one for late_s in LATE_S if (one := _model(of_late(late_s), late_s))]
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _model(moments: Sequence[Moment], late_s: float) -> tuple[float, Model] | None:
    """What it leaves, W^2 s, and the model. Each kind's rate goes by its greatest: bytes and
    operations are too far apart for one matrix."""
    if len(moments) < LEAST:
        return None
    units = [1.0, *(max(column) or 1.0 for column in zip(*(one.rates for one in moments)))]
    rows = [[a / unit for a, unit in zip((1.0, *one.rates), units)] for one in moments]
    powers = [one.mean_w for one in moments]
    found = _near(moments, rows, powers)
    if found is None:
        return None
    fitted, weights, limits_w, beside = found
    kept = [one for one, weight in zip(moments, weights) if weight]
    busy = _busy(kept)
    # What was set to 0 is as little known as it was before.
    all_used = (0, *(kind for kind, n in enumerate(busy, 1) if n))
    inverse = (_solve(fitted.products, all_used) or (None, fitted.inverse))[1]
    # What is far off counts as the farthest that is kept (Tukey and McLaughlin 1963).
    left = [max(-most_w, min(most_w, one)) for most_w, one in zip(limits_w, fitted.left)]
    squares = math.fsum(one.seconds * w * w for one, w in zip(moments, left))
    lasting = _lasting(left)
    more = lasting * len(kept) / (len(kept) - KINDS - 1)
    spread = _spread(inverse, rows, [weight * w for weight, w in zip(weights, left)])
    covariance = tuple(
        tuple((more * value + a * b) / unit / other for value, b, other in zip(row, beside, units))
        for row, a, unit in zip(spread, beside, units)
    )
    idle_w, *costs = (value / unit for value, unit in zip(fitted.values, units))
    loads = [_times(fitted.values[1:], row[1:]) for row in rows]
    left_of = list(zip(loads, fitted.left))
    (noise_w, _), (_, misfit) = _noise(left_of), _noise(_together(left_of))
    made = Model(idle_w, tuple(costs), covariance, noise_w, lasting, misfit, late_s, busy)
    return squares, made


def _busy(moments: Sequence[Moment]) -> tuple[int, ...]:
    """Moments with each kind of work."""
    return tuple(sum(one.rates[kind] > 0 for one in moments) for kind in range(KINDS))


def _near(
    moments: Sequence[Moment], rows: Matrix, powers: Vector
) -> tuple[_Fitted, Vector, Vector, Vector] | None:
    """The fit to moments that are not far off, their weights, 0 of others, and how far each may
    be off; where it is the fit to all, what another one would have had beside its values."""
    usual = [_part(sorted(filter(None, column)), USUAL) for column in list(zip(*rows))[1:]]
    near = [all(rate <= most for rate, most in zip(row[1:], usual)) for row in rows]
    weights = [one.seconds for one in moments]
    whole = _fitted(rows, powers, weights)
    if whole is None:
        return None
    fitted, limits_w = whole, [math.inf] * len(moments)
    for _ in range(TURNS):
        part = [weight * is_near for weight, is_near in zip(weights, near)]
        found = _fitted(rows, powers, part)
        if found is None:
            break
        fitted, limits_w = found, _limits(found, rows, near)
        before, near = near, [abs(w) <= most for w, most in zip(fitted.left, limits_w)]
        if near == before:
            break
    kept = [one for one, is_near in zip(moments, near) if is_near]
    kinds = list(zip(_busy(kept), _busy(moments)))
    if len(kept) >= LEAST and all(n >= (1 - MOST_FAR) * m for n, m in kinds if m >= FEW):
        part = [weight * is_near for weight, is_near in zip(weights, near)]
        return fitted, part, limits_w, [0.0] * (1 + KINDS)
    beside = [a - b for a, b in zip(fitted.values, whole.values)]
    return whole, weights, [math.inf] * len(moments), beside


def _limits(fitted: _Fitted, rows: Matrix, near: Sequence[bool]) -> Vector:
    """Where much is done, more is left: by the quarter of loads that a moment is of, or by those
    without any. What was near tells how far may be."""
    loads = [_times(fitted.values[1:], row[1:]) for row in rows]
    rests = [at for at, row in enumerate(rows) if not any(row[1:])]
    order = sorted(set(range(len(rows))) - set(rests), key=loads.__getitem__)
    quarters = [order[len(order) * i // 4 : len(order) * (i + 1) // 4] for i in range(4)]
    sizes = [abs(one) for one in fitted.left]
    middle_w = statistics.median(size for size, is_near in zip(sizes, near) if is_near)
    limits_w = [0.0] * len(rows)
    for part in (rests, *quarters):
        known = [sizes[at] for at in part if near[at]]
        enough = len(known) >= len(part) / 4
        most_w = max(middle_w, statistics.median(known)) if known and enough else middle_w
        for at in part:
            limits_w[at] = FAR * SD_OF_MEDIAN * most_w
    return limits_w


def _spread(inverse: Matrix, rows: Matrix, off: Vector) -> Matrix:
    """The covariance of the values, of moments each as uncertain as what is left of it; off: that,
    by its weight (White 1980)."""
    squares = [one * one for one in off]
    columns = list(zip(*rows))
    middle = [
        [math.fsum(s * a * b for s, a, b in zip(squares, one, other)) for other in columns]
        for one in columns
    ]
    half = [[_times(row, column) for column in zip(*middle)] for row in inverse]
    return [[_times(row, other) for other in inverse] for row in half]


def _part(ordered: Sequence[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


@dataclass(frozen=True)
class _Fitted:
    """products: of rows with rows and powers; left: W of each moment beside the values."""

    products: Matrix
    values: Vector
    inverse: Matrix
    left: Vector


def _fitted(rows: Matrix, powers: Vector, weights: Vector) -> _Fitted | None:
    """By that one of SETS which leaves the least."""
    columns = [*zip(*rows), powers]
    products = [
        [_times([w * a for w, a in zip(weights, one)], other) for other in columns]
        for one in columns[:-1]
    ]
    found = []
    for values, inverse in (one for used in SETS if (one := _solve(products, used))):
        if min(values) >= 0:
            left = [power - _times(values, row) for power, row in zip(powers, rows)]
            squares = _times(weights, [one * one for one in left])
            found.append((squares, _Fitted(products, values, inverse, left)))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _noise(left_of: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """W beside the model where little is done, and what grows with the load, over it.

    left_of: (load, left).
    """
    found = sorted(left_of)
    n_quiet = max(2, len(found) // 4)
    quiet, busy = found[:n_quiet], found[n_quiet:]
    noise_w = math.sqrt(math.fsum(left * left for _, left in quiet) / len(quiet))
    loads = math.fsum(load * load for load, _ in busy)
    more = math.fsum(left * left - noise_w**2 for _, left in busy)
    return noise_w, math.sqrt(max(0.0, more / loads)) if loads else 0.0


def _together(left_of: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Means of so many moments that it no longer matters when in a round something was done."""
    parts = [left_of[at : at + TOGETHER] for at in range(0, len(left_of), TOGETHER)]
    return [tuple(math.fsum(column) / len(part) for column in zip(*part)) for part in parts]


def _solve(products: Matrix, used: Sequence[int]) -> tuple[Vector, Matrix] | None:
    """Least squares' values, 0 of what is not used, and the inverse; None: it has no inverse."""
    small = _inverse([[products[i][j] for j in used] for i in used])
    if small is None:
        return None
    values, inverse = [0.0] * (KINDS + 1), [[0.0] * (KINDS + 1) for _ in range(KINDS + 1)]
    for i, row in zip(used, small):
        values[i] = _times(row, [products[j][-1] for j in used])
        for j, value in zip(used, row):
            inverse[i][j] = value
    return values, inverse


def _inverse(matrix: Matrix) -> Matrix | None:
    """Of a symmetric, positive matrix of a few rows, by Gauss and Jordan."""
    size = len(matrix)
    rows = [[*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for i in range(size):
        pivot = rows[i][i]
        if pivot <= 1e-9 * matrix[i][i] or pivot <= 0:
            return None
        rows[i] = [value / pivot for value in rows[i]]
        for j in range(size):
            if j != i:
                factor = rows[j][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i])]
    return [row[size:] for row in rows]


def _lasting(left: Vector) -> float:
    """By how much the variance of a sum is more than that of so many: of a process of first
    order."""
    together = _times(left, left)
    like = _times(left[1:], left[:-1]) / together if together else 0.0
    like = min(0.9, max(0.0, like))
    return (1 + like) / (1 - like)


def _times(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other))
