# Averages runs of the same problem, options and manifest, and keeps their spread and the
# instrument's error apart.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from joulemark.bench import manifest, options
from joulemark.bench.cooked import Measurement
from joulemark.bench.manifest import Manifest
from joulemark.errors import UsageError


@dataclass(frozen=True)
class Value:
    """A mean, and how far it may be off by what repetitions show and by the instrument.

    spread: the standard deviation (k=1) of several runs, of one run's mean by its repetitions;
    uncertainty: the instrument's (k=2), which no repetition makes less; interval: half of the
    mean's 95 % interval by the repetitions, of so many degrees of freedom; by the jobs, where it
    is of several.
    """

    mean: float
    spread: float | None = None
    uncertainty: float | None = None
    interval: float | None = None
    degrees: float = math.inf
    jobs: int = 1

    @property
    def error(self) -> float | None:
        """Both together, at 95 %."""
        known = [part for part in (self.interval, self.uncertainty) if part is not None]
        return math.hypot(*known) if known else None

    def scaled(self, factor: float) -> Value:
        """In another unit, or as a part of what has no error."""
        parts = (self.mean, self.spread, self.uncertainty, self.interval)
        scaled = (None if part is None else part * factor for part in parts)
        return Value(*scaled, self.degrees, self.jobs)

    def over(self, other: Value, is_same_instrument: bool = False) -> Value:
        """The ratio of two whose errors have nothing in common; of itself: 1.

        One instrument errs alike on both sides: a wrong gain drops out, and of a wrong offset, a
        larger part of the smaller power, the difference stays."""
        ratio = self.mean / other.mean
        if other is self:
            return Value(ratio)
        part = _instruments_part(self, other, is_same_instrument)
        uncertainty = None if part is None else ratio * part
        if None in (self.interval, other.interval):
            return Value(ratio, uncertainty=uncertainty)
        error, degrees = combined(self.standard_error, other.standard_error)
        # Else few runs that scatter little by chance had the degrees of the many beside them: of
        # ten ratios of 2 runs beside 10, all alike, one call of four told some apart.
        degrees = min(degrees, 2 * min(self.degrees, other.degrees))
        return Value(ratio, None, uncertainty, ratio * student_t(degrees) * error, degrees)

    @property
    def standard_error(self) -> tuple[float, float]:
        """Of its interval, as a part of the mean; and its degrees of freedom."""
        return self.interval / student_t(self.degrees) / self.mean, self.degrees

    def part(self, name: str) -> float | None:
        """One of its errors as a part of the mean."""
        error = getattr(self, name)
        return None if error is None or not self.mean else error / self.mean


@dataclass(frozen=True)
class Row:
    """All runs of one problem and manifest; values are None where nothing is known."""

    size: int
    runs: int
    verified: bool
    estimated: bool
    time_s: Value | None
    power_w: Value | None
    energy_j: Value | None
    performance: Value | None
    efficiency: Value | None  # operations per joule
    jobs: int = 1  # that the runs were in; one outside Slurm counts as a job
    channels: tuple[str, str] | None = None  # node and names of what measured it; None: several
    # what measured its energy: instruments, names of channels, and whether a model instead
    measured_by: frozenset[tuple[str, str, bool]] = frozenset()
    energy_runs: int | None = None  # of the runs, those with an energy; None: not told
    options: str = ""  # the program's own: `fill=0.15`

    @property
    def case(self) -> tuple[int, str]:
        """What of a series' problem it is: of one size another fill is another matrix."""
        return self.size, self.options

    @property
    def has_several_instruments(self) -> bool:
        """Whether its energies are means of unlike quantities, in proportions that nobody told."""
        return len(self.measured_by) > 1

    @property
    def energy_jobs(self) -> int:
        """Of the jobs, those with an energy."""
        return self.energy_j.jobs if self.energy_j else 0


OF_ENERGY = ("power_w", "energy_j", "efficiency")
AT_95 = (
    "±: at 95 %, by Student's t over the jobs and by the instrument, of a single run by its "
    "repetitions or by the instrument alone"
)
SAME_INSTRUMENT = (
    "An instrument's error is the same on both sides where all runs were measured by the same "
    "channels of the same node, several on each side: then of the ratio's ± it is what an offset "
    "of the instrument does more to the smaller power. Else it is taken as if it were another for "
    "each side, and so is a model's; where it is known on one side only, it is that side's."
)


def is_same_instrument(one: Row, other: Row) -> bool:
    """Whether one node's channels measured all of both."""
    return one.channels is not None and one.channels == other.channels


def is_other_instrument(one: Row, other: Row) -> bool:
    """Whether their energies are no values of one quantity: a package's is no node's, a model's no
    meter's, and a mean of several no mean of the same in other proportions."""
    is_one = one.measured_by == other.measured_by and not one.has_several_instruments
    return bool(one.energy_j and other.energy_j) and not is_one


def ratio(key: str, one: Row, other: Row) -> Value | None:
    """The other's value by the one's; none of energies that are no values of one quantity."""
    if key in OF_ENERGY and is_other_instrument(one, other):
        return None
    return ratio_of_any(key, one, other)


def ratio_of_any(key: str, one: Row, other: Row) -> Value | None:
    """Likewise, whatever measured them."""
    below, above = getattr(one, key), getattr(other, key)
    if not (below and above):
        return None
    # what is random of an instrument's error is known by the runs' scatter alone
    scatter = None not in (below.interval, above.interval)
    return above.over(below, scatter and is_same_instrument(one, other))


@dataclass(frozen=True)
class Series:
    """The rows of one program on one machine: a table, or a line of a plot."""

    benchmark: str
    kernel: str
    variant: str
    threads: int
    ranks: int
    target: str
    cpu: str
    unit: str
    device: str
    rows: tuple[Row, ...]
    nodes: int = 0  # 0: not told
    predicted: bool = False  # by a model; nothing of it was measured
    manifest: Manifest | None = None
    options: str = ""  # `fill=0.15`, where a size of this kernel was measured with several
    apart: str = (
        ""  # what of these and its manifest tells it from others of this kernel and machine
    )

    @property
    def is_of_others(self) -> bool:
        """Published or predicted, not of this suite's programs: nobody knows all of it."""
        return self.target in ("published", "model")

    @property
    def machine(self) -> str:
        """What computed: the device, or the CPU."""
        return self.device or self.cpu

    @property
    def place(self) -> str:
        """`4 ranks on 2 nodes`; unknown nodes are named, for they could be one."""
        ranks = "1 rank" if self.ranks == 1 else f"{self.ranks} ranks"
        if self.ranks > 1 and not self.nodes:
            return f"{ranks}, nodes unknown"
        return f"{ranks} on {self.nodes} nodes" if self.nodes > 1 else ranks

    @property
    def name(self) -> str:
        """`mod2am`, `jm-stream triad`."""
        same = self.kernel == self.benchmark
        return self.kernel if same else f"{self.benchmark} {self.kernel}"

    @property
    def estimated(self) -> bool:
        """Whether any energy in it comes from a model."""
        return any(row.estimated for row in self.rows)


_KEY = ("benchmark", "kernel", "variant", "threads", "ranks", "nodes", "target", "cpu", "unit")
_KEY += ("device", "manifest")
_MACHINE = ("benchmark", "kernel", "target", "cpu", "device")


def series_of(measurements: list[Measurement], wanted: str | None = None) -> list[Series]:
    """The series of a kernel, or of all kernels of a benchmark; of None, of all benchmarks."""
    chosen = [m for m in measurements if wanted in (None, m.kernel, m.benchmark)]
    if not chosen and wanted is not None:
        names = sorted({m.kernel for m in measurements} | {m.benchmark for m in measurements})
        known = f"there are: {', '.join(names)}" if names else "there are no measurements"
        raise UsageError(f"KERNEL {wanted}: nothing was measured; {known}")
    label = by_options(chosen)
    groups: dict[tuple, list[Measurement]] = {}
    for one in chosen:
        groups.setdefault((*(getattr(one, key) for key in _KEY), label(one)), []).append(one)
    order = {one.kernel: index for index, one in reversed(list(enumerate(chosen)))}
    return _told_apart(
        Series(**dict(zip((*_KEY, "options"), key)), rows=_rows(groups[key]))
        for key in sorted(
            groups, key=lambda key: (key[0], order[key[1]], *key[2:-2], key[-2] or (), key[-1])
        )
    )


def by_options(measurements: Iterable[Measurement]) -> Callable[[Measurement], str]:
    """What tells a run's options from those of others of its kernel, machine and size."""
    runs: dict[tuple, list[tuple[tuple, str]]] = {}
    for one in measurements:
        line = (one.size, one.threads, one.ranks, one.nodes)
        runs.setdefault(_machine(one), []).append((line, one.options))
    labels = {machine: options.labels(lines) for machine, lines in runs.items()}
    return lambda one: labels[_machine(one)][one.options]


def _told_apart(found: Iterable[Series]) -> list[Series]:
    """With what tells their manifests apart, so that no two look like one measured twice."""
    found = list(found)
    manifests: dict[tuple, list[Manifest | None]] = {}
    for one in found:
        manifests.setdefault(_machine(one), []).append(one.manifest)
    return [
        replace(one, apart=apart(manifest.apart(one.manifest, manifests[_machine(one)]), one))
        for one in found
    ]


def apart(builds: str, *series: Series) -> str:
    """As a title has it: what tells builds apart, and the options that others have otherwise."""
    told = next((one.options for one in series if one.options), "")
    return ", ".join(filter(None, (builds, told and f"options {told}")))


def problem(series: Series) -> tuple:
    """What was measured and on which machine, row.case apart; alike in series that differ by
    their manifest."""
    return tuple(getattr(series, key) for key in _KEY if key != "manifest")


def _machine(one: Series | Measurement) -> tuple:
    return tuple(getattr(one, key) for key in _MACHINE)


def best_of(all_series: list[Series]) -> list[Series]:
    """The fastest variant at each size, and each that failed: one series for each kernel, thread
    count, machine, manifest and options."""
    groups: dict[tuple, list[Series]] = {}
    for one in all_series:
        key = tuple(getattr(one, key) for key in (*_KEY, "options") if key != "variant")
        groups.setdefault(key, []).append(one)
    return [
        replace(
            group[0],
            variant="best of " + ", ".join(sorted(one.variant for one in group)),
            rows=tuple(_fastest(row for one in group for row in one.rows)),
        )
        if len(group) > 1
        else group[0]
        for group in groups.values()
    ]


def _fastest(rows: Iterable[Row]) -> Iterator[Row]:
    by_case: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        by_case.setdefault(row.case, []).append(row)
    for case in sorted(by_case):
        if verified := [row for row in by_case[case] if row.verified]:
            yield max(verified, key=lambda row: row.performance.mean)
        yield from (row for row in by_case[case] if not row.verified)


def _rows(measurements: list[Measurement]) -> tuple[Row, ...]:
    """One row a size, and one more where runs of that size failed their verification."""
    groups: dict[tuple, list[Measurement]] = {}
    for one in measurements:
        groups.setdefault((one.size, one.options, not one.verified), []).append(one)
    return tuple(_row(groups[key]) for key in sorted(groups))


def _row(runs: list[Measurement]) -> Row:
    first = runs[0]
    powered = [run for run in runs if run.energy_j]
    return Row(
        size=first.size,
        options=first.options,
        runs=sum(run.runs for run in runs),
        energy_runs=sum(run.runs for run in powered),
        jobs=len(_by_job([(run.size, run) for run in runs])),
        channels=_channels(powered),
        measured_by=frozenset(
            (run.manifest.instruments if run.manifest else "", run.channels, run.estimated)
            for run in powered
        ),
        verified=first.verified,
        estimated=any(run.estimated for run in powered),
        time_s=_timed([(run.time_s, run) for run in runs if run.time_s is not None]),
        power_w=_measured([(power_w(run), run) for run in powered]),
        energy_j=_measured([(run.energy_j, run) for run in powered]),
        performance=_timed(
            [(run.performance, run) for run in runs if run.performance is not None]
        ),
        efficiency=_measured([(efficiency(run), run) for run in powered]),
    )


def _channels(runs: list[Measurement]) -> tuple[str, str] | None:
    """Those that measured all of the runs; none for a model, which errs by what runs."""
    found = {
        (run.node, run.channels) if run.nodes == 1 and not run.estimated else ("", "")
        for run in runs
    }
    return found.pop() if len(found) == 1 and all(*found) else None


def power_w(run: Measurement) -> float:
    """Its mean power; the run has an energy."""
    return run.energy_j / run.time_s if run.power_w is None else run.power_w


def efficiency(run: Measurement) -> float:
    """Operations per joule, likewise."""
    return run.performance * run.time_s / run.energy_j


def _timed(pairs: list[tuple[float, Measurement]]) -> Value | None:
    """A mean of what a clock alone decides: a single run's is as good as its repetitions say."""
    if not pairs:
        return None
    mean, *interval = _mean_of_jobs(pairs)
    spread = _deviation([value for value, _ in pairs])
    value, run = pairs[0]
    if len(pairs) == 1 and run.time_spread_s is not None and run.time_s:
        spread = value * run.time_spread_s / run.time_s
        # of one run, nobody knows what another day would have shown
        interval = _interval(spread**2, run.repetitions or 1)
    return Value(mean, spread, None, *interval)


def _measured(pairs: list[tuple[float, Measurement]]) -> Value | None:
    """A mean of what the instrument decides; its systematic error does not average out."""
    if not pairs:
        return None
    mean, *interval = _mean_of_jobs(pairs)
    errors = [
        value * run.energy_uncertainty_j / run.energy_j
        for value, run in pairs
        if run.energy_uncertainty_j is not None
    ]
    return Value(
        mean,
        _deviation([value for value, _ in pairs]),
        _mean(errors) if errors else None,
        *interval,
    )


def _mean_of_jobs(
    pairs: list[tuple[float, Measurement]],
) -> tuple[float, float | None, float, int]:
    """Runs of one job share its nodes and hour: each job counts once, by the mean of its runs.

    Half of the mean's 95 % interval comes with it, of one job that by its runs; and how many."""
    jobs = [_mean(values) for values in _by_job(pairs)]
    values = jobs if len(jobs) > 1 else [value for value, _ in pairs]
    variance = _variance(values)
    interval = _interval(variance and variance / len(values), len(values))
    return _mean(jobs), *interval, len(jobs)


def _by_job(pairs: list[tuple[float, Measurement]]) -> list[list[float]]:
    """The values of each job; a run outside Slurm is one of its own."""
    jobs: dict[str | int, list[float]] = {}
    for index, (value, run) in enumerate(pairs):
        jobs.setdefault(run.job or index, []).append(value)
    return list(jobs.values())


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _variance(values: list[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = _mean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _deviation(values: list[float]) -> float | None:
    variance = _variance(values)
    return None if variance is None else math.sqrt(variance)


def _interval(variance: float | None, count: int) -> tuple[float | None, float]:
    """Half of the 95 % interval of a mean of so many, of the mean's own variance, and its degrees
    of freedom; None: one tells nothing."""
    if variance is None or count < 2:
        return None, math.inf
    return student_t(count - 1) * math.sqrt(variance), count - 1


ALPHA = 0.05  # what is not in a 95 % interval
NORMAL_FROM = 1000  # degrees of freedom


@functools.lru_cache(maxsize=1000)
def student_t(degrees: float) -> float:
    """How many standard errors a mean is off by at most, 95 times of 100."""
    low, high = 1.9, 13.0  # of an infinity of degrees, of one
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle, degrees) > ALPHA else (low, middle)
    return high


def beyond(t: float, degrees: float) -> float:
    """How often Student's t is t or more, whichever its sign; for t above 1, below which this
    series of the incomplete beta function is a long one (NIST, DLMF 8.17.8)."""
    if degrees > NORMAL_FROM:
        return 2 * statistics.NormalDist().cdf(-t)
    a, x = degrees / 2, degrees / (degrees + t * t)
    gammas = math.exp(math.lgamma(a + 0.5) - math.lgamma(a + 1))
    term, total, n = x**a * math.sqrt((1 - x) / math.pi) * gammas, 0.0, 0
    while term > 1e-12 * total:
        total += term
        term *= x * (a + 0.5 + n) / (a + 1 + n)
        n += 1
    return total


def combined(*errors: tuple[float, float]) -> tuple[float, float]:
    """Of standard errors that have nothing in common, with their degrees of freedom: that of all
    (Welch and Satterthwaite; JCGM 100:2008, G.4)."""
    variance = math.fsum(error**2 for error, _ in errors)
    rest = math.fsum(error**4 / degrees for error, degrees in errors)
    return math.sqrt(variance), variance**2 / rest if rest else math.inf


def _instruments_part(one: Value, other: Value, is_same_instrument: bool) -> float | None:
    """The instruments' error as a part of the ratio; where one's is not known the other's, or
    knowing less would make a verdict firmer."""
    parts = [value.part("uncertainty") for value in (one, other)]
    known = [part for part in parts if part is not None]
    if is_same_instrument and len(known) == 2:
        return max(known) - min(known)
    return math.hypot(*known) if known else None
