"""tests/README.md's table: every folder and every stage is in it, and what it names is there."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import re
from pathlib import Path

from tests.cluster import CHECKOUT
from tests.suite.stages import stages

TESTS = CHECKOUT / "tests"


def rows() -> dict[str, str]:
    """Folder: stages, as they are written."""
    text = (TESTS / "README.md").read_text()
    found = re.findall(r"^\| `([^`]+)` \|[^|]*\|[^|]*\|([^|]*)\|$", text, re.MULTILINE)
    return dict(found)


def test_every_folder_of_tests_is_in_the_table_and_nothing_else() -> None:
    inside = {name.rstrip("/") for name in rows() if not name.startswith("../")}
    folders = {path.name for path in TESTS.iterdir() if any(path.glob("*.py"))}
    assert folders <= inside
    for name in rows():
        assert list(TESTS.glob(name.rstrip("/"))) or list(CHECKOUT.glob(name[3:])), name


def test_every_stage_is_in_the_table() -> None:
    named = re.findall(r"`([^`]+)`", " ".join(rows().values()))
    files = (CHECKOUT / "tests/long").glob("test_*.py")
    of_files = "|".join(path.stem.removeprefix("test_").replace("_", " ") for path in files)
    patterns = [
        re.sub(r"NAME|\\\.\\\.\\\.", ".+", re.escape(name)).replace("FILE", f"({of_files})")
        for name in named
    ]
    missing = [
        stage.name
        for stage in stages()
        if not stage.name.startswith("lint ")
        and not any(re.fullmatch(pattern, stage.name) for pattern in patterns)
    ]
    assert not missing


def test_contributing_names_what_is_there() -> None:
    text = (CHECKOUT / "CONTRIBUTING.md").read_text()
    for name in re.findall(r"[`(]((?:slurm-plugins|packages|tests)/[\w./-]+)[`)]", text):
        assert Path(CHECKOUT / name).exists() or "NAME" in name, name
