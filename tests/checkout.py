"""The files of this checkout, and copies of some of them that a test may spoil."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.cluster import CHECKOUT

#: what is built and what builds it; what of it is released
SOURCES = ("packages", "slurm-plugins", "job-templates", "spack-repo", "environments")
PROJECT = (*SOURCES, "*.yaml", "CHANGELOG.md")


def tracked(*patterns: str) -> list[str]:
    """Files under version control, and new ones that are not ignored."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    listed = subprocess.run(
        [*words, *patterns], cwd=CHECKOUT, check=True, capture_output=True, text=True, timeout=60
    ).stdout
    return [name for name in listed.split("\0") if name and (CHECKOUT / name).is_file()]


def copy_to(place: Path, *patterns: str) -> Path:
    """The sources as a clone has them, in another place."""
    for name in tracked(*patterns):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / name, place / name)
    return place


def repository_of(place: Path) -> Path:
    """A copy as a git repository of one commit; who commits there later is nobody, too."""
    for words in (
        ("init", "--quiet"),
        ("config", "user.name", "nobody"),
        ("config", "user.email", "nobody@localhost"),
        ("add", "--all"),
        ("commit", "--quiet", "--message", "all"),
    ):
        subprocess.run(["git", "-C", place, *words], check=True, timeout=60)
    return place


def announce(place: Path) -> None:
    """A copy's change log begins with what is not released."""
    changes = place / "CHANGELOG.md"
    text = changes.read_text()
    if "\n## Unreleased" not in text:
        changes.write_text(text.replace("\n## ", "\n## Unreleased: more\n\n## ", 1))
