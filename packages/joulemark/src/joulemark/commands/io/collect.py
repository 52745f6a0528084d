# `joulemark io collect`: its options; joulemark.storage.collect does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
from pathlib import Path

SUMMARY = "read on a file server, or on its clients, what jobs read, wrote and asked of it"
EPILOG = """\
Runs until it is stopped, on each OSS and MDS of a Lustre, or with --mounts on compute nodes, and
appends a line a period to record_dir/io/SERVER.jsonl, or to io/nodes/NODE.jsonl, where `joulemark
merge` finds what a job did: BytesRead, BytesWritten and MetadataOps of `joulemark sacct`. Its
processor time is kept below 1 % of a core: where there is more than that reads, periods are
longer. What may have been done and was gone before it was read is counted, and said of the jobs of
that time. Two collectors of one server are refused; a standby server's waits for its targets.

Of a Lustre server it reads job_stats. Jobs are known by the name that our SPANK plugin gives them,
CLUSTER.JOB.STEP, where the clients have `lctl set_param jobid_var=session`. Clients with
`jobid_var=SLURM_JOB_ID` say jobs without steps, and each process says which: --names '%j', or what
their jobid_name is. Others' work there counts as nobody's.

Servers of other file systems know no jobs. There a site mounts them once for each job, by its
prolog, at a place with the job's number, and --mounts says that place. What is counted of such a
mount is its job's, of others nobody's: by GlusterFS' FUSE client (fuse.glusterfs), where `gluster
volume profile VOLUME start` was said, and by NFS (nfs, nfs4), with its option nosharecache. The
epilog runs this with --once before it unmounts: where another process collects, that has mounts
read now, and returns when they are, with 1 where one could not be (its server is away); what was
done since the last reading is lost then, which jobs' notes tell, as where nobody asks.

examples:
  joulemark io collect
  joulemark io collect --names '%j:%e:%u'
  joulemark io collect --mounts '/scratch/jobs/%j'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Who we are, and how often."""
    parser.add_argument(
        "--server",
        metavar="NAME",
        help="this server, or node as Slurm names it (default: its host name)",
    )
    parser.add_argument("--period", type=float, default=30.0, metavar="S", help="default: 30 s")
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument("--names", metavar="TEXT", help="the clients' jobid_name")
    whose.add_argument("--mounts", metavar="PLACE", help="read mounts here; %%j is the job")
    parser.add_argument("--once", action="store_true", help="read once, and end")
    parser.add_argument(
        "--root", type=Path, default=Path("/"), metavar="DIR", help="where proc is (default: /)"
    )


def run(options: argparse.Namespace) -> int:
    """Collects until it is stopped."""
    import signal
    import socket

    from joulemark import config
    from joulemark.errors import UsageError
    from joulemark.storage import collect, names
    from joulemark.storage.journal import FOLDER, OF_NODES, Journal
    from joulemark.storage.lustre import Lustre
    from joulemark.storage.mounts import Mounts

    if not 0.1 <= options.period <= 300:  # entries live for 600 s
        raise UsageError(f"--period {options.period:g}: must be from 0.1 to 300 s")
    site = config.load()
    server = options.server or socket.gethostname().partition(".")[0]
    if options.mounts is None:
        source, folder = Lustre(options.root), FOLDER
        job_of = names.reader(site.cluster, options.names)
        _check(options, source)
    else:
        source, folder = Mounts(options.root, options.period), OF_NODES
        job_of = names.reader(site.cluster, options.mounts, "--mounts")
    journal = Journal(site.record_dir, server, collect.boot_id(options.root), folder)
    collector = collect.Collector(source, journal, job_of)
    signal.pthread_sigmask(signal.SIG_BLOCK, [collect.ASK])
    if options.once:
        return _once(collector)
    with journal.locked(collect.ANSWER_S / 2):
        collect.run(collector, options.period)
    return 0


def _check(options: argparse.Namespace, source) -> None:
    from joulemark import output
    from joulemark.errors import UserError

    if source.targets():
        return
    if options.once:
        raise UserError(source.what)
    output.tell([f"{source.what} They are read when they come"])


def _once(collector) -> int:
    """1 where not all could be read."""
    from joulemark import output
    from joulemark.storage import collect

    left_out = collect.once(collector)
    output.tell(f"{output.printable(one)}: could not be read" for one in left_out)
    return 1 if left_out else 0
