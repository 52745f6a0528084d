# `joulemark hpl dat`: its options; joulemark.bench.hpl does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

SUMMARY = "write HPL.dat: N from the memory, P x Q from the ranks, a sweep over NB"
EPILOG = """\
N is the largest multiple of all NB (of the largest, where these are many) whose matrix fits the
memory. P x Q is as square as the ranks allow, P <= Q. All other parameters are those of HPL's
authors for a first run.

examples:
  joulemark hpl dat --ranks 16
  joulemark hpl dat --memory 64GiB --nodes 4 --ranks 64 --nb 192,256 --out run/HPL.dat
  joulemark hpl dat --n 2000 --ranks 4 --hpcc --out hpccinf.txt
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The machine, and what to sweep."""
    parser.add_argument(
        "--memory",
        default="80%",
        metavar="PART",
        help="of each node for the matrix: of this machine's, such as 80%% (default), or 64GiB",
    )
    parser.add_argument("--nodes", type=int, metavar="N", help="(default: the job's, else 1)")
    parser.add_argument("--ranks", type=int, metavar="N", help="(default: the job's, else 1)")
    parser.add_argument("--n", metavar="LIST", help="sizes, instead of one from the memory")
    parser.add_argument(
        "--nb", default="128,192,256", metavar="LIST", help="block sizes (default: 128,192,256)"
    )
    parser.add_argument(
        "--hpcc",
        action="store_true",
        help="HPC Challenge's hpccinf.txt: HPL.dat and more",
    )
    parser.add_argument("--out", default="HPL.dat", metavar="FILE", help="- is standard output")


def run(options: argparse.Namespace) -> int:
    """Writes the file."""
    from joulemark.bench import hpl

    return hpl.write_dat(options)
