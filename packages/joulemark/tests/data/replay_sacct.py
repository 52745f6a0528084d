# A `sacct` for tests: prints columns of what a real sacct printed, and logs its options.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import os
import re
import sys
import time
from pathlib import Path

DATA = Path(os.environ["SACCT_DATA"])
JSON = json.loads((DATA / "sacct.json").read_text())
# Not recorded as rows: two depend on SLURM_TIME_FORMAT, one on the test.
COMPUTED = ("Start", "End", "AdminComment")
COMMENTS = json.loads(os.environ.get("SACCT_COMMENTS", "{}"))  # by job
NAMES = json.loads(os.environ.get("SACCT_NAMES", "{}"))  # others than recorded, by job
# When jobs began and ended, by job; 0: not yet. Others as builders.py's records have it.
TIMES = json.loads(os.environ.get("SACCT_TIMES", "{}"))
RECORDED = [1_790_000_000, 1_790_000_010]


def main(options):
    for job in JSON["jobs"]:
        start_s, end_s = TIMES.get(str(job["job_id"]), RECORDED)
        job["time"].update(start=end_s if "-T" in options else start_s, end=end_s)
    with open(os.environ["SACCT_LOG"], "a", encoding="utf-8") as log:
        log.write(json.dumps(options) + "\n")
    if "-o" not in options and "SACCT_FORMAT" in os.environ:
        for field in os.environ["SACCT_FORMAT"].split(","):
            index_of(field)
    if "-j" in options and "SACCT_JOBS" in os.environ:
        print_jobs(Path(os.environ["SACCT_JOBS"]), options)
    elif "--json" in options and os.environ.get("SLURM_TIME_FORMAT") == "%s":
        json.dump({"meta": {}, "errors": [{"source": "start_time"}]}, sys.stdout)  # as 22.05 does
    elif any(option.split("=")[0] == "--json" for option in options):
        for job in JSON["jobs"]:
            job["comment"]["administrator"] = COMMENTS.get(str(job["job_id"]))
        compact = os.environ.get("SLURM_JSON") == "compact"
        json.dump(JSON, sys.stdout, indent=None if compact else 2)
    elif "--helpformat" in options:
        print("   ".join(names()))
    elif "-o" not in options:
        print("no table")
    elif {"-P", "-nP"} & set(options):
        print_rows(options, options[options.index("-o") + 1].split(","))
    else:
        print_header(options[options.index("-o") + 1].split(","))


def names():
    return [*(DATA / "sacct.rows").read_text().split("\n")[0].split("\x1f"), *COMPUTED]


def index_of(field):
    """Any beginning of a name will do."""
    for index, name in enumerate(names()):
        if name.lower().startswith(field.lower()):
            return index
    sys.exit(f'sacct: error: Invalid field requested: "{field}"')


def print_rows(options, fields):
    delimiters = [word.split("=", 1)[1] for word in options if word.startswith("--delimiter=")]
    delimiter = (delimiters or ["|"])[-1]
    wanted = [index_of(field) for field in fields]
    rows = re.split(r"\n(?=\d)", (DATA / "sacct.rows").read_text().rstrip("\n"))
    for number, row in enumerate(rows):
        values = row.split("\x1f")
        values += computed(values) if number else COMPUTED
        values[index_of("JobName")] = NAMES.get(values[0], values[index_of("JobName")])
        if number or "-nP" not in options:
            print(delimiter.join(values[index] for index in wanted))


def computed(values):
    job, _, step = values[names().index("JobIDRaw")].partition(".")
    times = next(one["time"] for one in JSON["jobs"] if str(one["job_id"]) == job)
    form = os.environ.get("SLURM_TIME_FORMAT", "%Y-%m-%dT%H:%M:%S")
    shown = [
        time.strftime(form, time.localtime(times[key])) if times[key] else "Unknown"
        for key in ("start", "end")
    ]
    return [*shown, "" if step else COMMENTS.get(job, "")]


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
    if "-M" in options:
        clusters = options[options.index("-M") + 1].split(",")
        rows = [row for row in rows if row["Cluster"] in clusters]
    if "X" in letters:  # sacct sums the CPU time of the steps that it was given
        rows = [{**row, "TotalCPU": "00:00:00"} for row in rows if "." not in row["JobIDRaw"]]
    delimiters = [word.split("=", 1)[1] for word in options if word.startswith("--delimiter=")]
    for row in rows:
        row["AdminComment"] = comment_of(row)
        fields = options[options.index("-o") + 1].split(",")
        print((delimiters or ["|"])[-1].join(row[field] for field in fields))


def comment_of(row):
    """A job's; of one of its runs by JOB@START, of another cluster's by JOB@CLUSTER."""
    raw = row["JobIDRaw"]
    keys = [f"{raw}@{row['Cluster']}", f"{raw}@{row['Start']}"]
    if row["Cluster"] == "demo":
        keys.append(raw)
    return next((COMMENTS[key] for key in keys if key in COMMENTS), "")


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
        start, end = spans[names()[index_of(name)].lower()]
        shown, length = head[start:end], abs(int(width or 0)) or end - start
        to_left = shown.endswith(" ") if not width else width.startswith("-")
        text = shown.strip()[:length]
        heads.append(text.ljust(length) if to_left else text.rjust(length))
        runs.append("-" * length)
    print(" ".join(heads) + " ")
    print(" ".join(runs) + " ")


main(sys.argv[1:])
