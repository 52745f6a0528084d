"""`spack-repo/release`: what it writes, and what it refuses before it writes anything."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import hashlib
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.checkout import PROJECT, announce, copy_to, repository_of

URL = "https://git.example.net/site/joulemark.git"
OURS = ("--git", URL, "--maintainer", "me")
RECIPES = "spack-repo/spack_repo/joulemark/packages"


def git(work: Path, *words: str) -> str:
    command = ["git", "-C", work, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def release(work: Path, *words: str | Path) -> subprocess.CompletedProcess:
    command = [work / "spack-repo/release", "--out", work.parent, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture
def work(tmp_path) -> Path:
    """A checkout of which something is to be released."""
    place = copy_to(tmp_path / "work", *PROJECT)
    announce(place)
    return repository_of(place)


def test_it_tags_packs_and_offers_the_release(work):
    done = release(work, "9.9.0", "--git", URL, "--maintainer", "me", "--maintainer", "you")
    assert done.returncode == 0, done.stderr
    commit = git(work, "rev-parse", "v9.9.0^{commit}")
    assert git(work, "rev-parse", "HEAD^") == commit
    assert f"now: git push {URL} HEAD v9.9.0\n" in done.stdout
    line = f'    version("main")\n    version("9.9.0", tag="v9.9.0", commit="{commit}")\n'
    assert line in (work / RECIPES / "mod2am/package.py").read_text()
    suite = (work / RECIPES / "joulemark_suite/package.py").read_text()
    assert '    version("main")\n    version("9.9.0")\n' in suite
    project = (work / RECIPES / "../build_systems/project.py").read_text()
    assert f'\nGIT = "{URL}"\n' in project and '\nMAINTAINERS = ("me", "you")\n' in project
    with tarfile.open(work.parent / "joulemark-9.9.0.tar.gz") as tarball:

        def text(name: str) -> str:
            return tarball.extractfile(f"joulemark-9.9.0/{name}").read().decode()

        assert re.search(r"^## 9\.9\.0 \(20\d\d-\d\d-\d\d\)", text("CHANGELOG.md"), re.MULTILINE)
        assert "## Unreleased" not in text("CHANGELOG.md")
        assert '__version__ = "9.9.0"' in text("packages/joulemark/src/joulemark/__init__.py")
        assert "find_package(benchkit 9.9 CONFIG" in text("packages/mod2am/CMakeLists.txt")
        assert "joulemark-slurm VERSION 9.9.0" in text("slurm-plugins/CMakeLists.txt")


def test_a_tarball_is_offered_by_its_sum(work):
    where = "https://example.net/releases"
    done = release(work, "9.9.0", *OURS, "--tarballs", where)
    assert done.returncode == 0, done.stderr
    tarball = (work.parent / "joulemark-9.9.0.tar.gz").read_bytes()
    line = f'    version("9.9.0", sha256="{hashlib.sha256(tarball).hexdigest()}")\n'
    assert line in (work / RECIPES / "benchkit/package.py").read_text()
    assert f"put joulemark-9.9.0.tar.gz into {where}" in done.stdout


@pytest.mark.parametrize(
    ("words", "spoil", "said"),
    [
        (["9.9", *OURS], None, "'9.9' is no version"),
        (["9.9.0"], None, "GIT is nobody's: give --git URL"),
        (["9.9.0", "--git", URL], None, "MAINTAINERS are nobody: give --maintainer NAME"),
        (["9.9.0", *OURS], "edit", "these changes first:\nM packages/README"),
        (["9.9.0", *OURS], "tag", "the tag v9.9.0 is there already"),
        (["9.9.0", *OURS], "no heading", "not one heading '## Unreleased'"),
        (["9.9.0", *OURS], "two headings", "not one heading '## Unreleased'"),
        (["9.9.0", *OURS, "--out", "/dev/null/x"], None, "/dev/null/x: Not a directory"),
    ],
)
def test_what_stands_against_it_is_said_and_nothing_is_changed(work, words, spoil, said):
    if spoil == "edit":
        (work / "packages/README.md").write_text("other")
    elif spoil == "tag":
        git(work, "tag", "v9.9.0")
    elif spoil:
        changes, heading = work / "CHANGELOG.md", "## Unreleased"
        new = "## Soon" if spoil == "no heading" else f"{heading}: more\n\n{heading}"
        changes.write_text(changes.read_text().replace(heading, new))
        git(work, "commit", "-qam", "soon")
    before = git(work, "rev-parse", "HEAD"), git(work, "status", "--short")
    done = release(work, *words)
    assert done.returncode == 1 and said in done.stderr, done.stderr
    assert (git(work, "rev-parse", "HEAD"), git(work, "status", "--short")) == before
