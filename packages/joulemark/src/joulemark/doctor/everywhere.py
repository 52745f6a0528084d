# The same doctor on every node, by srun, and what only a look at all of them shows.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed

from joulemark import hostlist, progress
from joulemark.doctor.finding import ERROR, WARNING, Finding
from joulemark.doctor.site import Site, ask

AT_ONCE = 128  # half of slurmctld's threads: its other clients are heard, too
# A node whose task has begun looks for so long at most; one that is asked late has less, but more
# than LOOK gives a program: of 1000 nodes the last ones may hang, and all are told within 15 s.
LOOK_S, SHORTEST_LOOK_S = 7.0, 4.0
# Longer than a job's start takes; a node's word is compared with the time it had to speak in.
CLOCK_S = 1.0
AWAY = ("down", "drain", "fail", "unknown", "power", "reboot", "maint", "future", "not_respond")
BUSY = "Requested nodes are busy"  # srun's word: there is no CPU, but nothing is wrong
#: of a NodeName line, what is each node's own: nodes whose lines agree in the rest are of one kind
OWN_KEYS = {
    "nodename",
    "nodeaddr",
    "nodehostname",
    "bcastaddr",
    "port",
    "state",
    "reason",
    "weight",
}
# The findings are the answer: a task that fails for them would be a FAILED job in the accounting.
# One program that hangs there must not cost the node's other findings.
LOOK = 'JOULEMARK_ANSWER_S=3 "$0" -m joulemark doctor --json || :'


def visit(site: Site, nodes: str, wait_s: float) -> Iterator[Finding]:
    """One task on each node, many at once; findings come as nodes answer.

    nodes: a host list, or `all`; wait_s: how long for a node's place.
    """
    named, gone = names(site, nodes), away()
    for name in named:
        if name in gone:
            fix = "asked when it is back: `joulemark doctor --nodes` again"
            yield Finding("node", ERROR, "sinfo", gone[name], fix, name)
    began_s = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = [
            pool.submit(_visit_one, site, name, wait_s, began_s)
            for name in named
            if name not in gone
        ]
        answers = as_completed(asked)
        if not sys.stdout.isatty():  # else the findings themselves show it
            answers = progress.counted(answers, "nodes asked", len(asked))
        meters: dict[str, str] = {}
        for one in answers:
            name, own, findings = one.result()
            meters[name] = own
            yield from findings
    yield from unlike(site, meters)


def unlike(site: Site, meters: Mapping[str, str]) -> Iterator[Finding]:
    """Nodes that are measured by something else than most of their kind: by slurm.conf those are
    alike, and so must their instruments be.

    meters: by node what its joulemarkd says, such as `rapl/cpu/counter*2 rapl/dram/counter*2`.
    """
    kinds = defaultdict(list)
    for line in site.conf.nodes:
        kind = frozenset((key, value) for key, value in line.items() if key not in OWN_KEYS)
        kinds[kind] += site.conf.names_of(line)
    for named in kinds.values():
        theirs = {name: frozenset(meters[name].split()) for name in named if meters.get(name)}
        if len(set(theirs.values())) < 2:
            continue
        ((usual, many),) = Counter(theirs.values()).most_common(1)
        for name, own in theirs.items():
            if own != usual:
                differences = (("lacks", usual - own), ("has", own - usual))
                value = ", ".join(f"{verb} {_words(some)}" for verb, some in differences if some)
                value += f", unlike {many} of its kind"
                fix = (
                    "`joulemarkd --probe 1` there says what it finds and why not the rest; nodes "
                    "that differ by intent differ in slurm.conf, by Features or Gres"
                )
                yield Finding("alike", WARNING, "instruments", value, fix, name)


def _words(meters: frozenset[str]) -> str:
    return " and ".join(sorted(meters))


def names(site: Site, nodes: str) -> list[str]:
    """Those of a host list, or `all` of slurm.conf's."""
    if nodes != "all":
        return hostlist.expand(nodes)
    return [name for line in site.conf.nodes for name in site.conf.names_of(line)]


def away() -> dict[str, str]:
    """Nodes that srun would wait for in vain, and what Slurm says of them."""
    answer = ask("sinfo", "-h", "-N", "-o", "%N|%T|%E")
    lines = (line.split("|", 2) for line in answer.out.splitlines() if line.count("|") >= 2)
    return {
        name: f"{state}{'' if why in ('none', '') else f' ({why})'}"
        for name, state, why in lines
        if state.endswith("*") or state.lower().startswith(AWAY)
    }


def srun(name: str, wait_s: float, *options: str) -> list[str]:
    """The words before a command that runs as a task on the node; wait_s: for a place there."""
    immediate = f"--immediate={max(1, math.ceil(wait_s))}"
    return ["srun", "-Q", f"-w{name}", "-N1", "-n1", immediate, *options]


def _visit_one(
    site: Site, name: str, wait_s: float, began_s: float
) -> tuple[str, str, list[Finding]]:
    """Its name, its meters, what is found there."""
    look_s = max(SHORTEST_LOOK_S, LOOK_S - (time.monotonic() - began_s))
    words = [*srun(name, wait_s, "-Jjoulemark-doctor"), "sh", "-c", LOOK, sys.executable]
    before = time.time()
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=wait_s + look_s,
        )
        said = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        value = f"no answer in {round(error.timeout, 1):g} s"
    except OSError as error:
        value = str(error)
    except ValueError:
        value = " ".join(done.stderr.split()) or "no answer"
    else:
        findings = [
            *_clock(name, said["time"], before, time.time()),
            *_keys(site, name, said["slurm_conf"]),
            *(Finding(**{**found, "node": name}) for found in said["findings"]),
        ]
        return name, said.get("meters", ""), findings
    level = WARNING if BUSY in value else ERROR
    fix = "run `joulemark doctor` on the node itself, or wait longer for a place: `--wait`"
    if "Invalid node name" in value:
        fix = "name nodes of slurm.conf, or `all`"
    if f"{sys.executable}: " in value:  # Python lacks our modules, or a shell that Python
        fix = "install the command `joulemark` there as on this machine, joulemark-cli"
    return name, "", [Finding("node", level, " ".join(words[:3]), value, fix, name)]


def _clock(name: str, told: float, before: float, after: float) -> Iterator[Finding]:
    off_s = min(told - before, 0) or max(told - after, 0)
    if abs(off_s) > CLOCK_S:
        fix = "synchronise both: run chrony or ntpd"
        yield Finding("clock", ERROR, "date", f"{off_s:+.1f} s from this machine's", fix, name)


def _keys(site: Site, name: str, theirs: dict[str, str]) -> Iterator[Finding]:
    for key, value in theirs.items():
        own = site.conf.get(key)
        if own.lower() != value.lower():
            fix = (
                f"{site.conf.path} here says {own or 'nothing'}: give all machines one slurm.conf"
            )
            yield Finding("slurm-conf", ERROR, key, value or "not set", fix, name)
