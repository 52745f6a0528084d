# `joulemark doctor`: its options, and the order of the checks.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import itertools
import json
import time

from joulemark import output
from joulemark.commands import arguments
from joulemark.errors import UsageError

SUMMARY = "find what is set up wrongly before a site's jobs do"
EPILOG = """\
One line a finding: level, check, where, what is there, the fix. An error costs energy figures, a
warning less. Run it as root on slurmctld's machine with --nodes all before the plugins go into
production, and on a machine whose Slurm does not start: what it needs it reads from the files.
Exit: 0 nothing found; 1 findings, whose level json has, too.

checks: config daemon cores accounts privileges sensors folders heaps clock-sync; plugin-version
plugin-dir energy-type spank contain node-frequency job-gathering accounting epilog
epilog-environment slurmctld running-config; with --nodes also clock and slurm-conf

examples:
  joulemark doctor                       this machine
  joulemark doctor --nodes all           and every node, by srun, many at once: a CPU of each
  joulemark doctor --node n1             this machine as node n1
  joulemark doctor --format json         for a program
"""
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
    parser.add_argument("--nodes", metavar="LIST", help="also these nodes, n[1-4] or `all`")
    arguments.add_wait(parser)
    parser.add_argument("--node", metavar="NAME", help="this machine's name as a node")
    output.add_format(parser, output.ANSWERS)
    output.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Prints what is found."""
    from joulemark.doctor import everywhere, node_checks, slurm_checks, slurmconf
    from joulemark.doctor.site import Site

    path = slurmconf.find()
    try:
        conf = slurmconf.SlurmConf(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}: set SLURM_CONF to the cluster's") from None
    site = Site(conf, options.node)
    checks = (*slurm_checks.CHECKS, *node_checks.CHECKS)
    found = (found for check in checks for found in check(site))
    if options.nodes:
        found = itertools.chain(found, everywhere.visit(site, options.nodes, options.wait))
    findings = list(found if options.format == "json" else _printed(found))
    if options.format == "json":
        keys = {key: conf.get(key) for key in SHARED_KEYS}
        lines = [found.data() for found in findings]
        about = {"node": site.node, "time": time.time(), "slurm_conf": keys, "findings": lines}
        print(json.dumps(about))
    elif not findings:
        print("nothing found")
    return 1 if findings else 0


def _printed(found):
    """Each as it is found."""
    for one in found:
        print(one.line(), flush=True)
        yield one
