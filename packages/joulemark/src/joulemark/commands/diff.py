# `joulemark diff`: its options; joulemark.bench.diff does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands.arguments import number

SUMMARY = "tell what got slower or costlier between two sets of benchmark results"
EPILOG = """\
A and B are cooked files, or folders with *.cooked.jsonl, such as before and after a new compiler.
For each kernel and size that both have by the same options of the program: time, performance,
energy and operations per joule with their errors at 95 %, the ratio B / A, and verdicts: faster or
slower, thriftier or costlier, else `not told apart`. The title says by which keys of the manifests
(see `report table --help`) A and B differ. A manifest that both have is laid beside its equal
alone, size by size, and each other one of A beside each other one of B.

Of many ratios some are beyond their ± by chance. So all times and energies of one call are tested
together by Holm's method (Scandinavian Journal of Statistics 6, 1979): where nothing changed, at
most one call of 20 tells any apart. Of 30 sizes, a ratio of three jobs a side must be about three
times as far off as its ± says, of ten jobs twice. Of unlike sides the smaller one counts; and that
they scatter much unlike is a change, too. A difference of 1 % or less does not count unless
--threshold says so: nobody acts on it, and what all jobs of one day share is as great.

Runs scatter from job to job by more than within one, so that a verdict by a single job's runs
says so (`slower, within one job`): it may be that job's node or hour. For an energy, those runs
and jobs count that have one. Run each side as three jobs or more. A single run tells nothing. The
instrument's error is the same on both sides where their manifests name the same channels of the
same node, and drops out of the ratio; else it is in it, so that a small change in energy is told
on one node or by a good instrument. Energies by different instruments or channels, or of a model
and a meter, are different quantities: they are in no ratio, nor is a side whose runs several of
them measured (`by another instrument: not told apart`). What only one side has, and what no run of
A has right, is named on stderr. csv, json and parquet hold SI numbers and the verdicts.

Exit: 0 nothing got worse; 1 something is slower or costlier, within one job, too, or failed: a
result is wrong where all of A's were right, or all are where one of A's was right; 2 wrong
arguments, or nothing to compare.

examples:
  joulemark diff before/ after/
  joulemark diff before/ after/ --threshold 2 --format markdown --out diff.md
  joulemark diff triad.100.cooked.jsonl triad.101.cooked.jsonl --format json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Two sets of results, and how to print what differs."""
    parser.add_argument("before", metavar="A", help="a cooked file or a folder of them")
    parser.add_argument("after", metavar="B", help="likewise, laid beside A")
    add_threshold(parser)
    output.add_arguments(parser)


def add_threshold(parser: argparse.ArgumentParser) -> None:
    """--threshold."""
    parser.add_argument(
        "--threshold",
        type=percent,
        default=0.01,
        metavar="PERCENT",
        help="differences of so much or less do not count, such as 0.2 (default: 1)",
    )


def percent(text: str) -> float:
    """A part of `2` or `2%`."""
    what = "a difference in percent such as 2"
    return number(text, lambda value: 0 <= value < 1e6, what, "%") / 100


def run(options: argparse.Namespace) -> int:
    """Prints the comparison; 1 where something got worse."""
    from joulemark import layout
    from joulemark.bench import diff

    found, alone = diff.find(options.before, options.after, options.threshold)
    output.tell(alone)
    notes = diff.notes(found, options.before, options.after)
    layout.show(options, diff.records(found), map(diff.as_text, found), notes)
    return 1 if any(pair.is_worse for one in found for pair in one.pairs) else 0
