# A `sacct` for tests: prints columns of what a real sacct printed, and logs its options.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import os
import re
import sys
from pathlib import Path

DATA = Path(os.environ["SACCT_DATA"])


def main(options):
    with open(os.environ["SACCT_LOG"], "a", encoding="utf-8") as log:
        log.write(json.dumps(options) + "\n")
    if "--json" in options:
        sys.stdout.write((DATA / "sacct.json").read_text())
    elif "--helpformat" in options:
        print("   ".join((DATA / "sacct.rows").read_text().split("\n")[0].split("\x1f")))
    elif "-P" in options:
        print_rows(options[options.index("-o") + 1].split(","))
    else:
        print_header(options[options.index("-o") + 1].split(","))


def print_rows(fields):
    rows = re.split(r"\n(?=\d)", (DATA / "sacct.rows").read_text().rstrip("\n"))
    names = [name.lower() for name in rows[0].split("\x1f")]
    for field in fields:
        if field.lower() not in names:
            sys.exit(f'sacct: error: Invalid field requested: "{field}"')
    for row in rows:
        values = row.split("\x1f")
        print("\x1f".join(values[names.index(field.lower())] for field in fields))


def print_header(specs):
    head, dashes = (DATA / "sacct.header").read_text().split("\n")[:2]
    spans = {
        head[m.start() : m.end()].strip().lower(): m.span() for m in re.finditer("-+", dashes)
    }
    heads, runs = [], []
    for spec in specs:
        name, _, width = spec.partition("%")
        start, end = spans[name.lower()]
        shown, length = head[start:end], abs(int(width or 0)) or end - start
        to_left = shown.endswith(" ") if not width else width.startswith("-")
        text = shown.strip()[:length]
        heads.append(text.ljust(length) if to_left else text.rjust(length))
        runs.append("-" * length)
    print(" ".join(heads) + " ")
    print(" ".join(runs) + " ")


main(sys.argv[1:])
