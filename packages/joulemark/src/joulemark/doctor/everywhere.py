# The same doctor on every node, by srun, and what only a look at all of them shows.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator

from joulemark import hostlist
from joulemark.doctor.finding import ERROR, Finding
from joulemark.doctor.site import Site

SRUN_S = 120
# Longer than a job's start takes; a node's word is compared with the time it had to speak in.
CLOCK_S = 1.0


def visit(site: Site, nodes: str) -> Iterator[Finding]:
    """One task on each node; nodes is a host list, or `all`."""
    if nodes == "all":
        names = [name for line in site.conf.nodes for name in hostlist.expand(line["nodename"])]
    else:
        names = hostlist.expand(nodes)
    for name in names:
        yield from _visit_one(site, name)


def _visit_one(site: Site, name: str) -> Iterator[Finding]:
    command = [sys.executable, "-m", "joulemark", "doctor", "--json"]
    words = ["srun", "-Q", f"-w{name}", "-N1", "-n1", f"--immediate={SRUN_S}", *command]
    before = time.time()
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SRUN_S + 30
        )
        said = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        value = done.stderr.strip() if isinstance(error, ValueError) else str(error)
        fix = "run `joulemark doctor` on the node itself"
        yield Finding("node", ERROR, " ".join(words[:3]), value or "no answer", fix, name)
        return
    yield from _clock(name, said["time"], before, time.time())
    yield from _keys(site, name, said["slurm_conf"])
    for found in said["findings"]:
        yield Finding(**{**found, "node": name})


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
