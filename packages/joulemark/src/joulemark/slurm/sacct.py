# `joulemark sacct`: runs the real sacct for its rows and columns, and adds energy columns to them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from joulemark import output, progress
from joulemark.accounting import columns
from joulemark.errors import UserError
from joulemark.layout import ESTIMATE_MARK
from joulemark.slurm import command, sacctargs
from joulemark.slurm.jobenergy import Energy, Shown, Window
from joulemark.units import UJ_PER_J

# As wide as 132 columns allow: the rest is what Energy has beside these three parts.
DEFAULT_FORMAT = (
    "JobID,JobName,State,Elapsed,Energy,EnergyError,AveWatts,"
    "EnergyCPU,EnergyDRAM,EnergyGPU,Estimated"
)
BRIEF_FORMAT = "JobID,State,ExitCode"
KEYS = ("AdminComment", "JobIDRaw", "Cluster", "Start", "End")
UNIX_TIMES = {"SLURM_TIME_FORMAT": "%s"}
TIME_COLUMNS = ("eligible", "end", "start", "submit")  # which the user has in his own format
SACCT_ENERGY = {"consumedenergy", "consumedenergyraw"}
# sacct prints no table of jobs then, or one without their numbers (completion, file).
NOT_A_TABLE = {"autocomplete", "batch-script", "completion", "env-vars", "file", "helpreason"}
NOT_A_TABLE |= {"helpstate", "usage", "version"}
FOOTER = f"{ESTIMATE_MARK} energy estimated by a model, not measured"
FOOTER_PARSABLE = "some energies a model estimated: the column Estimated says which"

HELP = f"""\
usage: joulemark sacct [sacct's options]

Prints what sacct prints, with energy columns beside sacct's own. It runs the real sacct, so its
options choose the rows as they always do; among them:

  -j, --jobs=LIST         these jobs or steps          -S, --starttime=TIME   from this time on
  -u, --user=LIST         of these users               -E, --endtime=TIME     up to this time
  -A, --accounts=LIST     of these accounts            -X, --allocations      jobs without steps
  -a, --allusers          of all users                 -s, --state=LIST       in these states
  -D, --duplicates        a requeued job's earlier runs too
  -o, --format=LIST       sacct's columns and ours, each may have %WIDTH or %-WIDTH (left); or ALL
  -n, --noheader          no header
  -p, --parsable          `|` after each value         -P, --parsable2        `|` between values
      --delimiter=TEXT    another one than `|`
      --json[=VERSION]    sacct's JSON with an object `joulemark` in each job and step
  -e, --helpformat        names of all columns         -b, --brief            {BRIEF_FORMAT}

-l (--long) and --yaml are not supported. Without -o the format is that of $SACCT_FORMAT, else
  {DEFAULT_FORMAT}

Columns added:
@COLUMNS@

{columns.COVERAGE}
{ESTIMATE_MARK} before an energy or a power, also in sacct's own ConsumedEnergy and
ConsumedEnergyRaw, says that a model estimated it: it is no measurement. For programs the column
Estimated says so, and "estimated": true in --json: -p, -P and --json have plain numbers.
A job's row covers its whole allocation. The batch row includes the steps that ran meanwhile, so
the rows of steps do not add up to the job's. Tables are rounded; -p and -P have every microjoule.
An empty cell: there is no record (yet) of the run that sacct shows, or nothing was measured.

Who may not read the store, and jobs that are not in it, get what AdminComment has of the job:
its figures are rounded, steps have none, and stderr says so.

Exit: as sacct's own.
The site's configuration is $JOULEMARK_CONFIG, else joulemark.yaml beside $SLURM_CONF, else
/etc/slurm/joulemark.yaml.

examples:
  joulemark sacct -j 12
  joulemark sacct -X -S now-7days -u alice -o JobID,Energy%15,EnergyError,EnergyMethod
  joulemark sacct -j 12 -n -P -o JobIDRaw,Energy,Estimated
  joulemark sacct -j 12 --json | jq '.jobs[].joulemark.energy_j'
"""


class Failed(Exception):
    """sacct's exit code, where it has said itself why."""

    def __init__(self, code: int):
        super().__init__()
        self.code = code


def main(argv: list[str]) -> int:
    """Runs one `joulemark sacct` and returns sacct's exit code."""
    args = sacctargs.parse(argv)
    if "help" in args.chosen:
        sys.stdout.write(help_text())
        return 0
    for option in ("long", "yaml"):
        if option in args.chosen:
            raise UserError(
                f"sacct: --{option} is not supported: name columns with -o, or use --json"
            )
    if "helpformat" in args.chosen:
        return _help_format()
    if args.chosen & NOT_A_TABLE or args.data_parser.lower() == "list":
        return _run(argv).returncode
    try:
        return _json(args) if "json" in args.chosen else _table(args)
    except Failed as failed:
        return failed.code


def help_text() -> str:
    """What --help prints."""
    lines = [f"  {column.name:<15} {column.help}" for column in columns.COLUMNS]
    return HELP.replace("@COLUMNS@", "\n".join(lines))


def _run(options: list[str], capture: bool = False, **env: str) -> subprocess.CompletedProcess:
    """The real sacct, as found on PATH; its errors go to the user unchanged.

    It looks at SACCT_FORMAT whatever it is asked for, and refuses our names.
    """
    out = subprocess.PIPE if capture else None
    kept = {name: value for name, value in os.environ.items() if name != "SACCT_FORMAT"}
    try:
        return subprocess.run(["sacct", *options], stdout=out, env={**kept, **env})
    except FileNotFoundError:
        raise UserError("sacct: not found on PATH: install Slurm's client commands") from None


def _output(options: list[str], **env: str) -> tuple[int, str]:
    with progress.shown("asking sacct"):
        done = _run(options, capture=True, **env)
    return done.returncode, done.stdout.decode("utf-8", "surrogateescape")


def _answer(options: list[str], **env: str) -> str:
    code, text = _output(options, **env)
    if code != 0:
        raise Failed(code)
    return text


def _help_format() -> int:
    code = _run(["--helpformat"]).returncode
    print("\nEnergy, added by joulemark:")
    names = [f"{column.name:<19}" for column in columns.COLUMNS]
    for start in range(0, len(names), 4):
        print(" ".join(names[start : start + 4]).rstrip())
    print(f"\n{columns.COVERAGE}")
    return code


class Windows:
    """Of all jobs and steps, asked apart: whole where --truncate cuts them, as Unix seconds where
    the user has his own format."""

    def __init__(self, args: sacctargs.SacctArgs):
        options = args.passed("-nP", "-o", "JobIDRaw,Cluster,Start,End", but="truncate")
        self._found: dict[tuple[str, str], list[Window]] = {}
        for line in _answer(options, **UNIX_TIMES).splitlines():
            job, cluster, start, end = line.split("|")
            self._found.setdefault((cluster, job), []).append((_seconds(start), _seconds(end)))

    def take(self, cluster: str, job: str) -> Window:
        """That of its next run."""
        found = self._found.get((cluster, job))
        return found.pop(0) if found else (math.inf, math.inf)


def _seconds(text: str) -> float:
    """`Unknown`: it has not started, or not ended."""
    return float(text) if text.isdigit() else math.inf


@dataclass
class Field:
    """One asked-for column: sacct's own, or ours."""

    spec: str  # as typed, with its %width
    name: str  # of sacct's own as typed, until its header has told it
    column: columns.Column | None
    width: int = 0  # negative: to the left, as in sacct


def _fields(args: sacctargs.SacctArgs) -> list[Field]:
    specs = args.format + (sacctargs.names(BRIEF_FORMAT) if "brief" in args.chosen else [])
    if not specs and "format" in args.chosen:  # a script's variable that is not set
        raise UserError("sacct: --format: it names no column; see `joulemark sacct --help`")
    specs = specs or sacctargs.names(os.environ.get("SACCT_FORMAT") or DEFAULT_FORMAT)
    return [_field(one) for spec in specs for one in _expanded(spec)]


def _expanded(spec: str) -> list[str]:
    """`ALL`, of which sacct takes any beginning, is all of its columns, and here ours too."""
    name, percent, width = spec.partition("%")
    if not "all".startswith(name.lower()):
        return [spec]
    names = [*_own_names(), *(column.name for column in columns.COLUMNS)]
    return [f"{one}{percent}{width}" for one in names]


def _own_names() -> list[str]:
    return _answer(["--helpformat"]).split()


def _field(spec: str) -> Field:
    name, percent, width = spec.partition("%")
    column = _column(name.lower())
    if column is None:
        return Field(spec, name, None)
    if percent and not re.fullmatch(r"-?[1-9]\d*", width):
        raise UserError(f"sacct: -o {spec}: '%{width}' is not a width such as %20 or %-20")
    return Field(spec, column.name, column, int(width) if percent else column.width)


def _column(name: str) -> columns.Column | None:
    """Ours of that name or, as sacct does it, beginning; None where sacct's own come first."""
    if name in columns.BY_NAME:
        return columns.BY_NAME[name]
    ours = next((one for one in columns.COLUMNS if one.name.lower().startswith(name)), None)
    is_own = ours and any(own.lower().startswith(name) for own in _own_names())
    return None if is_own else ours


def _table(args: sacctargs.SacctArgs) -> int:
    fields = _fields(args)
    names = [field.name for field in fields if field.column is None]
    mark = command.mark()
    options = args.passed("-P", f"--delimiter={mark}", "-o", ",".join([*names, *KEYS]))
    is_apart = "truncate" in args.chosen or any(map(_may_be_time, names))
    text = _answer(options, **({} if is_apart else UNIX_TIMES))
    width = len(names) + len(KEYS)
    header, *rows = command.split_rows(text, mark, width) or [[""] * width]
    for field, head in zip((field for field in fields if field.column is None), header):
        field.name = head
    parsable = bool({"parsable", "parsable2"} & args.chosen)
    shows_energy = any(field.column or field.name.lower() in SACCT_ENERGY for field in fields)
    records = _records(args, rows, is_apart) if shows_energy else [None] * len(rows)
    cells = [_cells(fields, row, record, parsable) for row, record in zip(rows, records)]
    heads = [field.name for field in fields]
    if parsable:
        _print_parsable(args, heads, cells)
    else:
        _print_table(args, fields, heads, cells)
    if shows_energy:
        quiet = parsable or "noheader" in args.chosen
        footer = FOOTER_PARSABLE if parsable else FOOTER
        _print_footer(records, footer, sys.stderr if quiet else sys.stdout)
    return 0


def _may_be_time(name: str) -> bool:
    """sacct takes any beginning of a name."""
    return any(one.startswith(name.lower()) for one in TIME_COLUMNS)


def _records(
    args: sacctargs.SacctArgs, rows: list[list[str]], is_apart: bool
) -> list[dict | None]:
    windows = Windows(args) if is_apart else None
    is_alone = "duplicates" not in args.chosen
    shown = []
    for *_, comment, job, cluster, start, end in rows:
        window = windows.take(cluster, job) if windows else (_seconds(start), _seconds(end))
        shown.append(Shown(cluster, job, window, comment, is_alone))
    with progress.shown("asking the store"):
        energy = Energy(shown)
    records = [energy.row(one) for one in shown]
    _tell(energy.note)
    return records


def _tell(note: str) -> None:
    if note:
        output.tell([note])


def _cells(fields: list[Field], row: list[str], record: dict | None, exact: bool) -> list[str]:
    own = iter(row)
    estimated = bool(record and record["Estimated"])
    return [
        (field.column.cell(record, exact) if record else "")
        if field.column
        else _own_cell(field, next(own), estimated and not exact)
        for field in fields
    ]


def _own_cell(field: Field, value: str, marked: bool) -> str:
    """sacct's value as it is, but for eyes an estimate says that it is one."""
    is_estimate = marked and value and field.name.lower() in SACCT_ENERGY
    return ESTIMATE_MARK + value if is_estimate else value


def _print_parsable(args: sacctargs.SacctArgs, heads: list[str], cells: list[list[str]]) -> None:
    end = args.delimiter if "parsable" in args.chosen else ""
    for row in cells if "noheader" in args.chosen else [heads, *cells]:
        _print(args.delimiter.join(row) + end)


def _print_table(args, fields: list[Field], heads: list[str], cells: list[list[str]]) -> None:
    _ask_widths(fields)
    if "noheader" not in args.chosen:
        # sacct cuts a head that is too long without a mark.
        _print_row(fields, [text[: abs(field.width)] for field, text in zip(fields, heads)])
        _print_row(fields, ["-" * abs(field.width) for field in fields])
    for row in cells:
        _print_row(fields, row)


def _ask_widths(fields: list[Field]) -> None:
    """sacct knows its columns' widths: its header for a day without jobs tells them."""
    own = [field for field in fields if field.column is None]
    if not own:
        return
    day = ["-S", "1970-01-02", "-E", "1970-01-03"]
    text = _answer([*day, "-o", ",".join(field.spec for field in own)])
    head, dashes = text.split("\n")[:2]
    for field, run in zip(own, re.finditer(r"-+", dashes)):
        shown = head[run.start() : run.end()]
        to_left = shown.endswith(" ") or "%-" in field.spec
        field.width = -len(run.group()) if to_left else len(run.group())


def _print_row(fields: list[Field], row: list[str]) -> None:
    _print("".join(f"{_fit(field, text)} " for field, text in zip(fields, row)))


def _fit(field: Field, text: str) -> str:
    """As sacct does it: cut text ends in +. Of a number of ours digits go, not its size."""
    text = output.printable(text.replace("\n", " "))
    room = abs(field.width)
    if len(text) > room:
        rounded = _rounded(text, room) if field.column else None
        text = rounded or text[: room - 1] + "+"
    return text.ljust(room) if field.width < 0 else text.rjust(room)


def _rounded(text: str, room: int) -> str | None:
    """With as many digits as there is room for; None: it is no number, or has none."""
    number = text.lstrip(ESTIMATE_MARK)
    mark = text[: len(text) - len(number)]
    try:
        told = (f"{mark}{float(number):.{digits}g}" for digits in range(room, 0, -1))
        return next((one for one in told if len(one) <= room), None)
    except ValueError:
        return None


def _print(line: str) -> None:
    sys.stdout.buffer.write(line.encode("utf-8", "surrogateescape") + b"\n")


def _print_footer(records: list[dict | None], estimated: str, stream) -> None:
    sys.stdout.flush()
    known = [record for record in records if record]
    if any(record["Estimated"] for record in known):
        print(estimated, file=stream)
    for record in known:
        if record["Missing"] and record["Step"] == "job":
            lacks = f"job {record['JobIDRaw']} lacks energy of {record['Missing']}"
            print(output.printable(lacks), file=stream)
    for record in known:
        for fault in json.loads(record["Faults"]):
            text = f"job {record['JobIDRaw']}: {columns.fault_text(fault)}"
            print(output.printable(text), file=stream)


def _json(args: sacctargs.SacctArgs) -> int:
    code, text = _output(
        args.passed(f"--json={args.data_parser}" if args.data_parser else "--json")
    )
    if code != 0:
        sys.stdout.write(text)
        return code
    answer = json.loads(text)
    jobs = answer.get("jobs", ())  # an answer may be errors alone, with exit code 0
    windows = Windows(args) if "truncate" in args.chosen else None
    is_alone = "duplicates" not in args.chosen
    parts = [part for job in jobs for part in _parts(job, windows, is_alone)]
    with progress.shown("asking the store"):
        energy = Energy([shown for _, shown in parts])
    for part, shown in parts:
        part["joulemark"] = _object(energy.row(shown))
    _tell(energy.note)
    # SLURM_JSON=compact has sacct write one line.
    layout = {"indent": 2} if "\n" in text.strip() else {"separators": (",", ":")}
    json.dump(answer, sys.stdout, ensure_ascii=True, **layout)
    print()
    return code


def _parts(job: dict, windows: Windows | None, is_alone: bool) -> Iterator[tuple[dict, Shown]]:
    """sacct's job and each of its steps."""
    cluster, number = job["cluster"], job["job_id"]
    if windows:
        window = windows.take(cluster, str(number))
    else:
        window = (_number(job["time"]["start"]), _number(job["time"]["end"]))
    comment = job["comment"]["administrator"] or ""
    yield job, Shown(cluster, str(number), window, comment, is_alone)
    for step in job["steps"]:
        name = step["step"]["id"]
        if isinstance(name, dict):  # 23.11 and later
            name = name["step_id"]
        # 22.05 writes `batch`, later releases `12.batch`
        name = str(name).rpartition(".")[2]
        yield step, Shown(cluster, f"{number}.{name}", window, "", is_alone)


def _number(value) -> float:
    """24.05 and later write {"set": true, "infinite": false, "number": 1}; 0 is not yet."""
    if isinstance(value, dict):
        value = value["number"] if value.get("set") else 0
    return float(value) or math.inf


def _object(row: dict | None) -> dict | None:
    """A record as JSON: joules for people, microjoules for sums."""
    if row is None:
        return None
    energy_uj = row["ConsumedEnergy_uj"]
    return {
        "energy_j": None if energy_uj is None else energy_uj / UJ_PER_J,
        "energy_uj": energy_uj,
        "energy_error_j": row["UncertaintyJoules"],
        "systematic_uj": row["UncertaintySystematic_uj"],
        "random_uj": row["UncertaintyRandom_uj"],
        "estimated": bool(row["Estimated"]),
        "method": row["Method"],
        "average_w": row["AveWatts"],
        "peak_w": row["PeakWatts"],
        "domains_uj": {
            domain.lower(): row[f"Energy{domain}_uj"] for domain in ("CPU", "DRAM", "GPU", "Rest")
        },
        "idle_uj": row["EnergyIdle_uj"],
        "overhead_uj": row["EnergyOverhead_uj"],
        "overhead_error_j": row["OverheadJoules"],
        "carbon_g": row["Carbon_g"],
        "carbon_error_g": row["CarbonError_g"],
        "carbon_overhead_g": row["CarbonOverhead_g"],
        "cost": row["Cost"],
        "cost_error": row["CostError"],
        "cost_overhead": row["CostOverhead"],
        "currency": row["Currency"],
        "storage_uj": row["EnergyStorage_uj"],
        "storage_error_j": row["StorageJoules"],
        "read_bytes": row["BytesRead"],
        "written_bytes": row["BytesWritten"],
        "metadata_ops": row["MetadataOps"],
        "run": row["Run"],
        "faults": json.loads(row["Faults"]),
        "notes": row["Notes"],
        "nodes": row["Nodes"] and row["Nodes"].split(","),
        "samples": columns.seen(row, "Samples"),
        "gap_seconds": columns.seen(row, "GapSeconds"),
        "split_policy": row["SplitPolicy"],
        "missing": row["Missing"],
        "regions": row["Regions"] and json.loads(row["Regions"]),
        "source": row.get("Source", "store"),
    }
