# `joulemark report table`: its options, and which tables stand under each other.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands.report import sources
from joulemark.errors import UsageError

SUMMARY = "print a table with PRACE's columns"
EPILOG = """\
Columns, as in PRACE-1IP D9.3.3, annex 8.1: Size, N (runs of the same problem; `4 (3)`: 3 of 4 with
an energy, of which its mean is), Time and Energy of one iteration, Power, Perf. (operations over
time), Eff. (operations per joule).
A value far from its column's prefix has its own, with the unit: `37 mJ` in a column [J].
Under a row stand the standard deviation of its runs, of a single run that of its mean by its
repetitions (k=1), and the instrument's uncertainty (k=2), in percent. `-`: not known. `failed`:
the result was wrong, so it has no performance. `~`: energy estimated by a model, not measured.
`*`: the mean of energies by several instruments or channels, which are different quantities.
Each variant, thread count, machine and manifest (version, compiler, flags, libraries, Spack's spec
and hash, kernel, governor, pinning, Slurm, instruments) has its own table, and the title says by
what the manifests differ; so has each set of the program's own options, where one size was
measured with several. Job, node and date are part of the scatter: of several jobs each counts
once, by the mean of its runs, and the interval is that between jobs.
For mod2am a last line says what variant blas gains over plain.
A ratio's error is at 95 %: the means' intervals by Student's t, and the instrument's, which drops
out where the same channels of one node measured several runs on each side. Of a single run, a
time has the interval of its repetitions, and an energy none: its ratio has the instrument's error.
Energies by different instruments or channels, or those of one side by several, have no ratio.
csv, json and parquet hold SI numbers, *_spread (k=1), *_interval (half of the mean's 95 % interval
over the jobs, of one job over its runs, of a single run's time over its repetitions) and
*_uncertainty (k=2) in the unit of their value, and a column `estimated`.

examples:
  joulemark report table triad --from results/ --best
  joulemark report table mod2am --format markdown --out mod2am.md --compare plain,blas
  joulemark report table jm-stream --from a.cooked.jsonl b.cooked.jsonl --format csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which results, and how to print them."""
    sources.add_arguments(parser)
    output.add_arguments(parser)
    parser.add_argument(
        "--compare",
        type=_two_variants,
        metavar="A,B",
        help="add a table of variant B against A: performance and energy efficiency, with ratios",
    )
    parser.add_argument(
        "--prefixes",
        type=_prefixes,
        choices=("prace", "auto"),
        default="prace",
        help="a column's SI prefix: as in PRACE's tables of that benchmark, or the one that fits "
        "the numbers best (default: prace; auto for benchmarks that PRACE did not have)",
    )


def _prefixes(text: str) -> str:
    """`seeds` is what `prace` was called before."""
    return "prace" if text == "seeds" else text


def _two_variants(text: str) -> tuple[str, str]:
    first, _, second = text.partition(",")
    if not (first and second) or "," in second:
        raise argparse.ArgumentTypeError(f"'{text}' is not two variants such as plain,blas")
    return first, second


def run(options: argparse.Namespace) -> int:
    """Prints the tables of one kernel or benchmark."""
    from joulemark import layout
    from joulemark.bench import table

    series = sources.series(options)
    if options.compare and options.format in output.FORMATS:
        raise UsageError("--compare: it is for the formats terminal and markdown")
    tables = [table.lay_out(one, options.prefixes) for one in series]
    notes = [table.LEGEND]
    if any(one.estimated for one in series):
        notes.append(layout.LEGEND_ESTIMATED)
    if any(row.has_several_instruments for one in series for row in one.rows):
        notes.append(table.LEGEND_SEVERAL)
    if options.compare:
        tables += table.comparison(series, *options.compare)
    summary = table.summary(series)
    notes += [table.LEGEND_RATIOS] if options.compare or summary else []
    notes += summary
    layout.show(options, table.as_records(series), tables, notes)
    return 0
