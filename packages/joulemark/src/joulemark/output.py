# Writes records as CSV, JSON or Parquet: to stdout, or to a file that is whole or not there.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import contextlib
import csv
import importlib.util
import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Callable

from joulemark import progress
from joulemark.errors import UsageError, UserError, module_missing

FORMATS = ("csv", "json", "parquet")  # for programs
WORDS = ("terminal", "markdown", *FORMATS)  # what --format can be, of every command
ENDINGS = {".csv": "csv", ".json": "json", ".md": "markdown", ".parquet": "parquet"}
FIGURES = (".png", ".svg", ".pdf")
FIGURE = "a figure"  # what --out can be of a command that draws, too
PAGES = (".html", ".htm")
Batches = Iterable[list[dict]]


def printable(text: str) -> str:
    """Without what a terminal would obey: controls, escapes, marks that turn the order of letters.
    All that people read goes through here: names are of others' making."""
    return _spelt(text, lambda _: "?")


def _spelt(text: str, of: Callable[[str], str]) -> str:
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else of(one) for one in text)


@contextlib.contextmanager
def replaced(path: str, mode: str = "w") -> Iterator:
    """--out: a file that takes its place only when all of it is written; a link's target does.

    What is no file, such as /dev/null or a FIFO, keeps its place and is written to.
    """
    real = os.path.realpath(path)
    in_place = os.path.exists(path) and not os.path.isfile(path)
    folder, name = os.path.split(real)
    partial = path if in_place else os.path.join(folder, f".{name}.{os.getpid()}")
    more = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        with open(partial, mode, **more) as file:
            yield file
        if not in_place:
            os.replace(partial, real)
    except OSError as error:
        raise UserError(f"--out {path}: {error.strerror}: name another file") from None
    finally:
        if not in_place:
            with contextlib.suppress(OSError):  # it took its place, or was never there
                os.unlink(partial)


def add_arguments(parser: argparse.ArgumentParser, draws: bool = False) -> None:
    """--format, --json, as Slurm has it, and --out; settle_format() ends what they begin.

    draws: --out may be a figure, too, which options.format is then.
    """
    figures = dict.fromkeys(FIGURES, FIGURE) if draws else {}
    parser.set_defaults(endings={**ENDINGS, **figures})
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--format",
        choices=WORDS,
        help="how to print (default: as --out ends, else terminal)",
    )
    form.add_argument(
        "--json", action="store_const", const="json", dest="format", help="as --format json"
    )
    add_out(parser)


def settle_format(options: argparse.Namespace) -> None:
    """That of the ending of --out where there is no --format; the two may not differ."""
    ending = os.path.splitext(options.out or "")[1].lower()
    of_ending = options.endings.get(ending)
    if of_ending is None and ending in (*FIGURES, *PAGES):
        known = ", ".join(ENDINGS)
        raise UsageError(f"--out {options.out}: it would hold a table: end it in {known} or .txt")
    if options.format is None:
        draws = FIGURE in options.endings.values()  # then it is a figure, or none of its kinds
        if of_ending is None and ending not in ("", ".txt") and not draws:
            raise UsageError(
                f"--out {options.out}: it would hold a table for people: end it in "
                f"{', '.join(ENDINGS)} or .txt, or say --format"
            )
        options.format = of_ending or "terminal"
    elif of_ending not in (None, options.format):
        kind = FIGURE if of_ending == FIGURE else f"--format {of_ending}"
        raise UsageError(
            f"--out {options.out}: {ending} is of {kind}, and --format is "
            f"{options.format}: leave it away, or end the name otherwise"
        )
    if options.format == "parquet" and options.out is None:
        raise UsageError("--format parquet: it is no text: name a file with --out")


def add_out(parser: argparse.ArgumentParser, *before: str) -> None:
    """--out; before: what it was called."""
    parser.add_argument("--out", *before, metavar="FILE", help="write there (default: stdout)")


def check_plots() -> None:
    """Before the work, not after it."""
    if importlib.util.find_spec("matplotlib") is None:
        raise module_missing("figures", "matplotlib", "plots")


def add_new_folder(parser: argparse.ArgumentParser) -> None:
    """--out of what is many files."""
    parser.add_argument("--out", required=True, metavar="DIR", help="a folder, new or empty")


def check_figure(option: str, path: str) -> None:
    """Matplotlib would add an ending, or end in a traceback after all the work."""
    check_plots()
    if os.path.splitext(path)[1].lower() not in FIGURES:
        raise UsageError(f"{option} {path}: end it in {', '.join(FIGURES[:-1])} or {FIGURES[-1]}")


def check_page(option: str, path: str | None) -> None:
    """No HTML in a file that its name says to be something else."""
    if os.path.splitext(path or "")[1].lower() not in ("", *PAGES):
        raise UsageError(f"{option} {path}: it is a page of HTML: end it in {' or '.join(PAGES)}")


def write_text(text: str, path: str | None) -> None:
    """To stdout, or to a file."""
    if path is None:
        sys.stdout.write(text)
        return
    with replaced(path) as file:
        file.write(text)


def tell(lines: Iterable[object]) -> None:
    """On stderr, for who reads no notes: stdout, or the file, is a program's."""
    for line in lines:
        print(printable(f"joulemark: {line}"), file=sys.stderr)


def write_folder(folder: str, files: Iterable[tuple[str, str]]) -> None:
    """Files by their path below it, alone there: readers take all that they find."""
    try:
        os.makedirs(folder, exist_ok=True)
        if os.listdir(folder):
            raise UsageError(f"--out {folder}: is not empty: name a new folder")
        for name, text in progress.counted(files, "files written"):
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_text(text, path)
    except OSError as error:
        raise UserError(f"--out {folder}: {error.strerror}") from None


def write(batches: Batches, form: str, path: str | None, columns: Iterable[str] = ()) -> None:
    """Writes batch by batch; every record must have the same keys: columns, where they are known
    though there is no record."""
    if form == "parquet":
        _write_parquet(batches, path, columns)
        return
    writer = {"csv": _write_csv, "json": _write_json}[form]
    if path is None:
        writer(batches, sys.stdout, columns)
    else:
        with replaced(path) as file:
            writer(batches, file, columns)


def _write_csv(batches: Batches, file, columns: Iterable[str]) -> None:
    add = None
    for batch in filter(None, batches):
        add = add or csv_rows(file, batch[0])
        add(batch)
    if add is None and columns:
        csv_rows(file, columns)


def csv_rows(file, columns: Iterable[str]) -> Callable[[list[dict]], None]:
    """Writes the columns' names; what it returns writes records below them."""
    writer = csv.DictWriter(file, list(columns), lineterminator="\n")
    writer.writeheader()

    def add(records: list[dict]) -> None:
        for record in records:
            writer.writerow({name: _csv_value(value) for name, value in record.items()})

    return add


def _csv_value(value):
    return str(value).lower() if isinstance(value, bool) else value


def _write_json(batches: Batches, file, columns: Iterable[str]) -> None:
    file.write("[")
    comma = "\n"
    for batch in batches:
        for record in batch:
            text = json.dumps(record, ensure_ascii=False)
            file.write(comma + _spelt(text, lambda one: json.dumps(one)[1:-1]))
            comma = ",\n"
    file.write("\n]\n")


def _write_parquet(batches: Batches, path: str, columns: Iterable[str]) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise module_missing("--format parquet", "pyarrow", "parquet") from None
    with replaced(path, "wb") as file:
        writer = None

        def begin(names: Iterable[str], batch: list[dict]):
            types = [(name, _arrow_type(pyarrow, name, batch)) for name in names]
            return parquet.ParquetWriter(file, pyarrow.schema(types))

        for batch in filter(None, batches):
            writer = writer or begin(batch[0], batch)
            writer.write_table(pyarrow.Table.from_pylist(batch, writer.schema))
        if writer is None and not columns:
            raise UserError(f"{path}: there are no records: no Parquet file without its columns")
        writer = writer or begin(columns, [])
        writer.close()


# Endings of columns' names, in which the first batch may have no value.
REAL = ("_g", "cost", "cost_error", "cost_overhead", "systematic_uj", "random_uj", "_j", "_w")
REAL += ("seconds", "time", "time_s", "elapsed_s", "period_s", "run_s", "gap_s", "peak")
REAL += ("performance", "efficiency", "_cpu_s")
REAL += ("_fraction", "_ratio", "_error", "_spread", "_interval", "_uncertainty", "share", "part")
WHOLE = ("_uj", "_ns", "jobs", "uid", "job_id_raw", "run", "number", "samples", "size", "runs")
WHOLE += ("threads", "ranks", "nodes", "workers", "_bytes", "_ops")
TRUTH = ("estimated", "incomplete", "verified", "other_instrument", "several_instruments")


def _arrow_type(pyarrow, name: str, batch: list[dict]):
    """A column's type: by its values, or, where the first batch has none, by its name."""
    kinds = {type(record[name]) for record in batch} - {type(None)}
    ending = name[:-2] if name.endswith(("_a", "_b")) else name  # of one side of `diff`
    if bool in kinds or (not kinds and ending.endswith(TRUTH)):
        return pyarrow.bool_()
    if float in kinds or (kinds <= {int} and ending.endswith(REAL)):
        return pyarrow.float64()
    if int in kinds or (not kinds and ending.endswith(WHOLE)):
        return pyarrow.int64()
    return pyarrow.string()
