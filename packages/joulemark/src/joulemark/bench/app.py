# Applications that are not ours: what a file of packages/apps says of one.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import math
import os
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from joulemark import keys, units
from joulemark.bench import parts as parts_of
from joulemark.errors import UsageError

CHECKOUT = Path(__file__).parents[4] / "apps"
SUFFIX = ".yaml"
#: What a text may name beside the settings: of the run.
OF_RUN = ("folder", "ranks", "nodes")
SETTING = re.compile(r"[\w./:+-]+")  # nothing that any program takes for two words
_NAMED = re.compile(r"\{([a-z_]\w*)\}")
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kmgt]?)", re.IGNORECASE)
_WORD = re.compile(r"[a-z0-9][a-z0-9-]*")
_NAME = re.compile(r"[a-z_]\w*")
_PROGRAM = re.compile(r"[\w.+-]+")
_SCHEMES = ("https://", "http://", "file:///")

KEYS = ("summary", "spack", "source", "program", "version", "launch", "threads", "settings")
KEYS += ("inputs", "phases")
INPUT_KEYS = ("file", "text", "url", "sha256")
PHASE_KEYS = ("name", "command", "launch", "parts", "caveats", "figures", "checks")
PARTS_KEYS = ("folder", "file", "begins", "start", "end", "seconds", "time", "details")
FIGURE_KEYS = ("kernel", "variant", "pattern", "json", "measures", "factor", "unit", "size")
FIGURE_KEYS += ("operations", "operation", "seconds", "parts", "whole")
CHECK_KEYS = ("pattern", "json", "absent", "reference", "tolerance", "lines", "parts")
LAUNCH = ("ranks", "alone")


class FormatError(Exception):
    """What is wrong with one text of a definition, or with an output."""


@dataclass(frozen=True)
class Where:
    """In an output: a pattern with one group, or the names that lead to a value of JSON."""

    pattern: str | None
    json: str | None

    def find(self, text: str, names: dict[str, str]) -> str | None:
        """The first; None where there is none."""
        if self.json:
            return _in_json(text, self.json)
        found = re.search(expand(self.pattern, names, re.escape), text, re.MULTILINE)
        return found and (found[1] if found.re.groups else found[0])


@dataclass(frozen=True)
class Result:
    """Of a figure: so many operations at this performance, in these parts of the phase."""

    kernel: str
    parts: tuple[str, ...]  # none: in all of it
    performance: float | None  # None: nothing, or what cannot be
    operations: float


@dataclass(frozen=True)
class Figure:
    """One result of a phase, or of each of some parts: so many operations of a unit in a time."""

    kernel: str
    variant: str
    where: Where
    is_time: bool  # else the performance
    factor: float  # of what the program prints, for the unit
    unit: str
    size: str
    operations: str | None  # None: as many as the performance makes in the seconds
    operation: str
    seconds: Where | None  # that they took, where the output tells these alone
    parts: tuple[str, ...]
    is_whole: bool  # one performance of all the parts, which the output tells

    def results(self, text: str, parts: dict[str, str], names: dict[str, str]) -> list[Result]:
        """Of what the phase wrote, and of its parts' texts: one, or one of each part."""
        each = [(one,) for one in self.parts] if "{part}" in self.kernel else [self.parts]
        return [self._result(group, text, parts, names) for group in each]

    def _result(
        self, group: tuple[str, ...], text: str, parts: dict[str, str], names: dict[str, str]
    ) -> Result:
        kernel = expand(self.kernel, {**names, "part": group[0] if group else ""})
        texts = [parts.get(one, "") for one in group] or [text]
        operations = 0.0 if self.operations is None else product(expand(self.operations, names))
        if self.seconds is None:
            return Result(
                kernel, group, self._performance(texts[0], operations, names), operations
            )
        took_s = [_positive(self.seconds.find(one, names)) for one in texts]
        rates = [self._performance(one, 0, names) for one in ([text] if self.is_whole else texts)]
        if None in took_s or None in rates:
            return Result(kernel, group, None, 0)
        if self.is_whole:
            return Result(kernel, group, rates[0], rates[0] * sum(took_s))
        operations = sum(rate * one for rate, one in zip(rates, took_s))
        return Result(kernel, group, operations / sum(took_s), operations)

    def _performance(self, text: str, operations: float, names: dict[str, str]) -> float | None:
        value = _positive(self.where.find(text, names), self.factor)
        return operations / value if value and self.is_time else value


@dataclass(frozen=True)
class Check:
    """What verifies a phase's result."""

    where: Where | None
    absent: bool
    reference: str | None
    tolerance: float  # relative, of the reference
    lines: str | None
    parts: tuple[str, ...]  # in each of which it is looked for; none: in the output

    def failures(self, text: str, parts: dict[str, str], names: dict[str, str]) -> list[str]:
        """What is wrong with what a phase wrote, or with what of its parts."""
        if not self.parts:
            return [wrong] if (wrong := self.failure(text, names)) else []
        there = [one for one in self.parts if one in parts]
        found = ((one, self.failure(parts[one], names)) for one in there)
        return [f"{one}: {wrong}" for one, wrong in found if wrong]

    def failure(self, text: str, names: dict[str, str]) -> str | None:
        """What is wrong; None: nothing."""
        if self.lines is not None:
            due, found = product(expand(self.lines, names)), len(text.splitlines())
            return None if found == due else f"{found} lines, not {due:g}"
        found = self.where.find(text, names)
        told = self.where.json or self.where.pattern
        if self.absent:
            return found and f"'{found}' ({told})"
        if found is None:
            return f"no {told}"
        if self.reference is None:
            return None
        due = expand(self.reference, names)
        is_so = found == due or _is_near(found, due, self.tolerance)
        return None if is_so else f"{told}: {found}, not {due}"


@dataclass(frozen=True)
class Phase:
    """One command with an energy of its own."""

    name: str
    command: list[str]
    has_ranks: bool
    parts: parts_of.Form | None
    caveats: dict[str, Where]  # words for what the output says
    figures: list[Figure]
    checks: list[Check]

    @property
    def named_parts(self) -> list[str]:
        """That its figures and checks need."""
        return list(dict.fromkeys(one for of in self.figures + self.checks for one in of.parts))


@dataclass(frozen=True)
class Input:
    """A file that is in the run's folder before its first phase."""

    file: str
    text: str | None
    url: str | None
    sha256: str | None


@dataclass(frozen=True)
class App:
    """A definition."""

    name: str
    summary: str
    spack: str  # what `spack install` takes
    source: str
    program: str
    version: Where | None  # where an output of any phase tells it
    threads: str
    settings: dict[str, str] = field(default_factory=dict)
    inputs: list[Input] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)

    @property
    def module(self) -> str:
        """What its Spack package is called."""
        return re.match(r"[\w-]*", self.spack)[0]

    def check(self, names: dict[str, str]) -> None:
        """Before a run: UsageError where a product of the settings is none, or of nothing."""
        products = [("threads", self.threads, 1.0)]
        for phase in self.phases:
            for one in phase.figures:
                products += [(f"{phase.name}: size", one.size, 1.0)]
                if one.operations is not None:
                    products += [(f"{phase.name}: operations", one.operations, 1.0)]
            lines = (one.lines for one in phase.checks if one.lines is not None)
            products += [(f"{phase.name}: lines", text, 0.0) for text in lines]
        for what, text, least in products:
            expanded = expand(text, names)
            try:
                is_sound = least <= product(expanded) < 1 << 63
            except FormatError as error:
                raise UsageError(f"{self.name}: {what}: {error}: see --set") from None
            if not is_sound:
                raise UsageError(f"{self.name}: {what}: {expanded} is out of range: see --set")

    def with_settings(self, words: list[str]) -> dict[str, str]:
        """The settings, with those of `--set NAME=VALUE`."""
        chosen = dict(self.settings)
        for word in words:
            name, is_set, value = word.partition("=")
            if not is_set or name not in chosen:
                known = ", ".join(chosen) or "none"
                raise UsageError(f"--set {word}: give NAME=VALUE of {self.name}'s {known}")
            if not SETTING.fullmatch(value):
                raise UsageError(f"--set {word}: a value has letters, digits and ./:+-_ alone")
            chosen[name] = value
        return chosen


# -- texts ---------------------------------------------------------------------------------------


def expand(text: str, names: dict[str, str], quote=str) -> str:
    """With the values of `{name}`; braces around anything else stay."""
    return _NAMED.sub(lambda one: quote(names[one[1]]) if one[1] in names else one[0], text)


def product(text: str) -> float:
    """`4 * 256m`: numbers, of which k, m, g, t are 1024 and its powers."""
    factors = [_NUMBER.fullmatch(word.strip()) for word in text.split("*")]
    if not all(factors):
        raise FormatError(f"'{text}' is no product of numbers such as 4 * 256m")
    return math.prod(float(one[1]) * units.BINARY[one[2].lower()] for one in factors)


def _positive(text: str | None, factor: float = 1.0) -> float | None:
    """None: no number, or one that nothing has."""
    try:
        value = float(text or "") * factor
    except ValueError:
        return None
    return value if 0 < value < math.inf else None


def _is_near(text: str, due: str, tolerance: float) -> bool:
    try:
        reference = product(due)
        return abs(float(text) - reference) <= tolerance * abs(reference)
    except (ValueError, FormatError):
        return False


def _in_json(text: str, path: str) -> str | None:
    """Programs write warnings before their JSON: from its first brace on."""
    try:
        value = json.loads(text[text.index("{") :])
        for name in path.split("."):
            value = value[int(name)] if isinstance(value, list) else value[name]
    except (ValueError, LookupError, TypeError):
        return None
    return None if isinstance(value, (dict, list)) else str(value)


# -- definitions ---------------------------------------------------------------------------------


def folders() -> list[Path]:
    """$JOULEMARK_APPS, else packages/apps of the checkout that this command is in."""
    named = os.environ.get("JOULEMARK_APPS")
    if named:
        return [Path(one) for one in named.split(os.pathsep) if one]
    if CHECKOUT.is_dir():
        return [CHECKOUT]
    fix = "`module load joulemark`, or set JOULEMARK_APPS to packages/apps of the sources"
    raise UsageError(f"no definitions: {fix}")


def files() -> dict[str, Path]:
    """By name; of two with one name the first folder's."""
    found: dict[str, Path] = {}
    for folder in folders():
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            raise UsageError(f"JOULEMARK_APPS: {folder}: {error.strerror}") from None
        for name in names:
            if name.endswith(SUFFIX):
                found.setdefault(name[: -len(SUFFIX)], folder / name)
    return found


def find(name: str) -> App:
    """By its name, or by the path of its file."""
    if name.endswith(SUFFIX):
        return load(Path(name))
    known = files()
    if name not in known:
        names = ", ".join(known) or "none"
        raise UsageError(f"{name}: is no application: give one of {names}, or a file NAME{SUFFIX}")
    return load(known[name])


def load(path: Path) -> App:
    """A checked definition; raises UsageError with file, line and key."""
    root = keys.read(path, "summary: what it does", ": give a file of packages/apps")
    top = keys.Keys(path, root, KEYS)
    settings = top.texts("settings", "such as `size: 256m`")
    names = {**settings, **dict.fromkeys(OF_RUN, "1")}
    for name in settings:
        if name in OF_RUN:
            raise top.wrong("settings", f"'{name}' is a name of the run's own: take another one")
        if not _NAME.fullmatch(name):
            raise top.wrong("settings", f"'{name}' is no word of small letters, digits and _")
        if not SETTING.fullmatch(settings[name]):
            raise top.wrong("settings", f"{name}: has letters, digits and ./:+-_ alone")
    version = top.maybe("version", "a pattern with one group")
    launch = top.one_of("launch", LAUNCH)
    phases = top.each("phases", PHASE_KEYS, "phases, such as `- {name: write, command: ...}`")
    if not phases:
        raise UsageError(f"{path}: phases: missing: add what is to be run")
    app = App(
        name=path.name[: -len(SUFFIX)] if path.name.endswith(SUFFIX) else path.name,
        summary=top.text("summary", "what it does, in a line"),
        spack=top.text("spack", "what `spack install` takes"),
        source=top.text("source", "where its sources are"),
        program=_matching(top, "program", "the program's name", _PROGRAM),
        version=version and Where(_pattern(top, "version", names), None),
        threads=_product(top, "threads", names, "1"),
        settings=settings,
        inputs=[_input(one, names) for one in top.each("inputs", INPUT_KEYS, "files")],
        phases=[_phase(one, names, launch) for one in phases],
    )
    if len({phase.name for phase in app.phases}) < len(app.phases):
        raise top.wrong("phases", "two have one name")
    return app


def _matching(of: keys.Keys, key: str, what: str, pattern: re.Pattern) -> str:
    text = of.text(key, what)
    if not pattern.fullmatch(text):
        raise of.wrong(key, f"'{text}' is not {what}")
    return text


def _input(of: keys.Keys, names: dict[str, str]) -> Input:
    file = of.text("file", "the file's name")
    if "/" in file or file.startswith("."):
        raise of.wrong("file", f"'{file}' is no plain name")
    text, url = of.maybe("text", "its text"), of.maybe("url", "where it is")
    if (text is None) == (url is None):
        raise of.wrong("file", "needs either its `text`, or a `url` with its `sha256`")
    if text is not None:
        _known(of, "text", text, names)
    if url is not None and not url.startswith(_SCHEMES):
        raise of.wrong("url", f"'{url}' does not begin with {', '.join(_SCHEMES)}")
    sha256 = of.text("sha256", "64 digits of the file's checksum") if url else None
    if sha256 and not re.fullmatch("[0-9a-f]{64}", sha256):
        raise of.wrong("sha256", f"'{sha256}' has not 64 hexadecimal digits")
    return Input(file, text, url, sha256)


def _phase(of: keys.Keys, names: dict[str, str], launch: str) -> Phase:
    name = _matching(of, "name", "a word of small letters, digits and -", _WORD)
    command = of.text("command", "the program and its options")
    _known(of, "command", command, names)
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise of.wrong("command", f"{error}: close it") from None
    parts = of.each_of("parts", PARTS_KEYS, "folder, file, begins, start and end")
    has_parts = parts is not None
    figures = [
        _figure(one, names, has_parts) for one in of.each("figures", FIGURE_KEYS, "figures")
    ]
    checks = [_check(one, names, has_parts) for one in of.each("checks", CHECK_KEYS, "checks")]
    if figures and not checks:
        raise of.wrong("figures", "nothing verifies them: add `checks`")
    own = of.one_of("launch", LAUNCH) if "launch" in of.nodes else launch
    caveats = _caveats(of, names)
    form = _parts(parts, names) if has_parts else None
    return Phase(name, words, own == "ranks", form, caveats, figures, checks)


def _parts(of: keys.Keys, names: dict[str, str]) -> parts_of.Form:
    folder = of.text("folder", "where the program writes, such as {folder}/results")
    _known(of, "folder", folder, names)
    details = of.maybe("details", "files of a part, such as {part}.txt")
    if details is not None:
        _known(of, "details", details, {**names, "part": ""})
    for key in ("begins", "start", "end"):
        of.text(key, "a pattern with one group")
    told = {
        key: _compiled(of, key, names)
        for key in ("begins", "start", "end", "seconds")
        if key in of.nodes
    }
    return parts_of.Form(
        folder=folder,
        file=of.text("file", "the file that tells the parts"),
        details=details,
        time=of.maybe("time", "a format of strptime, such as %H:%M:%S"),
        **{"seconds": None, **told},
    )


def _compiled(of: keys.Keys, key: str, names: dict[str, str]) -> re.Pattern:
    text = _pattern(of, key, names)
    compiled = re.compile(text, re.MULTILINE)
    if compiled.groups != 1 or _NAMED.search(text):
        raise of.wrong(key, f"'{text}' needs one group, the value, and no setting")
    return compiled


def _caveats(of: keys.Keys, names: dict[str, str]) -> dict[str, Where]:
    told = of.texts("caveats", "such as `INVALID: pattern`")
    for word, text in told.items():
        if not _PROGRAM.fullmatch(word):
            raise of.wrong("caveats", f"'{word}' is no word")
        try:
            re.compile(text)
        except re.error as error:
            raise of.wrong("caveats", f"'{text}': {error}") from None
        _known(of, "caveats", text, names)
    return {word: Where(text, None) for word, text in told.items()}


def _figure(of: keys.Keys, names: dict[str, str], has_parts: bool) -> Figure:
    variant = of.text("variant", "by which way, such as posix")
    _known(of, "variant", variant, names)
    kernel = of.text("kernel", "what is measured")
    parts = _named_parts(of, has_parts)
    _known(of, "kernel", kernel, {**names, "part": ""} if parts else names)
    seconds = Where(_pattern(of, "seconds", names), None) if "seconds" in of.nodes else None
    is_time = of.one_of("measures", ("performance", "seconds")) == "seconds"
    if seconds and (is_time or "operations" in of.nodes):
        raise of.wrong("seconds", "makes operations of a performance: leave the others away")
    if len(parts) > 1 and not seconds and "{part}" not in kernel:
        raise of.wrong("parts", "are summed by their `seconds`: add these")
    is_whole = bool(of.flag("whole"))
    if is_whole and not (parts and seconds):
        raise of.wrong("whole", "is of `parts` with `seconds`: add these")
    return Figure(
        kernel=kernel,
        variant=variant,
        where=_where(of, names),
        is_time=is_time,
        factor=1.0 if (factor := of.number("factor")) is None else factor,
        unit=of.text("unit", "of the performance, such as B/s"),
        size=_product(of, "size", names),
        operations=None if seconds else _product(of, "operations", names),
        operation=of.text("operation", "what is done, such as byte"),
        seconds=seconds,
        parts=parts,
        is_whole=is_whole,
    )


def _named_parts(of: keys.Keys, has_parts: bool) -> tuple[str, ...]:
    if "parts" in of.nodes and not has_parts:
        raise of.wrong("parts", "the phase tells none: add its `parts`")
    return tuple((of.maybe("parts", "names of parts, such as write read") or "").split())


def _check(of: keys.Keys, names: dict[str, str], has_parts: bool) -> Check:
    lines = _product(of, "lines", names) if "lines" in of.nodes else None
    where = None if lines is not None else _where(of, names)
    reference = of.maybe("reference", "what is due")
    if reference is not None:
        _known(of, "reference", reference, names)
    return Check(
        where=where,
        absent=bool(of.flag("absent")),
        reference=reference,
        tolerance=of.number("tolerance") or 0.0,
        lines=lines,
        parts=_named_parts(of, has_parts),
    )


def _where(of: keys.Keys, names: dict[str, str]) -> Where:
    path = of.maybe("json", "names, such as jobs.0.write.bw_bytes")
    if path and "pattern" not in of.nodes:
        return Where(None, path)
    of.text("pattern", "where in the output it is, or `json`")
    if path:
        raise of.wrong("json", "is beside a pattern: leave one of them away")
    return Where(_pattern(of, "pattern", names), None)


def _pattern(of: keys.Keys, key: str, names: dict[str, str]) -> str:
    text = of.text(key, "a regular expression")
    _known(of, key, text, names)
    try:
        compiled = re.compile(expand(text, names))
    except re.error as error:
        raise of.wrong(key, f"'{text}': {error}") from None
    if compiled.groups > 1:
        raise of.wrong(key, f"'{text}' has {compiled.groups} groups: one is the value")
    return text


def _product(of: keys.Keys, key: str, names: dict[str, str], default: str | None = None) -> str:
    what = "a product of numbers and {settings}"
    text = of.text(key, what) if default is None else of.maybe(key, what) or default
    if key in of.nodes:
        _known(of, key, text, names)
        try:
            product(expand(text, names))
        except FormatError as error:
            raise of.wrong(key, str(error)) from None
    return text


def _known(of: keys.Keys, key: str, text: str, names: dict[str, str]) -> None:
    for name in _NAMED.findall(text):
        if name not in names:
            raise of.wrong(key, f"{{{name}}} is no setting: give one of {', '.join(names)}")
