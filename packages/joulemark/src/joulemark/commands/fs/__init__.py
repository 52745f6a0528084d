# `joulemark fs KIND`: what file systems hold; one module a kind.
# SPDX-License-Identifier: Apache-2.0 OR MIT
SUMMARY = "scan file systems into databases, and tell sizes, owners, ages and changes from them"
EPILOG = """\
A scan reads all of a folder, in parallel and without rights, by the program fs-scan; the others
read its database, an SQLite file that packages/fs-scan/README.md describes. Nothing is ever
changed or removed on the file system.
"""

COMMANDS = ("scan", "sizes", "list", "diff")
