# Reads the keys of the site's joulemark.yaml that this command needs; joulemarkd checks the rest.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from joulemark.errors import UsageError
from joulemark.keys import Keys, read
from joulemark.store import days
from joulemark.store.place import Place

if TYPE_CHECKING:
    import yaml

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
        cluster=file.cluster(),
        record_dir=file.maybe_path("record_dir") or DEFAULT_RECORD_DIR,
        store=file.store(),
        rates=file.rates(),
        profiles=file.maybe_path("profile_dir"),
        timezone=file.timezone(for_merge),
        budgets=file.maybe_path("budgets"),
        by_broker=file.one_of("transport", ("directory", "mqtt")) == "mqtt",
    )


def is_there() -> bool:
    """A configuration that this user may read."""
    return os.access(find(), os.R_OK)


def zone() -> days.Zone:
    """Of the site's days; UTC where no configuration is to be read."""
    if not is_there():
        return days.Zone()
    path = find()
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


class Section(Keys):
    """The keys of the site's configuration, or of a mapping in it."""

    def cluster(self) -> str:
        """The needed one."""
        return self.text("cluster", "the ClusterName of slurm.conf")

    def store(self) -> Place:
        """The store, with the file that holds its password."""
        named = self.maybe("store", STORE) or DEFAULT_STORE
        password = self.maybe("store_password_file", "the absolute path of a file")
        file = self.absolute("store_password_file", password) if password else None
        try:
            return Place.parse(named, file)
        except ValueError as error:
            raise self.wrong("store", str(error)) from None

    def timezone(self, must_be_known: bool) -> str:
        """The name of a zone, of one that is known here where it must be."""
        name = self.maybe("timezone", "such as Europe/Berlin") or days.UTC
        try:
            return days.Zone(name).name if must_be_known else name
        except ValueError:
            raise self.wrong(
                "timezone",
                f"'{name}' is not known here; write one such as Europe/Berlin "
                "(they come with the system's package tzdata)",
            ) from None

    def rates(self) -> Rates:
        """What energy emits and costs."""
        rates = Rates(
            carbon_g_per_kwh=self._factor("carbon_g_per_kwh"),
            carbon_relative_error=self.number("carbon_relative_error") or 0.0,
            price_per_kwh=self._factor("price_per_kwh"),
            currency=self.maybe("currency", "such as EUR"),
        )
        if rates.price_per_kwh is not None and rates.currency is None:
            raise self.wrong("price_per_kwh", "of which money? add `currency: EUR`")
        return rates

    def _factor(self, key: str) -> float | Path | None:
        text = self.maybe(key, FACTOR)
        return Path(text) if text and os.path.isabs(text) else self.number(key, FACTOR)


def _root(path: Path) -> yaml.MappingNode:
    beside = _beside_slurm()
    nor = f", nor is {beside} seen" if path == USUAL and beside not in (None, path) else ""
    missing = f"{nor}: set JOULEMARK_CONFIG to the site's joulemark.yaml"
    return read(path, "cluster: NAME", missing)
