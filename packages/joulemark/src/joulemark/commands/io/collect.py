# `joulemark io collect`: its options; joulemark.storage.collect does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
from pathlib import Path

SUMMARY = "read on a Lustre server what jobs read, wrote and asked of it"
EPILOG = """\
Runs until it is stopped, on each OSS and MDS, and appends a line a period to
record_dir/io/SERVER.jsonl, where `joulemark merge` finds what a job did: BytesRead, BytesWritten
and MetadataOps of `joulemark sacct`. It reads job_stats, which is there where the clients say who
they are; what a client's cache served no server has seen. Its processor time is kept below 1 % of
a core: where there are more entries than that reads, periods are longer. Entries that may have
worked and are gone before they were read are counted, and said of the jobs of that time. Two
collectors of one server are refused; a standby server's waits for its targets.

Jobs are known by the name that our SPANK plugin gives them, CLUSTER.JOB.STEP, where the clients
have `lctl set_param jobid_var=session`. Clients with `jobid_var=SLURM_JOB_ID` say jobs without
steps, and each process says which: --names '%j', or what their jobid_name is. Others' work there
counts as nobody's.

examples:
  joulemark io collect
  joulemark io collect --names '%j:%e:%u'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Who we are, and how often."""
    parser.add_argument("--server", metavar="NAME", help="this server (default: its host name)")
    parser.add_argument("--period", type=float, default=30.0, metavar="S", help="default: 30 s")
    parser.add_argument("--names", metavar="TEXT", help="the clients' jobid_name")
    parser.add_argument("--once", action="store_true", help="read once, and end")
    parser.add_argument(
        "--root", type=Path, default=Path("/"), metavar="DIR", help="where proc is (default: /)"
    )


def run(options: argparse.Namespace) -> int:
    """Collects until it is stopped."""
    import socket

    from joulemark import config
    from joulemark.errors import UsageError
    from joulemark.storage import collect, names
    from joulemark.storage.journal import Journal

    if not 0.1 <= options.period <= 300:  # entries live for 600 s
        raise UsageError(f"--period {options.period:g}: must be from 0.1 to 300 s")
    site = config.load()
    server = options.server or socket.gethostname().partition(".")[0]
    journal = Journal(site.record_dir, server, collect.boot_id(options.root))
    collector = collect.Collector(options.root, journal, names.reader(site.cluster, options.names))
    with journal.locked():
        return _collect(options, collector)


def _collect(options: argparse.Namespace, collector) -> int:
    from joulemark import output
    from joulemark.errors import UserError
    from joulemark.storage import collect

    if not collector.targets():
        none = (
            f"{options.root / 'proc/fs/lustre'}: has no obdfilter/*/job_stats and no "
            "mdt/*/job_stats: is this a Lustre server, and are its targets mounted?"
        )
        if options.once:
            raise UserError(none)
        output.tell([f"{none} They are read when they come"])
    if options.once:
        collector.round()
    else:
        collect.run(collector, options.period)
    return 0
