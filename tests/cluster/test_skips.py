"""tests/skips.txt: what it allows, where, and that a wrong line is named."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests import skips

NO_GPU = "no NVIDIA GPU here: only the library of the tests was read"
NO_SPACK = "no Spack: --no-spack was given"
TEXT = f"# a remark\n\nno-gpu: {NO_GPU} -- there is none\nno-spack: no Spack: .+ -- by CMake\n"

PACKAGES = "Package: libc6\nArchitecture: armhf\nVersion: 1\nFilename: libc6.deb\nSize: 1\n"


def read(path: Path, text: str) -> list[skips.Rule]:
    path.write_text(text)
    return skips.rules(path)


def test_a_skip_is_allowed_where_its_condition_holds(tmp_path: Path) -> None:
    rules, found = read(tmp_path / "skips.txt", TEXT), [NO_GPU, NO_SPACK]
    assert skips.forbidden(found, rules, lambda condition: True) == []
    assert skips.forbidden(found, rules, lambda condition: condition == "no-gpu") == [NO_SPACK]
    assert skips.forbidden(found, rules, lambda condition: False) == found


def test_the_whole_reason_must_be_in_the_list(tmp_path: Path) -> None:
    rules = read(tmp_path / "skips.txt", TEXT)
    for reason in ("", "no gcc here", f"{NO_GPU}, nor any other", f"and {NO_GPU}"):
        assert skips.forbidden([reason], rules, lambda condition: True) == [reason]


def test_nothing_is_looked_for_that_no_skip_asks_for(tmp_path: Path) -> None:
    rules = read(tmp_path / "skips.txt", TEXT)
    assert skips.forbidden(["no gcc here"], rules, lambda condition: pytest.fail(condition))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("no-gpu: no reason why", "give CONDITION: REASON -- WHY"),
        ("moon: x -- y", "no condition 'moon'; one of gpu, no-gpu"),
        ("gpu: a(b -- c", "missing )"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, problem: str) -> None:
    file = tmp_path / "skips.txt"
    with pytest.raises(ValueError, match=re.escape(problem)) as error:
        read(file, f"# a remark\n{line}\n")
    assert f"{file}:2: " in str(error.value)


def test_the_list_itself_can_be_read_and_each_condition_asked() -> None:
    conditions = {rule.condition for rule in skips.rules()}
    assert conditions == set(skips.CONDITIONS)
    assert skips.is_so_here("gpu") != skips.is_so_here("no-gpu")
    assert all(isinstance(skips.is_so_here(condition), bool) for condition in conditions)


@pytest.mark.parametrize(("said", "there"), [(PACKAGES, True), (PACKAGES + "\n", False)])
def test_lists_of_a_mirror_that_lags_behind_its_release_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, there: bool
) -> None:
    lists = tmp_path / "dists/suite/main/binary-armhf"
    lists.mkdir(parents=True)
    (lists / "Packages").write_text(PACKAGES)
    digest = hashlib.sha256(said.encode()).hexdigest()
    (tmp_path / "dists/suite/Release").write_text(
        "Suite: suite\nArchitectures: armhf\nComponents: main\nSHA256:\n"
        f" {digest} {len(said)} main/binary-armhf/Packages\n"
    )
    source, config = tmp_path / "sources.list", tmp_path / "apt.conf"
    source.write_text(f"deb [trusted=yes] file:{tmp_path} suite main\n")
    config.write_text(f'Dir::Etc::sourcelist "{source}";\nDir::Etc::sourceparts "/dev/null";\n')
    monkeypatch.setenv("APT_CONFIG", str(config))
    assert skips.has_lists("armhf") is there


def test_what_is_installed_here_is_no_list_of_a_mirror(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian 13's apt shows it whatever the architecture that is asked for."""
    config = tmp_path / "apt.conf"
    config.write_text('Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "/dev/null";\n')
    monkeypatch.setenv("APT_CONFIG", str(config))
    assert not skips.has_lists("amd64")


def test_a_skips_reason_is_read_from_what_pytest_writes(tmp_path: Path) -> None:
    whole, one = "pytest.importorskip('moon', reason='no moon')", "pytest.skip(\"no 'sun' here\")"
    (tmp_path / "test_whole.py").write_text(f"import pytest\n{whole}\n")
    (tmp_path / "test_one.py").write_text(f"import pytest\n\ndef test_it():\n    {one}\n")
    pytest_here = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    words = (*pytest_here, "--junitxml=found.xml")
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    found = ElementTree.parse(tmp_path / "found.xml").getroot().iter("skipped")
    assert sorted(map(skips.reason_of, found)) == ["no 'sun' here", "no moon"]
