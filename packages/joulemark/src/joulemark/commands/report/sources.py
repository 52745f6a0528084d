# The options that the tables and plots of benchmarks share: which results, which variants.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """KERNEL, --from and --best."""
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
    parser.add_argument(
        "--best",
        action="store_true",
        help="one table or line a thread count: at each size the fastest variant, as a program "
        "that chooses for itself (jm-stream's auto) has it",
    )
