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
    if "-j" in options and "SACCT_JOBS" in os.environ:
        print_jobs(Path(os.environ["SACCT_JOBS"]), options)
    elif "--json" in options:
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


def print_jobs(path, options):
    """Those asked for by -j, with what -X and -D do, and times of SLURM_TIME_FORMAT=%s."""
    asked = options[options.index("-j") + 1].split(",")
    letters = "".join(word[1:] for word in options if re.fullmatch("-[nPDX]+", word))
    if os.environ.get("SLURM_TIME_FORMAT") != "%s" or not {"n", "P"} <= set(letters):
        sys.exit("these tests' sacct knows times in seconds, without a header, alone")
    for number in asked:
        if not re.fullmatch(r"\d+([_+]\d+)?", number):
            sys.exit("sacct: fatal: Bad job array element specified: " + number.partition("_")[0])
    head, *lines = path.read_text().splitlines()
    rows = [dict(zip(head.split("|"), line.split("|"))) for line in lines]
    rows = [row for row in rows if is_asked(row, asked)]
    if "D" not in letters:
        rows = list({(row["JobIDRaw"], row["Cluster"]): row for row in rows}.values())
    if "X" in letters:  # sacct sums the CPU time of the steps that it was given
        rows = [{**row, "TotalCPU": "00:00:00"} for row in rows if "." not in row["JobIDRaw"]]
    for row in rows:
        print("|".join(row[field] for field in options[options.index("-o") + 1].split(",")))


def is_asked(row, asked):
    raw, shown = (row[name].partition(".")[0] for name in ("JobIDRaw", "JobID"))
    return bool({raw, shown, re.split("[_+]", shown)[0]} & set(asked))


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
