# The command line: says what each command takes, and imports only what the one that runs needs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import os
import sys

from joulemark import __version__
from joulemark.errors import UserError

CONFIG_HELP = (
    "The site's configuration is $JOULEMARK_CONFIG, else joulemark.yaml beside $SLURM_CONF, "
    "else /etc/slurm/joulemark.yaml."
)

MERGE_EXAMPLES = f"""\
Prints one line, JOBID<tab>COMMENT, for each job whose record changed. Merging a file twice changes
nothing. Merged files go to record_dir/merged; files that are not sound records go to
record_dir/rejected, with the reason in rejected.log. A node that sends nothing is stored as
missing until its record comes: files older than a minute are merged whatever --job says.
Exit code: 0; 1 if a file was rejected or the store cannot be used.

{CONFIG_HELP}

examples:
  joulemark merge                             everything that waits, after a recovery
  joulemark merge --job 12 --nodes n[1-2]     what EpilogSlurmctld runs when job 12 has ended
  joulemark merge --rebuild                   a new store from all records that were ever merged
"""


def main(argv: list[str] | None = None) -> int:
    """Runs one command; errors that a user can act on are one line on stderr and exit code 1."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        return _dispatch(argv)
    except UserError as error:
        print(f"joulemark: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def _dispatch(argv: list[str]) -> int:
    if argv[:1] == ["sacct"]:  # sacct's options are sacct's to judge, not argparse's
        from joulemark import sacct

        return sacct.main(argv[1:])
    options = _parser().parse_args(argv)
    return options.run(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="joulemark",
        description="What Slurm jobs cost in joules, with error bars.",
        epilog="`joulemark COMMAND --help` says more, with examples.",
    )
    parser.add_argument("--version", action="version", version=f"joulemark {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_merge(commands)
    commands.add_parser("sacct", help="print sacct's rows and columns, with joules and error bars")
    return parser


def _command(commands, name: str, summary: str, epilog: str) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_merge(commands) -> None:
    parser = _command(
        commands, "merge", "put node records into the store and make job records", MERGE_EXAMPLES
    )
    parser.add_argument("--job", type=_job_id, metavar="ID", help="this job (default: all)")
    parser.add_argument("--nodes", metavar="LIST", help="the job's nodes: n1,n2 or n[1-2]")
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long to wait for the nodes' records (default: 30)",
    )
    parser.add_argument(
        "--print-comment",
        action="store_true",
        help="print the job's line even if its record did not change",
    )
    parser.add_argument(
        "--rebuild", action="store_true", help="read record_dir/merged again as well"
    )
    parser.set_defaults(run=_merge)


def _job_id(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a job's raw id such as 12")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 86400:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time in seconds from 0 to 86400")
    return seconds


def _merge(options) -> int:
    from joulemark import config, hostlist, merge

    if options.nodes and options.job is None:
        raise UserError("--nodes: it names the nodes of one job: give --job as well")
    request = merge.Request(
        job=options.job,
        nodes=hostlist.expand(options.nodes) if options.nodes else [],
        wait_s=options.wait,
        rebuild=options.rebuild,
        print_comment=options.print_comment,
    )
    return merge.run(config.load(), request)
