# `joulemark export KIND`: figures for other systems; one module a kind.
# SPDX-License-Identifier: Apache-2.0 OR MIT
SUMMARY = "write jobs' sums, or benchmarks' results, for other systems"
EPILOG = """\
CSV, JSON and Parquet are formats of `joulemark report usage`, `report jobs`, `report table` and of
all other tables; sacct's JSON with energy is `joulemark sacct --json`.
"""

COMMANDS = ("prometheus", "thicket", "reframe", "benchpark")
