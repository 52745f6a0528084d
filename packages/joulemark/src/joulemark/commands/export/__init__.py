# `joulemark export KIND`: the store's figures for other systems; one module a kind.
# SPDX-License-Identifier: Apache-2.0 OR MIT
SUMMARY = "write the store's figures for other systems"
EPILOG = """\
CSV, JSON and Parquet are formats of `joulemark report usage` and `joulemark report jobs`;
sacct's JSON with energy is `joulemark sacct --json`.
"""

COMMANDS = ("prometheus",)
