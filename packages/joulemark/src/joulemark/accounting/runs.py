# Sorts a job's node records into runs: Slurm may start (requeue) a job more than once.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from dataclasses import dataclass, field

from joulemark.store.nodes import LEAST_TIME_NS, UNKNOWN_RUN, SlurmRun

# Slurm holds a requeued job back for two minutes; nodes of one run start within seconds.
BETWEEN_RUNS_NS = 30_000_000_000
# So far apart nodes' clocks may be: munge takes no older credential.
CLOCKS_APART_NS = 300_000_000_000


@dataclass
class Run:
    """The records of one start of a job, one a node, and what Slurm said of it."""

    number: int
    records: list[dict] = field(default_factory=list)
    silent: dict[str, str] = field(default_factory=dict)  # node -> why there is no record
    slurm: SlurmRun = field(default_factory=SlurmRun)
    before_ns: int | None = None  # when the run before it ended
    next_ns: int | None = None  # when Slurm started the job again

    def nodes(self) -> set[str]:
        """Those that sent a record."""
        return {record["node"] for record in self.records}


def runs_of(found: list[tuple[int, dict]], said: dict[int, SlurmRun]) -> list[Run]:
    """All runs of a job, the first first; a pure function, so that the order of merges is none's.

    found: (run_key, record) sorted by node; said: what Slurm said, by the count of restarts.
    """
    runs: dict[int, Run] = {}
    timed, excuses = [], []
    for run_key, record in found:
        if run_key == UNKNOWN_RUN:
            excuses.append(record)
        elif run_key < LEAST_TIME_NS:
            runs.setdefault(run_key, Run(run_key)).records.append(record)
        else:
            timed.append((run_key, record))
    later = _add_timed(runs, _as_said(_by_time(timed), said), said)
    for restart, slurm in said.items():
        number = restart + later
        if slurm.nodes or number in runs:
            runs.setdefault(number, Run(number)).slurm = slurm
    _add_excuses(runs, excuses)
    for run in runs.values():
        run.records.sort(key=lambda record: record["node"])
        silent = set(run.slurm.nodes) - run.nodes()
        run.silent = {node: run.slurm.why_missing for node in sorted(silent)}
    ordered = [runs[number] for number in sorted(runs)]
    for run, later in zip(ordered, ordered[1:]):
        run.next_ns = min(map(_start_ns, filter(_has_accounts, later.records)), default=None)
        later.before_ns = max(map(_end_ns, filter(_has_accounts, run.records)), default=None)
    return ordered


def _has_accounts(record: dict) -> bool:
    return bool(record["accounts"])


def _by_time(timed: list[tuple[int, dict]]) -> list[list[dict]]:
    """Groups of records that ran together; of two of one node the later or more complete."""
    groups: list[dict[str, dict]] = []
    last_end_ns = 0
    for start_ns, record in sorted(timed, key=lambda pair: (pair[0], pair[1]["node"])):
        end_ns = _end_ns(record)
        node = record["node"]
        is_later = start_ns >= last_end_ns
        is_new = node in groups[-1] if groups else True
        if not groups or (is_later and (is_new or start_ns > last_end_ns + BETWEEN_RUNS_NS)):
            groups.append({})
            last_end_ns = 0
        known = groups[-1].get(node)
        if known is None or _rank(record) > _rank(known):
            groups[-1][node] = record
        last_end_ns = max(last_end_ns, end_ns)
    return [list(group.values()) for group in groups]


def _as_said(groups: list[list[dict]], said: dict[int, SlurmRun]) -> list[list[dict]]:
    """Where these are more than the runs that Slurm knows, nodes of other clocks ran together."""
    groups = list(groups)
    while said and len(groups) > max(said) + 1:
        pairs = enumerate(zip(groups, groups[1:]))
        near = [(_apart_ns(*pair), at) for at, pair in pairs if _may_be_one(*pair, said)]
        if not near or min(near)[0] > CLOCKS_APART_NS:
            break
        at = min(near)[1]
        groups[at : at + 2] = [groups[at] + groups[at + 1]]
    return groups


def _may_be_one(one: list[dict], other: list[dict], said: dict[int, SlurmRun]) -> bool:
    nodes = [record["node"] for record in (*one, *other)]
    known = any(set(nodes) <= set(slurm.nodes) for slurm in said.values())
    return known and len(set(nodes)) == len(nodes)


def _apart_ns(one: list[dict], other: list[dict]) -> int:
    return min(map(_start_ns, other)) - max(map(_end_ns, one))


def _start_ns(record: dict) -> int:
    return min(account["start_ns"] for account in record["accounts"])


def _end_ns(record: dict) -> int:
    return max(account["end_ns"] for account in record["accounts"])


def _rank(record: dict) -> tuple:
    return record["missing"] is None, _end_ns(record)


def _add_timed(runs: dict[int, Run], groups: list[list[dict]], said: dict[int, SlurmRun]) -> int:
    """Records without a count are of the last runs, or of those before the counted ones.

    Returns how much greater a run's number is than Slurm's count: when job ids begin anew, the
    record of an old job of the same number is taken for an earlier run.
    """
    is_counted = bool(runs)
    last = min(runs) - 1 if is_counted else max(len(groups) - 1, *said, 0)
    for number, group in zip(range(last, last - len(groups), -1), reversed(groups)):
        runs[number] = Run(number, group)
    return 0 if is_counted or not said else last - max(said)


def _add_excuses(runs: dict[int, Run], excuses: list[dict]) -> None:
    """A node that knows no times tells of the last run that has no record of it."""
    for record in excuses:
        node = record["node"]
        lacking = [number for number, run in runs.items() if node not in run.nodes()]
        expected = [n for n in lacking if node in runs[n].slurm.nodes or not runs[n].slurm.nodes]
        if expected:
            runs[max(expected)].records.append(record)
        elif not runs:
            runs[0] = Run(0, [record])
