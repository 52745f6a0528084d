# Where nodes' energy is told: over the broker, by Slurm in one answer, or by a step on each node.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Iterator

from joulemark import config, hostlist
from joulemark.broker import OPERATOR, Broker
from joulemark.doctor import everywhere, slurmconf
from joulemark.doctor.site import Site, ask
from joulemark.errors import UsageError, UserError
from joulemark.top import mqtt
from joulemark.top.nodes import Nodes
from joulemark.top.streams import STEP_NAME, Streams, joulemarkctl

JOBS_EVERY_S = 10.0
AGAIN_S = 30.0  # a node that was asked in vain is asked again
REFUSED = "not permitted"
WITHOUT_SPLIT = "; without --split Slurm tells, where it has AcctGatherNodeFreq"
NO_POWER = ("0", "n/s")


def by_broker(user: str | None, password_file: str | None) -> tuple[Broker, str] | None:
    """The broker and the cluster's name, where nodes use it and let us in."""
    path = config.find()
    if not path.exists():
        return None
    site = config.load(path)
    if (user or password_file) and not site.by_broker:
        given = f"--user {user}" if user else "--password-file"
        raise UsageError(f"{path}: {given} is for a broker, and transport is not mqtt")
    if not site.by_broker:
        return None
    broker = Broker.load(path, OPERATOR, user, password_file)
    return (broker, site.cluster) if user or password_file or broker.is_open_to_us else None


def listen(nodes: str, every_s: float, broker: Broker, cluster: str) -> Nodes:
    """The nodes of a host list, or `all`: they tell it over the broker."""
    names = everywhere.names(_site(), nodes)
    away = _away(names)
    about = f"By the nodes, over the broker {broker.host}."
    named = None if nodes == "all" else names
    return Nodes(names, mqtt.Live(broker, cluster, every_s, away, named), about, every_s)


def choose(nodes: str, every_s: float, split: bool, wait_s: float) -> Nodes:
    """The nodes of a host list, or `all`; split: what of their energy jobs have must be told."""
    frequency_s = _node_frequency_s()
    names = None if nodes == "all" else hostlist.expand(nodes)
    if frequency_s and not split:
        known = [name for name, _ in _slurms_nodes(names)]
        about = f"By Slurm itself, which asks nodes each {frequency_s} s (AcctGatherNodeFreq);"
        about += " whether it is estimated it does not tell."
        return Nodes(known, Slurm(names, known, every_s), about, every_s)
    names = names or everywhere.names(_site(), nodes)
    away = _away(names)
    here = [name for name in names if name not in away]
    about = "By a job on each node, with a CPU of it, which is one of its jobs."
    return Nodes(names, Visits(here, every_s, wait_s), about, every_s, away)


def _away(names: list[str]) -> dict[str, str]:
    """Which of them would be waited for in vain, and why."""
    away = everywhere.away()
    return {name: away[name] for name in names if name in away}


def _site() -> Site:
    path = slurmconf.find()
    try:
        return Site(slurmconf.SlurmConf(path), None)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}: set SLURM_CONF to the cluster's") from None


def _scontrol(*words: str) -> str:
    answer = ask("scontrol", *words)
    if not answer.good:
        said = " ".join((answer.err or answer.out).split())
        raise UserError(f"scontrol {' '.join(words)}: {said}")
    return answer.out


def _node_frequency_s() -> int:
    """0: Slurm does not ask its nodes."""
    found = re.search(r"^AcctGatherNodeFreq\s*=\s*(\d+)", _scontrol("show", "config"), re.M)
    return int(found[1]) if found else 0


def _slurms_nodes(names: list[str] | None) -> list[tuple[str, dict[str, str]]]:
    """What it says of these nodes, or of all."""
    text = _scontrol("-o", "show", "nodes", *([",".join(names)] if names else []))
    rows = (dict(re.findall(r"(\w+)=(\S*)", line)) for line in text.splitlines())
    return [(row["NodeName"], row) for row in rows if "NodeName" in row]


class Slurm:
    """One answer of slurmctld has all nodes' power, as old as AcctGatherNodeFreq lets it be."""

    def __init__(self, names: list[str] | None, known: list[str], every_s: float):
        """names: what is asked for, None: all; known: which these are."""
        self._names, self._known, self._every_s = names, known, every_s
        self._next_s = 0.0
        self._jobs: Counter[str] | None = None
        self._jobs_s = -math.inf

    def __enter__(self) -> Slurm:
        return self

    def __exit__(self, *_) -> None:
        """Nothing runs between its answers."""

    def until(self, moment_s: float) -> Iterator[tuple[str, str]]:
        """See Source."""
        while (wake_s := min(moment_s, self._next_s)) > (now_s := time.monotonic()):
            time.sleep(wake_s - now_s)
        if self._next_s <= time.monotonic():
            self._next_s = time.monotonic() + self._every_s
            yield from self._ask()
        time.sleep(max(0.0, moment_s - time.monotonic()))

    def _ask(self) -> Iterator[tuple[str, str]]:
        if time.monotonic() - self._jobs_s >= JOBS_EVERY_S:
            self._jobs, self._jobs_s = _jobs_on_nodes(), time.monotonic()
        try:
            told = _slurms_nodes(self._names)
        except UserError as error:  # slurmctld may be away for a moment
            yield from ((name, str(error)) for name in self._known)
            return
        for name, row in told:
            watts = row.get("CurrentWatts", "n/s")
            if watts in NO_POWER:
                yield name, f"Slurm has no power of it: {row.get('State', '')}"
            else:
                jobs = "" if self._jobs is None else f" jobs={self._jobs[name]}"
                yield name, f"time_ns={time.time_ns()} watts={watts}{jobs}"


def _jobs_on_nodes() -> Counter[str] | None:
    """None: squeue gave no answer."""
    answer = ask("squeue", "-h", "-t", "RUNNING,SUSPENDED", "-o", "%N")
    if not answer.good:
        return None
    lists = [line for line in answer.out.splitlines() if line]
    return Counter(name for line in lists for name in hostlist.expand(line, "squeue"))


class Visits:
    """A job on each node, many begun at once, each of which tells as long as it is listened to."""

    def __init__(self, names: list[str], every_s: float, wait_s: float):
        self._waiting = list(names)
        self._every_s, self._wait_s = every_s, wait_s
        self._begun: set[str] = set()  # that have not answered yet
        self._later: list[tuple[float, str]] = []
        self._streams = Streams()

    def __enter__(self) -> Visits:
        return self

    def __exit__(self, *reason) -> None:
        self._streams.__exit__(*reason)

    def until(self, moment_s: float) -> Iterator[tuple[str, str | None]]:
        """See Source."""
        self._begin_more()
        for name, line in self._streams.until(moment_s):
            self._begun.discard(name)
            if line is None:
                self._later.append((time.monotonic() + AGAIN_S, name))
            self._begin_more()
            yield name, f"{line}{WITHOUT_SPLIT}" if line and REFUSED in line else line

    def _begin_more(self) -> None:
        while self._later and self._later[0][0] <= time.monotonic():
            self._waiting.append(self._later.pop(0)[1])
        while self._waiting and len(self._begun) < everywhere.AT_ONCE:
            name = self._waiting.pop(0)
            self._begun.add(name)
            command = [joulemarkctl(), "node", f"--every={self._every_s:g}"]
            words = everywhere.srun(name, self._wait_s, f"--job-name={STEP_NAME}")
            self._streams.start(name, [*words, *command])
