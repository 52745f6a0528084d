# `joulemark sacct`: sacct's options are sacct's to judge, not argparse's.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

SUMMARY = "print sacct's rows and columns, with joules and error bars"


def main(argv: list[str]) -> int:
    """Runs one `joulemark sacct` and returns sacct's exit code."""
    from joulemark.slurm import sacct

    return sacct.main(argv)
