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


TABLE_EXAMPLES = """\
Columns, as in PRACE-1IP D9.3.3, annex 8.1: Size, N (repeated runs of the same problem), Time and
Energy of one iteration, Power, Perf. (operations over time), Eff. (operations per joule).
A value far from its column's prefix has its own: `37 m` in a column [mJ] or [J] is 37 mJ.
Under a row stand the spread of its repetitions (k=1) and the instrument's uncertainty (k=2), in
percent. `-`: not known. `failed`: the result was wrong, so it has no performance. `~`: energy
estimated by a model, not measured. Each variant, thread count and machine has its own table.
For mod2am a last line says what variant blas gains over plain.
csv and json hold SI numbers, *_spread (k=1) and *_uncertainty (k=2) in the unit of their value,
and a column `estimated`.

examples:
  joulemark report table triad --from results/ --best
  joulemark report table mod2am --format markdown --out mod2am.md --compare plain,blas
  joulemark report table jm-stream --from a.cooked.jsonl b.cooked.jsonl --format csv
"""

PLOT_EXAMPLES = """\
Writes NAME-performance.png, NAME-efficiency.png and, where there is energy,
NAME-energy-efficiency.png, and prints their paths; NAME is the benchmark, with its kernel where it
has several (jm-stream-triad). One line a variant, thread count and machine; error bars are k=2.
Estimated energy is dashed and hollow, and the figure says so.

examples:
  joulemark report plot mod2am --from results/ --out plots --peak 96
  joulemark report plot jm-stream --out plots
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
    _add_report(commands)
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


def _add_report(commands) -> None:
    report = commands.add_parser(
        "report",
        help="print tables and draw plots of benchmarks' results",
        description="Prints tables and draws plots from the benchmarks' cooked output.",
    )
    kinds = report.add_subparsers(metavar="KIND", required=True)
    _add_table(kinds)
    _add_plot(kinds)


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kernel", metavar="KERNEL", help="copy, scale, sum, triad, mod2am, or a benchmark's name"
    )
    parser.add_argument(
        "--from",
        dest="sources",
        nargs="+",
        action="extend",
        default=[],
        metavar="PATH",
        help="cooked files, or folders with *.cooked.jsonl (default: $JOULEMARK_RESULTS, or .)",
    )


def _add_best(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--best",
        action="store_true",
        help="one table or line a thread count: at each size the fastest variant, as a program "
        "that chooses for itself (jm-stream's auto) has it",
    )


def _add_table(kinds) -> None:
    parser = _command(kinds, "table", "print a table with PRACE's columns", TABLE_EXAMPLES)
    _add_sources(parser)
    _add_best(parser)
    parser.add_argument(
        "--format",
        choices=("terminal", "markdown", "csv", "json"),
        default="terminal",
        help="how to print (default: terminal)",
    )
    parser.add_argument("--out", metavar="FILE", help="write there (default: stdout)")
    parser.add_argument(
        "--compare",
        type=_two_variants,
        metavar="A,B",
        help="add a table of variant B against A: performance and energy efficiency, with ratios",
    )
    parser.add_argument(
        "--prefixes",
        choices=("seeds", "auto"),
        default="seeds",
        help="a column's SI prefix: as in PRACE's tables of that benchmark, or the one that fits "
        "the numbers best (default: seeds; auto for benchmarks that PRACE did not have)",
    )
    parser.set_defaults(run=_table)


def _add_plot(kinds) -> None:
    parser = _command(
        kinds, "plot", "draw performance, efficiency and energy efficiency", PLOT_EXAMPLES
    )
    _add_sources(parser)
    _add_best(parser)
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the PNG files")
    parser.add_argument(
        "--peak",
        type=_peak,
        metavar="GIGA",
        help="the machine's peak in GF/s or GB/s, which efficiency is a part of "
        "(default: the best measured value, and the axis says so)",
    )
    parser.set_defaults(run=_plot)


def _two_variants(text: str) -> tuple[str, str]:
    first, _, second = text.partition(",")
    if not (first and second) or "," in second:
        raise argparse.ArgumentTypeError(f"'{text}' is not two variants such as plain,blas")
    return first, second


def _peak(text: str) -> float:
    try:
        peak = float(text)
    except ValueError:
        peak = 0.0
    if not 0 < peak < 1e12:
        raise argparse.ArgumentTypeError(f"'{text}' is not a peak in GF/s or GB/s such as 96.5")
    return peak


def _table(options) -> int:
    from joulemark import report

    return report.run_table(options)


def _plot(options) -> int:
    from joulemark import report

    return report.run_plot(options)


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
