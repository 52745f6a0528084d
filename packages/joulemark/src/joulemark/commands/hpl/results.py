# `joulemark hpl results`: its options; joulemark.bench.hpl does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

SUMMARY = "write HPL's results as cooked lines, as every benchmark's"
EPILOG = """\
A test that failed HPL's residual check, or whose check is missing, has no performance.
Reads hpccoutf.txt of HPC Challenge as well.

With --program, the lines tell which build ran, as those of every benchmark do: the libraries that
the program starts with, as ldd finds them here, and of one that Spack has built its compiler, spec
and hash; of another one a digest of its file, beside HPL's version. So call it where HPL ran, with
the same modules. Without it no build is known: such lines are averaged with each other, as if one
build had written them, and never with those of a build that is known.

A line's start is what HPL (2.1 or later) tells of each test, in the time zone of this machine, or
HPC Challenge of all. Kernel, governor and frequency are this machine's, of this moment.

With --energy, the lines that `joulemarkctl region NAME -- xhpl` wrote, one a node, give the energy
of an output of one test. It is the whole program's: making and checking the matrix are in it.

Exit: 0 all tests passed; 1 some did not, or there are none.

examples:
  joulemark hpl results HPL.out --cooked hpl.cooked.jsonl --program "$(command -v xhpl)"
  joulemark hpl results HPL.out --energy region.log --nodes 2 --threads 8
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What was written, and what the output does not tell."""
    parser.add_argument("output", metavar="FILE", help="what HPL wrote; - is standard input")
    parser.add_argument("--cooked", metavar="FILE", help="append to FILE (default: print)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of each rank")
    parser.add_argument("--program", metavar="PATH", help="what wrote it: xhpl or hpcc")
    parser.add_argument("--energy", metavar="FILE", help="the region's lines, one a node")
    parser.add_argument(
        "--nodes",
        type=int,
        metavar="N",
        help="(default: the job's, else 1 for --energy, and null in a line of several ranks)",
    )


def run(options: argparse.Namespace) -> int:
    """Prints or appends the lines."""
    from joulemark.bench import hpl

    return hpl.write_results(options)
