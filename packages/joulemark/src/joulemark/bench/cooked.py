# Reads benchmarks' cooked output: one JSON line a measurement, each checked before it counts.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timezone
from pathlib import Path

from joulemark import output, progress
from joulemark.bench.manifest import Manifest
from joulemark.errors import UsageError
from joulemark.times import from_iso

# Far beyond all that is measured; ratios and squares of what is between them are finite.
LEAST, MOST = 1e-30, 1e30
LONGEST = 1 << 20  # bytes of a line


@dataclass(frozen=True)
class Measurement:
    """One run of one problem; energies and times are those of one iteration."""

    benchmark: str
    kernel: str
    variant: str
    size: int
    threads: int
    ranks: int
    target: str
    cpu: str
    runs: int
    verified: bool
    unit: str  # of performance: B/s, F/s, U/s (updates), or another word's
    operations: float | None
    time_s: float | None
    time_spread_s: float | None  # standard deviation of time_s, itself a mean
    performance: float | None
    energy_j: float | None
    energy_uncertainty_j: float | None
    power_w: float | None
    estimated: bool
    device: str = ""  # that computed, such as a GPU; empty: the CPU
    repetitions: int | None = None  # timed ones of one run, whose mean time_s is
    nodes: int = 0  # 0: an earlier program did not tell, and it had several ranks
    manifest: Manifest | None = None  # None: an earlier program had none
    job: str = ""  # empty: outside Slurm
    node: str = ""  # of the first rank; empty: not told
    channels: str = ""  # by which the energy was measured, in order; empty: not told
    start_s: float | None = None  # since 1970; `load` knows it of all
    options: str = ""  # the program's own, in order: `every=10 steps=10`


class LineError(Exception):
    """What is wrong with one line: key, value, and what it must be."""


def load(places: list[str], option: str = "--from") -> list[Measurement]:
    """All measurements of the files and folders, which the option named; a bad line is named on
    stderr and left out. A line that does not tell its start has its file's time."""
    found = []
    for path in progress.counted(_files(places, option), "files of results read"):
        with _named(option, path):
            written_s = path.stat().st_mtime
        for number, line in _lines(option, path):
            try:
                one = parse(_text(line))
            except LineError as error:
                output.tell([f"{path}:{number}: {error}: line left out"])
            else:
                found.append(one if one.start_s is not None else replace(one, start_s=written_s))
    return found


@contextlib.contextmanager
def _named(option: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        path = error.filename or path  # of a folder, what is below it
        raise UsageError(f"{option} {path}: {error.strerror}: name other results") from None


def _lines(option: str, path: Path) -> Iterator[tuple[int, bytes]]:
    """With their numbers, without empty ones; what has none, such as /dev/zero, is not read on."""
    with _named(option, path), open(path, "rb") as file:
        for number in itertools.count(1):
            line = file.readline(LONGEST)
            if len(line) == LONGEST:
                why = f"no line ends within {LONGEST} bytes"
                raise UsageError(f"{option} {path}:{number}: {why}: name other results")
            if line.strip():
                yield number, line.rstrip(b"\r\n")
            elif not line:
                return


def _files(places: list[str], option: str) -> list[Path]:
    places = places or [os.environ.get("JOULEMARK_RESULTS") or "."]
    files: dict[Path, None] = {}
    for place in map(Path, places):
        with _named(option, place):
            try:
                is_folder = stat.S_ISDIR(place.stat().st_mode)  # exists() hides why since 3.14
            except FileNotFoundError:
                raise UsageError(f"{option} {place}: no such file or folder") from None
            inside = sorted(_below(place)) if is_folder else [place]
        files.update(dict.fromkeys(path.resolve() for path in inside))
    if not files:
        raise UsageError(
            f"no *.cooked.jsonl below {', '.join(places)}: name the place with {option}"
        )
    return list(files)


def _below(folder: Path) -> Iterator[Path]:
    """Path.rglob() passes over a folder that it may not read, and a part would be judged."""

    def refuse(error: OSError) -> None:
        raise error

    for place, _, names in os.walk(folder, onerror=refuse):
        yield from (Path(place, name) for name in names if name.endswith(".cooked.jsonl"))


def _text(line: bytes) -> str:
    """Python would take some lines for UTF-16, and say so of others."""
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise LineError(f"not UTF-8: byte {error.start + 1} is 0x{byte:02x}") from None


def parse(line: str) -> Measurement:
    """One line; LineError says which key is wrong."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LineError(f"not JSON: {error}") from None
    if not isinstance(values, dict):
        raise LineError("must be one JSON object")
    verified = _get(values, "verified", bool, "true or false")
    numbers = {key: _number(values, key) if verified else None for key in _NUMBERS}
    if verified and None in (numbers["time_s"], numbers["performance"]):
        raise LineError("time_s, performance: null: must be numbers, for verified is true")
    for key in ("time_s", "performance") if verified else ():
        if numbers[key] == 0:
            raise LineError(f"{key}: {numbers[key]}: must be above 0, for verified is true")
    return Measurement(
        verified=verified,
        **{key: _get(values, key, str, "a text") for key in _TEXTS if key != "unit"},
        **{key: _count(values, key) for key in ("size", "threads", "ranks", "runs")},
        **numbers,
        estimated=_estimated(values, numbers["energy_j"]),
        repetitions=None if values.get("repetitions") is None else _count(values, "repetitions"),
        nodes=_nodes(values),
        unit=_unit(_get(values, "unit", str, "a text")),
        device=_text_or_null(values, "device"),
        manifest=_manifest(values),
        job=_text_or_null(values, "job"),
        node=_text_or_null(values, "node"),
        channels=_in_order(_text_or_null(values.get("manifest") or {}, "channels", "manifest.")),
        start_s=_start_s(values),
        options=_options(values),
    )


_TEXTS = ("benchmark", "kernel", "variant", "target", "cpu", "unit")
_NUMBERS = (
    "operations",
    "time_s",
    "time_spread_s",
    "performance",
    "energy_j",
    "energy_uncertainty_j",
    "power_w",
)


def _get(values: dict, key: str, kind: type, expected: str, where: str = ""):
    value = values.get(key)
    if not isinstance(value, kind) or (kind is str and not _is_unicode(value)):
        raise LineError(f"{where}{key}: {json.dumps(value)}: must be {expected}")
    return value


def _text_or_null(values: dict, key: str, where: str = "") -> str:
    return "" if values.get(key) is None else _get(values, key, str, "a text or null", where)


def _manifest(values: dict) -> Manifest | None:
    """Other keys, such as the frequency of that moment, make a run no other one."""
    if values.get("manifest") is None:
        return None
    found = _get(values, "manifest", dict, "an object or null")
    told = {key: _text_or_null(found, key, "manifest.") for key in Manifest._fields}
    told["instruments"] = _in_order(told["instruments"])
    return Manifest(**told)


_OPTION = "option_"
_DRAW = "option_seed"  # another one is no other problem, but another draw of it


def _options(values: dict) -> str:
    """The program's own, which have keys of their own in a line."""
    keys = (key for key in values if key.startswith(_OPTION) and key != _DRAW)
    return _in_order(" ".join(f"{_option(key)}={_value(values, key)}" for key in keys))


def _option(key: str) -> str:
    name = key[len(_OPTION) :]
    if not _is_word(name) or "=" in name:
        raise LineError(f"{json.dumps(key)}: must be {_OPTION} and a word without =")
    return name


def _value(values: dict, key: str) -> str:
    value = values[key]
    if isinstance(value, str) and _is_word(value):
        return value
    if type(value) in (int, float) and abs(value) <= MOST:
        return str(int(value)) if value == int(value) else f"{value:.15g}"
    raise LineError(f"{key}: {json.dumps(value)}: must be a word, or a number within {MOST}")


def _is_word(text: str) -> bool:
    return text.split() == [text] and _is_unicode(text)


def _in_order(words: str) -> str:
    """Whichever of the nodes told them first."""
    return " ".join(sorted(words.split()))


def _is_unicode(text: str) -> bool:
    """JSON can write half of a character, which nothing can print."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _start_s(values: dict) -> float | None:
    text = _text_or_null(values, "start")
    if not text:
        return None
    try:
        start = from_iso(text)
        if start.tzinfo is not None and start.astimezone(timezone.utc).year >= 1970:
            return start.timestamp()
    except (ValueError, OverflowError):
        pass
    expected = "a time since 1970 with its zone, such as 2026-01-31T12:00:00+00:00"
    raise LineError(f"start: {json.dumps(text)}: must be {expected}")


def _count(values: dict, key: str) -> int:
    value = values.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 1 << 63:
        raise LineError(f"{key}: {json.dumps(value)}: must be a whole number from 1 to 2^63 - 1")
    return value


def _nodes(values: dict) -> int:
    """One rank was on one node, whether or not the program told."""
    if values.get("nodes") is not None:
        return _count(values, "nodes")
    return 1 if values["ranks"] == 1 else 0


def _number(values: dict, key: str) -> float | None:
    value = values.get(key)
    if value is None:
        return None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value < math.inf:
        raise LineError(f"{key}: {json.dumps(value)}: must be a finite number >= 0, or null")
    if value and not LEAST <= value <= MOST:
        raise LineError(f"{key}: {json.dumps(value)}: must be 0, or from {LEAST} to {MOST}")
    return float(value)


def _unit(unit: str) -> str:
    """`update/s` is U/s, as the published tables have it."""
    return "U/s" if unit == "update/s" else unit


def _estimated(values: dict, energy_j: float | None) -> bool:
    """Energy that does not say how it was found could pass for a measurement: refused."""
    estimated = values.get("estimated")
    if energy_j is not None and not isinstance(estimated, bool):
        raise LineError("estimated: must be true or false where there is an energy")
    return bool(estimated)
