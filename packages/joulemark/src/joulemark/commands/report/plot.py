# `joulemark report plot`: its options; joulemark.plots.kernels draws.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark.commands.compare import giga
from joulemark.commands.report import sources

SUMMARY = "draw performance, efficiency and energy efficiency"
EPILOG = """\
Writes NAME-performance.png, NAME-efficiency.png and, where there is energy,
NAME-energy-efficiency.png (or .svg, .pdf), and prints their paths; NAME is the benchmark, with its
kernel where it has several (jm-stream-triad). One line a variant, thread count and machine. Thin
error bars are the mean's 95 % interval (Student's t) over the jobs, of one job over its runs, of a
single run's time over its repetitions, wide ones the instrument's error (k=2); a figure names
those that it has. Estimated energy is hollow, and the figure says so.
With --peak, prototypes are not in the figure of efficiency: they are no part of this machine's
peak. `joulemark compare --plot` draws each as a part of its own.

examples:
  joulemark report plot mod2am --from results/ --out plots --peak 96
  joulemark report plot jm-stream --out plots
  joulemark report plot mod2am --with JKU,LRZ --out plots
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which results, and where the figures go."""
    sources.add_arguments(parser)
    sources.add_figures(parser, "--out", required=True, help="folder for the figures")
    parser.add_argument(
        "--peak",
        type=giga,
        metavar="GIGA",
        help="the machine's peak in GF/s or GB/s, which efficiency is a part of "
        "(default: the best measured value, and the axis says so)",
    )


def run(options: argparse.Namespace) -> int:
    """Draws three figures for each kernel and prints their paths."""
    from joulemark.plots import draw_lines, kernels

    draw_lines(kernels.charts(sources.series(options), options.peak), options, "out")
    return 0
