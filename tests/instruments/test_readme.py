"""What administrators are given to copy is whole and valid: the README's examples and site's."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import yaml

from tests.cluster import CHECKOUT

README = (CHECKOUT / "slurm-plugins" / "README.md").read_text()
SITE = CHECKOUT / "slurm-plugins" / "site" / "joulemark.yaml"
EXAMPLES = re.search(r"```yaml\ninstruments:\n(.*?)```", README, re.DOTALL)[1]
TABLE = README.partition("## Instruments")[2].partition("\\*")[0]


def test_every_instrument_has_an_example():
    rows = re.findall(r"^\| (`.*?) \|", TABLE, re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    shown = {entry["type"] for entry in yaml.safe_load(EXAMPLES)}
    sources = CHECKOUT.glob("slurm-plugins/instruments/*.c")
    exports = re.compile(r"^const jm_instrument (?:jm_module|jm_\w+) = \{", re.MULTILINE)
    written = {path.stem for path in sources if exports.search(path.read_text())}
    assert written <= told and told == shown


def check(joulemarkd: Path, path: Path) -> None:
    words = [joulemarkd, "-N", "n1", "-c", path, "--check"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_examples_are_valid(joulemarkd, configuration):
    check(joulemarkd, configuration(EXAMPLES))


def test_sites_example_is_valid_with_every_key(joulemarkd, tmp_path):
    head, cluster, rest = SITE.read_text().partition("\ncluster:")
    path = tmp_path / "joulemark.yaml"
    path.write_text(head + cluster + re.sub(r"^# ", "", rest, flags=re.MULTILINE))
    check(joulemarkd, path)


def test_the_gateways_example_is_valid(joulemarkd):
    check(joulemarkd, SITE.with_name("gateway.yaml"))
