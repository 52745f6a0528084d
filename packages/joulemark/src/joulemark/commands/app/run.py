# `joulemark app run`: its options; joulemark.bench.apprun does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

SUMMARY = "run an application's phases, each with its joules, and write its results"
EPILOG = """\
What a phase prints is kept in --out, with run.json, which says what was run; `joulemark app
results` reads it again. Of a program that tells the parts of its run, such as IO500, each part has
its joules. The application's own files are in a folder below --folder, on the file system that is
measured, and are removed at its end, also after Ctrl-C and scancel. Energy is told within Slurm
jobs on nodes that have joulemarkd; job-templates/app.sbatch does all of this.

Exit: 0 all phases ran and are verified; 1 some did not.

examples:
  joulemark app run fio --set size=64m --folder /tmp
  joulemark app run ior --ranks 4 --launcher "srun --ntasks=4 --mpi=pmix" --folder /scratch
  joulemark app run ./mine.yaml --ranks 2 --launcher "mpirun -n 2" --cooked mine.cooked.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What, where and by what."""
    parser.add_argument("name", metavar="NAME", help="of the list, or a file NAME.yaml")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="another setting"
    )
    parser.add_argument("--ranks", type=int, metavar="N", help="(default: the job's, else 1)")
    parser.add_argument(
        "--launcher", default="", metavar="WORDS", help="what starts ranks, as one word"
    )
    parser.add_argument(
        "--folder", default=".", metavar="DIR", help="where its files are made (default: here)"
    )
    parser.add_argument(
        "--out", metavar="DIR", help="a new folder for what it prints (default: NAME.JOB)"
    )
    parser.add_argument("--cooked", metavar="FILE", help="append results to FILE (default: print)")


def run(options: argparse.Namespace) -> int:
    """Runs it."""
    from joulemark.bench import apprun

    return apprun.run(options)
