# `joulemark compare`: its options; joulemark.bench.compare does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands.arguments import number
from joulemark.commands.report import sources

SUMMARY = "lay this machine's benchmark results beside published prototypes"
EPILOG = """\
Performance, fraction of peak and energy efficiency by size, of this machine's cooked files and of
the prototypes of PRACE-1IP D9.3.3 (abbreviations of its table 21): BSC-1, CaSToRC, LRZ, PSNC-BR,
PSNC-IB, PSNC-LL, PSNC-SB, PSNC-TR, PSNC-TR-G, SNIC, UiO. Of JKU's multiplier for FPGAs, mod2am is
predicted by its published model, and marked so; JKU:64@400 has 64 tiles at 400 MHz.
Below the tables stand what was measured (node, chip, container), the instrument's error, the
peaks with their sources, and what is wrong in the published tables. Where there are no results of
this machine, a line on stderr says so.

The peak of a run is that of all its nodes: so many times what --peak and --peak-bandwidth say of
one, or what its processor has in the table of peaks (joulemark/data/processors.csv), with as many
sockets as here or, of another processor, as its ranks and threads need. Where that is not known,
as of ranks that tell no nodes or share a node's GPUs, it is the best that mod2am, jm-linpack and
jm-stream measured with as many ranks on as many nodes in the same results. Hydro has no peak: it
counts updates of cells. Of which runs a peak that was given is not, stderr says.

examples:
  joulemark compare mod2am --with LRZ,SNIC,PSNC-IB --from results/
  joulemark compare triad --with BSC-1,LRZ --best --format csv --out triad.csv
  joulemark compare mod2am --with JKU,JKU:64@400 --peak 80 --plot figures
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which results, beside which prototypes, and how to print them."""
    sources.add_arguments(parser)
    parser.set_defaults(prototypes=None)
    parser.add_argument("--peak", type=giga, metavar="GIGA", help="peak of a node in GF/s")
    parser.add_argument(
        "--peak-bandwidth", type=giga, metavar="GIGA", help="peak of a node in GB/s"
    )
    parser.add_argument(
        "--peaks",
        choices=("auto", "table", "measured"),
        default="auto",
        help="a run's peak: of the processor table, the best measured, or the first of both that "
        "is known (default: auto)",
    )
    output.add_arguments(parser)
    sources.add_figures(parser, "--plot", help="draw it in this folder too")


def giga(text: str) -> float:
    """A peak in GF/s or GB/s."""
    return number(text, lambda value: 0 < value < 1e12, "a peak in GF/s or GB/s such as 96.5")


def run(options: argparse.Namespace) -> int:
    """Prints the comparison; draws it where a folder for figures is given."""
    from joulemark import layout
    from joulemark.bench import compare, published

    sources.check_figures(options)
    groups, why = compare.families(options)
    published.say_alone(why)
    output.tell(compare.passed_over(options, groups))
    tables = [text for name, sides in groups.items() for text in compare.tables(name, sides)]
    notes = compare.notes([side for sides in groups.values() for side in sides])
    layout.show(options, compare.records(groups), tables, notes)
    if options.plot:
        from joulemark.plots import draw_lines
        from joulemark.plots.compare import charts

        draw_lines(charts(groups), options, "plot")
    return 0
