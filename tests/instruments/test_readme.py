"""What the README of slurm-plugins tells administrators to copy is there, and is valid."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.cluster import CHECKOUT

README = (CHECKOUT / "slurm-plugins" / "README.md").read_text()
EXAMPLES = re.search(r"```yaml\ninstruments:\n(.*?)```", README, re.DOTALL)[1]
TABLE = README.partition("## Instruments")[2].partition("\\*")[0]


def test_every_instrument_has_an_example() -> None:
    rows = re.findall(r"^\| (`.*?) \|", TABLE, re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    shown = {entry["type"] for entry in yaml.safe_load(EXAMPLES)}
    sources = CHECKOUT.glob("slurm-plugins/instruments/*.c")
    exports = re.compile(r"^const jm_instrument (?:jm_module|jm_\w+) = \{", re.MULTILINE)
    written = {path.stem for path in sources if exports.search(path.read_text())}
    assert written <= told and told == shown


def test_the_examples_are_valid(joulemarkd: Path, configuration: Callable[[str], Path]) -> None:
    words = [joulemarkd, "-N", "n1", "-c", configuration(EXAMPLES), "--check"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    if "install its library" in done.stderr:
        pytest.skip(done.stderr.splitlines()[0])
    assert done.returncode == 0, done.stderr
