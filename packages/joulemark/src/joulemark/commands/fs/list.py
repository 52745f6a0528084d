# `joulemark fs list`: its options; joulemark.files.listing does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands.fs import arguments
from joulemark.errors import UsageError

SUMMARY = "list files that are older, bigger or of an owner; nothing is done to them"
EPILOG = """\
From a database of `joulemark fs scan`: files that meet all that is asked. On a terminal the
largest 100, in csv, json and parquet all. Bytes of a path that are no UTF-8 are in hexadecimal
there; --print0 has the very bytes, each path ended by a NUL.

examples:
  joulemark fs list scratch.db --older 1y --bigger 1g
  joulemark fs list scratch.db --older 90d --time atime --owner alice --format csv
  joulemark fs list scratch.db --bigger 100g --print0 | xargs -0 ls -l
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The policy, and how to print."""
    parser.add_argument("database", metavar="DATABASE")
    parser.add_argument(
        "--older", type=arguments.age_ns, metavar="AGE", help="at the scan: 12h, 90d, 1y"
    )
    arguments.add_time(parser, "of --older")
    parser.add_argument(
        "--bigger", type=arguments.size, metavar="SIZE", help="4k, 10m, 1g, 2t; k is 1024"
    )
    parser.add_argument("--owner", metavar="USER", help="name or number")
    arguments.add_top(parser, "the largest N")
    parser.add_argument("--print0", action="store_true", help="paths alone, each ended by a NUL")
    output.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the files."""
    from joulemark.files import listing

    if options.print0 and (options.out is not None or options.format != "terminal"):
        raise UsageError("--print0: prints to stdout, in no other format")
    if options.time != "mtime" and options.older is None:
        raise UsageError(f"--time {options.time}: is of --older, which is not there")
    return listing.run(options)
