# Reads the keys of the site's joulemark.yaml that this command needs; joulemarkd checks the rest.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import math
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from joulemark.errors import UsageError
from joulemark.store import days
from joulemark.store.place import Place

NEEDED = {"cluster": "the ClusterName of slurm.conf"}
STORE = (
    "the site's store: a file's absolute path, or a URL such as "
    "postgresql://joulemark@host/joulemark"
)
USUAL = Path("/etc/slurm/joulemark.yaml")
# The daemon's, of a file that leaves them out.
DEFAULT_RECORD_DIR = Path("/var/lib/joulemark/records")
DEFAULT_STORE = "/var/lib/joulemark/store.sqlite"
# What slurm-plugins/config/config.c knows: both read one file.
KEYS = (
    *("cluster", "socket", "transport", "mqtt", "gateway", "state_dir", "record_dir", "store"),
    *("log_file", "period_s", "profile_max_hz", "profile_max_mib", "profile_dir", "cpus"),
    *("privileged_users", "instruments", "store_password_file"),
    *("carbon_g_per_kwh", "carbon_relative_error"),
    *("price_per_kwh", "currency", "timezone", "budgets"),
)
BROKER_KEYS = (
    *("host", "port", "user", "password_file", "tls", "ca_file", "cert_file", "key_file", "topic"),
)
FACTOR = "a number, or the absolute path of a CSV file with lines `time,value`"


@dataclass(frozen=True)
class Rates:
    """What a kilowatt-hour emits and costs: a number, a file with a time series, or unknown."""

    carbon_g_per_kwh: float | Path | None = None
    carbon_relative_error: float = 0.0  # k=1
    price_per_kwh: float | Path | None = None
    currency: str | None = None


@dataclass(frozen=True)
class Config:
    """What the Python command takes from the site's configuration."""

    cluster: str
    record_dir: Path
    store: Place
    rates: Rates = Rates()
    profiles: Path | None = None
    timezone: str = days.UTC  # in which the days and months of reports are
    budgets: Path | None = None
    by_broker: bool = False  # records go by MQTT

    @property
    def profile_dir(self) -> Path:
        """Where jobs' HDF5 profiles are: their users can read them there."""
        return self.profiles or self.record_dir.parent / "profiles"


def find() -> Path:
    """$JOULEMARK_CONFIG, else joulemark.yaml beside slurm.conf, else /etc/slurm/joulemark.yaml."""
    named = os.environ.get("JOULEMARK_CONFIG")
    if named:
        return Path(named)
    beside = _beside_slurm()
    return beside if beside and os.path.exists(beside) else USUAL


def _beside_slurm() -> Path | None:
    slurm_conf = os.environ.get("SLURM_CONF")
    return Path(slurm_conf).parent / USUAL.name if slurm_conf else None


def load(path: Path | None = None, *, for_merge: bool = False) -> Config:
    """The checked configuration; raises UsageError with file, line and key.

    for_merge: the time zone must be known here, too; others need not load it.
    """
    path = path or find()
    file = Section(path, _root(path), KEYS)
    return Config(
        cluster=file.text("cluster"),
        record_dir=file.maybe_path("record_dir") or DEFAULT_RECORD_DIR,
        store=file.store(),
        rates=file.rates(),
        profiles=file.maybe_path("profile_dir"),
        timezone=file.timezone(for_merge),
        budgets=file.maybe_path("budgets"),
        by_broker=file.one_of("transport", ("directory", "mqtt")) == "mqtt",
    )


def zone() -> days.Zone:
    """Of the site's days; UTC where no configuration is to be read."""
    path = find()
    if not os.access(path, os.R_OK):
        return days.Zone()
    return days.Zone(Section(path, _root(path), KEYS).timezone(must_be_known=True))


def broker(path: Path) -> Section:
    """The keys of `mqtt:`."""
    example = "{host: broker.example.org}"
    node = Section(path, _root(path), KEYS).nodes.get("mqtt")
    if node is None:
        raise UsageError(f"{path}: mqtt: missing: add `mqtt: {example}`")
    line = node.start_mark.line + 1
    if not isinstance(node.value, list) or node.id != "mapping":
        raise UsageError(f"{path}:{line}: mqtt: must be keys such as `{example}`")
    section = Section(path, node, BROKER_KEYS, "mqtt.")
    if "host" not in section.nodes:
        raise UsageError(f"{path}:{line}: mqtt.host: missing: add `host: broker.example.org`")
    return section


class Section:
    """The keys of a mapping, each read with an error that names its line."""

    def __init__(self, path: Path, root, known: Collection[str], prefix: str = ""):
        self._path, self._prefix = path, prefix
        self.nodes = {}
        for key, value in root.value:
            line = key.start_mark.line + 1
            if key.id != "scalar":
                raise UsageError(f"{path}:{line}: expected `key: value` lines, such as `cpus: 8`")
            if key.value in self.nodes:
                raise UsageError(f"{path}:{line}: {prefix}{key.value}: is given twice; remove one")
            self.nodes[key.value] = value
            if key.value not in known:
                import difflib  # here, because sound files need none

                close = difflib.get_close_matches(key.value, known, 1)
                fix = f"did you mean '{close[0]}'?" if close else "correct or remove it"
                raise self._wrong(key.value, f"is not known; {fix}")

    def text(self, key: str) -> str:
        """A needed text."""
        if key not in self.nodes:
            raise UsageError(f"{self._path}: {key}: missing: add {NEEDED[key]}")
        return self.maybe(key, NEEDED[key])

    def maybe(self, key: str, what: str) -> str | None:
        """A text, None where the key is absent."""
        node = self.nodes.get(key)
        if node is None:
            return None
        if not isinstance(node.value, str) or not node.value:
            raise self._wrong(key, f"expected one text value, {what}")
        return node.value

    def maybe_path(self, key: str) -> Path | None:
        """An absolute path, None where the key is absent."""
        text = self.maybe(key, "an absolute path")
        return self._absolute(key, text) if text else None

    def store(self) -> Place:
        """The store, with the file that holds its password."""
        named = self.maybe("store", STORE) or DEFAULT_STORE
        password = self.maybe("store_password_file", "the absolute path of a file")
        file = self._absolute("store_password_file", password) if password else None
        try:
            return Place.parse(named, file)
        except ValueError as error:
            raise self._wrong("store", str(error)) from None

    def timezone(self, must_be_known: bool) -> str:
        """The name of a zone, of one that is known here where it must be."""
        name = self.maybe("timezone", "such as Europe/Berlin") or days.UTC
        try:
            return days.Zone(name).name if must_be_known else name
        except ValueError:
            raise self._wrong(
                "timezone",
                f"'{name}' is not known here; write one such as Europe/Berlin "
                "(they come with the system's package tzdata)",
            ) from None

    def rates(self) -> Rates:
        """What energy emits and costs."""
        rates = Rates(
            carbon_g_per_kwh=self._factor("carbon_g_per_kwh"),
            carbon_relative_error=self._number("carbon_relative_error") or 0.0,
            price_per_kwh=self._factor("price_per_kwh"),
            currency=self.maybe("currency", "such as EUR"),
        )
        if rates.price_per_kwh is not None and rates.currency is None:
            raise self._wrong("price_per_kwh", "of which money? add `currency: EUR`")
        return rates

    def _factor(self, key: str) -> float | Path | None:
        text = self.maybe(key, FACTOR)
        return Path(text) if text and os.path.isabs(text) else self._number(key, FACTOR)

    def _number(self, key: str, what: str = "a number >= 0") -> float | None:
        text = self.maybe(key, what)
        if text is None:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value >= 0):
            raise self._wrong(key, f"'{text}' is not {what}")
        return value

    def whole(self, key: str, least: int, most: int) -> int | None:
        """A whole number, None where the key is absent."""
        what = f"a whole number from {least} to {most}"
        text = self.maybe(key, what)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise self._wrong(key, f"'{text}' is not {what}")
        return int(text)

    def one_of(self, key: str, words: tuple[str, ...]) -> str:
        """One of the words, the first where the key is absent."""
        what = " or ".join(words)
        text = self.maybe(key, what) or words[0]
        if text not in words:
            raise self._wrong(key, f"'{text}' is not {what}")
        return text

    def flag(self, key: str) -> bool | None:
        """true or false, None where the key is absent."""
        text = self.maybe(key, "true or false")
        if text not in (None, "true", "false"):
            raise self._wrong(key, f"'{text}' is not true or false")
        return None if text is None else text == "true"

    def _absolute(self, key: str, text: str) -> Path:
        if not os.path.isabs(text):
            raise self._wrong(key, f"'{text}' is not an absolute path")
        return Path(text)

    def _wrong(self, key: str, problem: str) -> UsageError:
        line = self.nodes[key].start_mark.line + 1
        return UsageError(f"{self._path}:{line}: {self._prefix}{key}: {problem}")


def _root(path: Path):
    """The file's YAML mapping, whose nodes know their lines."""
    import yaml  # here, because --help and reports need no YAML

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    content = b""
    try:
        content = path.read_bytes()
        root = yaml.compose(content, Loader=loader)
    except OSError as error:
        beside = _beside_slurm()
        nor = f", nor is {beside} seen" if path == USUAL and beside not in (None, path) else ""
        raise UsageError(
            f"{path}: {error.strerror}{nor}: set JOULEMARK_CONFIG to the site's joulemark.yaml"
        ) from None
    except yaml.YAMLError as error:
        raise UsageError(f"{path}{_not_yaml(content, error)}") from None
    if not isinstance(root, yaml.MappingNode):
        raise UsageError(f"{path}:1: expected `key: value` lines, such as `cluster: NAME`")
    return root


def _not_yaml(content: bytes, error) -> str:
    """In which line, what, and how it is mended; YAML's reader tells of a character, no line."""
    fix = "correct the line"
    if mark := getattr(error, "problem_mark", None):
        fix += ": it is `key: value`, the value in quotes where it has a colon and a space"
        return f":{mark.line + 1}: not YAML: {error.problem}; {fix}"
    try:
        text = content.decode()
    except UnicodeDecodeError as wrong:
        line = content.count(b"\n", 0, wrong.start) + 1
        return f":{line}: byte 0x{content[wrong.start]:02x} is not UTF-8: save the file as UTF-8"
    line = text.count("\n", 0, text.find(chr(error.character))) + 1
    return f":{line}: not YAML: {error.reason} (0x{error.character:02x}); {fix}"
