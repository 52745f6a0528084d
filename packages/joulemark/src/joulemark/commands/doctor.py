# `joulemark doctor`: its options, and the order of the checks.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import itertools
import json
import time

from joulemark import output, progress
from joulemark.commands import arguments
from joulemark.errors import UsageError

SUMMARY = "find what is set up wrongly before a site's jobs do"
EPILOG = """\
One line a finding: level, check, where, what is there, the fix; csv, markdown and parquet have a
row a finding, json also what was looked at. An error costs energy figures, a warning less. Run it
as root on slurmctld's machine with --nodes all before the plugins go into production, and on a
machine whose Slurm does not start: what it needs it reads from the files.
Exit: 0 nothing found; 1 findings, whose level csv and json have, too.

checks: config daemon cores accounts privileges sensors gpus folders heaps clock-sync; lustre
storage; plugin-version plugin-dir energy-type spank contain node-frequency job-gathering
accounting epilog epilog-environment slurmctld running-config private-store mpi; with --nodes also
node, clock, slurm-conf and alike: what measures a node is what measures others of its kind

examples:
  joulemark doctor                       this machine
  joulemark doctor --nodes all           and every node, by srun, many at once: a CPU of each
  joulemark doctor --node n1             this machine as node n1
  joulemark doctor --format json         for a program
  joulemark doctor --out findings.csv
"""
NOTHING = "nothing found\n"
SHARED_KEYS = (
    "AcctGatherEnergyType",
    "AcctGatherNodeFreq",
    "Epilog",
    "JobAcctGatherType",
    "PluginDir",
    "PrologFlags",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where to look."""
    also = "also these nodes, n[1-4] or `all`, on which it is installed, too"
    parser.add_argument("--nodes", metavar="LIST", help=also)
    arguments.add_wait(parser)
    parser.set_defaults(wait=None)
    parser.add_argument("--node", metavar="NAME", help="this machine's name as a node")
    output.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints what is found."""
    from joulemark.doctor import (
        everywhere,
        mpi_checks,
        node_checks,
        slurm_checks,
        slurmconf,
        storage_checks,
    )
    from joulemark.doctor.site import Site

    if options.wait is not None and options.nodes is None:
        raise UsageError("--wait: goes with --nodes")
    path = slurmconf.find()
    try:
        conf = slurmconf.SlurmConf(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}: set SLURM_CONF to the cluster's") from None
    site = Site(conf, options.node)
    rooms = (slurm_checks, mpi_checks, node_checks, storage_checks)
    found = _awaited(found for room in rooms for check in room.CHECKS for found in check(site))
    if options.nodes is not None:
        wait_s = arguments.WAIT_S if options.wait is None else options.wait
        found = itertools.chain(found, everywhere.visit(site, options.nodes, wait_s))
    if options.format == "terminal" and options.out is None:
        found = _printed(found)
    findings = list(found)
    if options.format == "json":
        keys = {key: conf.get(key) for key in SHARED_KEYS}
        lines = [one.data() for one in findings]
        meters = site.daemon_said.get("meters", "")
        about = {"node": site.node, "time": time.time(), "slurm_conf": keys, "meters": meters}
        about["findings"] = lines
        output.write_text(json.dumps(about) + "\n", options.out)
    elif options.format != "terminal":
        _show(options, findings)
    elif options.out is not None:
        output.write_text("".join(f"{one.line()}\n" for one in findings) or NOTHING, options.out)
    elif not findings:
        print(NOTHING, end="")
    return 1 if findings else 0


def _awaited(found):
    """On a terminal it is said that the next one is looked for: Slurm may hang."""
    while True:
        with progress.shown("looking"):
            one = next(found, None)
        if one is None:
            return
        yield one


def _printed(found):
    """Each as it is found."""
    for one in found:
        print(one.line(), flush=True)
        yield one


def _show(options: argparse.Namespace, findings: list) -> None:
    """As rows."""
    from dataclasses import fields

    from joulemark import layout
    from joulemark.doctor.finding import Finding

    names = [field.name for field in fields(Finding)]
    rows = [one.data() for one in findings]
    body = [("value", list(row.values())) for row in rows]
    text = layout.Text("Findings", list(map(str.capitalize, names)), body)
    layout.show(options, rows, [text], [] if findings else [NOTHING.strip()], names)
