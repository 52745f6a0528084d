"""Adding an instrument: the one of instruments/README.md, built by its commands against what is
installed, is read as any other."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT
from tests.pages import files_of
from tests.peers.joulemarkd import NODE

PAGE = CHECKOUT / "slurm-plugins" / "instruments" / "README.md"
COMMAND = re.compile(r"^    ((?:cc|install) .*)$", re.MULTILINE)
LINES_OF_AN_INSTRUMENT = 80


@pytest.fixture
def installed(joulemarkd, tmp_path) -> Path:
    """The daemon's prefix, copied: a module of a site's own is put beside ours."""
    if not (joulemarkd.resolve().parents[1] / "lib/joulemark/include").is_dir():
        pytest.fail(f"{joulemarkd} is not installed: its headers are missing")
    prefix = tmp_path / "prefix"
    for part in ("sbin/joulemarkd", "bin/joulemarkctl", "lib/joulemark"):
        source, to = joulemarkd.resolve().parents[1] / part, prefix / part
        to.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, to)
    return prefix


@pytest.fixture
def site(tmp_path) -> Path:
    """A folder with the page's file."""
    files = files_of(PAGE)
    assert files["battery.c"].count("\n") <= LINES_OF_AN_INSTRUMENT
    (tmp_path / "battery.c").write_text(files["battery.c"])
    return tmp_path


@pytest.fixture
def batteries(tmp_path) -> Path:
    """As a ThinkPad with two has them (linux, drivers/power/supply/test_power.c for the names)."""
    for name, power_uw in (("BAT0", "12345000"), ("BAT1", "-6789000"), ("AC", None)):
        folder = tmp_path / "power_supply" / name
        folder.mkdir(parents=True)
        (folder / "type").write_text("Battery\n" if power_uw else "Mains\n")
        if power_uw:
            (folder / "power_now").write_text(f"{power_uw}\n")
    return tmp_path / "power_supply"


def build(site: Path, prefix: Path) -> None:
    commands = COMMAND.findall(PAGE.read_text())
    assert len(commands) == 2
    for command in commands:
        words = ["sh", "-ec", command.replace("PREFIX", str(prefix))]
        done = subprocess.run(words, cwd=site, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and not done.stderr, done.stderr


def run(prefix: Path, config: Path, *words: str) -> subprocess.CompletedProcess:
    command = [prefix / "sbin/joulemarkd", "-N", NODE, "-c", config, *words]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(command, **streams, text=True, timeout=60)


def test_a_module_of_a_sites_own_is_read(installed, site, batteries, configuration):
    config = configuration(f"  - {{type: battery, name: pack, root: {batteries}}}\n")
    missing = run(installed, config, "--probe", "1")
    assert missing.returncode == os.EX_CONFIG
    assert "or a module of your own, is 'battery'" in missing.stdout
    build(site, installed)
    done = run(installed, config, "--probe", "1")
    assert done.returncode == 0, done.stdout
    readings = map(json.loads, done.stdout.splitlines())
    found = [(one["channel"], one["value"], one["unit"]) for one in readings]
    assert found == [("BAT0", 12.345, "W"), ("BAT1", 6.789, "W")]


def test_whoever_reads_the_configuration_takes_it(installed, site, batteries, configuration):
    """joulemarkctl does, and with it slurmctld's epilog."""
    build(site, installed)
    config = configuration(f"  - {{type: battery, name: pack, root: {batteries}}}\n")
    words = [installed / "bin/joulemarkctl", "-N", NODE, "config", "cluster"]
    env = {**os.environ, "JOULEMARK_CONFIG": str(config)}
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "test\n", "")


def test_a_module_of_another_version_is_refused(installed, site, batteries, configuration):
    source = site / "battery.c"
    source.write_text(source.read_text().replace("JM_INSTRUMENT_VERSION,", "99,"))
    build(site, installed)
    config = configuration(f"  - {{type: battery, name: pack, root: {batteries}}}\n")
    done = run(installed, config, "--probe", "1")
    assert done.returncode == os.EX_CONFIG
    assert "'battery' cannot be used here: its module was built for version 99 of" in done.stdout


def test_a_module_that_is_not_whole_is_refused(installed, site, batteries, configuration):
    """The daemon would end by a signal."""
    source = site / "battery.c"
    source.write_text(re.sub(r" *\.read = battery_read,\n", "", source.read_text()))
    module, headers = (installed / "lib/joulemark" / name for name in ("battery.so", "include"))
    words = ["cc", "-w", "-shared", "-fPIC", "-I", headers, "-o", module, source]
    subprocess.run(words, check=True, timeout=120)
    done = run(installed, configuration("  - {type: battery}\n"), "--check")
    assert done.returncode == os.EX_CONFIG and "lacks type, keys, open, describe" in done.stdout


def test_a_type_leads_to_no_other_folder(installed, site, batteries, configuration):
    build(site, installed)
    shutil.move(installed / "lib/joulemark/battery.so", installed / "battery.so")
    done = run(installed, configuration("  - {type: ../../battery}\n"), "--probe", "1")
    assert done.returncode == os.EX_CONFIG and "is '../../battery'" in done.stdout


HEADERS = ("instrument.h", "common.h", "settings.h", "text.h", "log.h")
#: what the headers declare beside, and the daemon alone calls: its registry, its configuration
THE_DAEMONS_OWN = re.compile(
    r"jm_(settings_\w+|log_open|auto_\w+|tell_nobody|module_symbol|instrument_\w+)"
)


@pytest.mark.parametrize("program", ["sbin/joulemarkd", "bin/joulemarkctl"])
def test_all_that_the_headers_declare_is_in_what_loads_modules(installed, program):
    texts = ((installed / "lib/joulemark/include" / name).read_text() for name in HEADERS)
    declaration = re.compile(r"^[\w ]+[ *](jm_\w+)\([^;{]*\);", re.MULTILINE | re.DOTALL)
    declared = {name for text in texts for name in declaration.findall(text)}
    declared = {name for name in declared if not THE_DAEMONS_OWN.fullmatch(name)}
    assert len(declared) > 30
    words = ["nm", "--dynamic", "--defined-only", installed / program]
    table = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    exported = set(re.findall(r" T (jm_\w+)$", table, re.MULTILINE))
    assert declared <= exported, declared - exported


#: of the headers without comments and blanks, by JM_INSTRUMENT_VERSION
INTERFACES = {1: "89f21585a99ea3bc"}


def test_another_interface_has_another_version():
    """A module that was built for the one before must be refused: with a new digest goes a new
    number."""
    folder, text = CHECKOUT / "slurm-plugins", ""
    for name in ("instruments/instrument.h", "instruments/common.h", "instruments/settings.h"):
        text += (folder / name).read_text()
    text += (folder / "common/text.h").read_text()
    version = int(re.search(r"JM_INSTRUMENT_VERSION = (\d+)", text)[1])
    code = "".join(re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL).split())
    assert INTERFACES.get(version) == hashlib.sha256(code.encode()).hexdigest()[:16]
