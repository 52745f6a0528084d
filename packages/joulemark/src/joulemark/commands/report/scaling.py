# `joulemark report scaling`: its options; joulemark.bench.scaling does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands.compare import giga
from joulemark.commands.report import sources
from joulemark.errors import UsageError

SUMMARY = "tell how performance and energy scale over nodes, ranks or threads"
EPILOG = """\
From cooked files of runs with several counts of nodes, of ranks or, where all have one rank, of
threads, such as job-templates/scaling.sbatch leaves; tables 100 to 110 of PRACE-1IP D9.3.3 are of
STREAM over threads (UiO), mod2am (BSC-1), Hydro (BSC-1, CaSToRC, LRZ) and Linpack (BSC-1, CaSToRC,
LRZ) over nodes. A size that ran on several counts is a strong series; where none did, the largest
size of each count is a weak one. Energy is the sum over the nodes; power is energy over time. Each
manifest has a series, and each set of the program's own options, where one size and count was
measured with several. `*`: an energy efficiency by other channels than the first line's, such as
those of more GPUs. --plot draws performance, parallel efficiency and energy efficiency over the
workers, and performance against power. Where nothing of this machine can stand beside published
series, a line on stderr says why.

examples:
  joulemark report scaling hydro --from results/ --with LRZ,CaSToRC --plot figures
  joulemark report scaling mod2am --kind weak --from weak.cooked.jsonl --format csv
  joulemark report scaling linpack --with BSC-1,CaSToRC,LRZ
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which results, of which kind, beside which published ones, and how to print them."""
    sources.add_arguments(parser)
    parser.add_argument(
        "--kind",
        choices=("auto", "strong", "weak"),
        default="auto",
        help="of the cooked results: the same size on several counts, or a growing one",
    )
    parser.add_argument(
        "--peak",
        type=giga,
        metavar="GIGA",
        help="peak of one rank, over nodes too, or of one thread in GF/s or GB/s",
    )
    output.add_arguments(parser)
    sources.add_figures(parser, "--plot", help="draw it in this folder too")


def run(options: argparse.Namespace) -> int:
    """Prints series over workers; draws them where a folder for figures is given."""
    from joulemark import layout
    from joulemark.bench import published, scaling

    sources.check_figures(options)
    found, why = scaling.find(options)
    if not found:
        raise UsageError(
            f"{why}; and nothing was published of --with: published are "
            "stream, mod2am and hydro (BSC-1, CaSToRC, LRZ, UiO) and linpack (BSC-1, CaSToRC, LRZ)"
        )
    published.say_alone(why)
    tables = map(scaling.as_text, found)
    layout.show(options, scaling.records(found), tables, scaling.notes(found))
    if options.plot:
        from joulemark.plots import draw_lines
        from joulemark.plots.scaling import charts

        draw_lines(charts(found, options.kernel), options, "plot")
    return 0
