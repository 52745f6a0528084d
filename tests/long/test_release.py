"""A release by `spack-repo/release` in a bare repository, as a site takes it by Spack: by git's
tag and as a tarball, from a mirror, from a signed cache of binaries, and in a pipeline of CI."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from building.with_cmake import BENCHMARKS

from tests.checkout import PROJECT, announce, copy_to, repository_of
from tests.stranger import need_spack, stranger_in

BY_TAG, AS_TARBALL = "9.8.0", "9.9.0"
#: what a release is of, beside the benchmarks
COMMAND = ("joulemark", "joulemark-slurm", "joulemark-templates", "py-joulemark-regions")
OTHERS = ("benchkit", "c66x-sim", "fs-scan", *COMMAND)
SITE = """\
# SPDX-License-Identifier: Apache-2.0 OR MIT
spack:
  specs: [dhrystone@{version}]
  view: false
  mirrors:
    buildcache-destination: {cache}
  ci:
    pipeline-gen:
    - build-job:
        tags: [hpc]
        script: [spack ci rebuild]
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A short path: gpg's sockets lie in it."""
    need_spack()
    with tempfile.TemporaryDirectory(prefix="jm-", dir="/var/tmp") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def url(folder) -> str:
    """The project's bare repository with two releases; the second one is fetched as a tarball."""
    work, bare = copy_to(folder / "work", *PROJECT), folder / "joulemark.git"
    announce(work)
    repository_of(work)
    places = ("--git", f"file://{bare}", "--out", folder / "tarballs", "--maintainer", "nobody")
    release = (work / "spack-repo/release", *places)
    subprocess.run([*release, BY_TAG], check=True, timeout=60)
    announce(work)
    subprocess.run(["git", "-C", work, "commit", "-qam", "more"], check=True, timeout=60)
    tarballs = ("--tarballs", f"file://{folder}/tarballs")
    subprocess.run([*release, *tarballs, AS_TARBALL], check=True, timeout=60)
    subprocess.run(["git", "clone", "-q", "--bare", work, bare], check=True, timeout=60)
    return f"file://{bare}"


@pytest.fixture(scope="module")
def site(folder, url) -> Callable[..., str]:
    """A site's Spack that has the recipes by the project's address."""
    spack = stranger_in(folder / "site", SPACK_GNUPGHOME=f"{folder}/gpg")
    spack("repo", "add", url)
    return spack


@pytest.fixture
def other_site(folder, site) -> Iterator[Callable[..., str]]:
    """Another root, with the same recipes and neither sources nor binaries; binaries move into it
    without patchelf, as its path is the shorter one."""
    spack = stranger_in(folder / "o", SPACK_GNUPGHOME=f"{folder}/g2")
    spack("repo", "add", site("location", "--repo", "joulemark").strip())
    yield spack
    shutil.rmtree(folder / "o")


def version_that_runs(spack: Callable[..., str], spec: str, tmp_path: Path) -> str:
    """The installed benchmark's, by its results."""
    program = Path(spack("location", "-i", spec).strip(), "bin/dhrystone")
    cooked = tmp_path / "cooked.jsonl"
    subprocess.run([program, "--quick", "--cooked", cooked], check=True, timeout=60)
    lines = [json.loads(line) for line in cooked.read_text().splitlines()]
    assert lines and all(line["verified"] for line in lines)
    return lines[0]["manifest"]["version"]


def test_its_recipes_pass_the_audit(site):
    names = site("list", "--repo", "joulemark").split()
    site("audit", "packages", *names)
    assert "nobody" in site("maintainers", "dhrystone").split()
    assert {BY_TAG, AS_TARBALL} <= set(site("versions", "--safe", "dhrystone").split())


def test_it_is_installed_by_its_tag(site, tmp_path):
    site("install", f"dhrystone@{BY_TAG}")
    assert version_that_runs(site, f"dhrystone@{BY_TAG}", tmp_path) == BY_TAG
    site("stage", "--path", tmp_path / "stage", f"dhrystone@{BY_TAG}")
    folders = {path.name for path in tmp_path.glob("stage/*/packages/*") if path.is_dir()}
    assert folders == {"dhrystone"}  # the rest is not checked out


def test_it_is_installed_from_its_tarball_but_not_from_a_spoiled_one(site, folder, tmp_path):
    tarball = folder / f"tarballs/joulemark-{AS_TARBALL}.tar.gz"
    shutil.copy(tarball, tmp_path)
    with tarball.open("ab") as file:
        file.write(b"spoiled")
    with pytest.raises(AssertionError, match="sha256 checksum failed"):
        site("install", f"dhrystone@{AS_TARBALL}")
    shutil.copy(tmp_path / tarball.name, tarball)
    site("install", f"dhrystone@{AS_TARBALL}")
    assert version_that_runs(site, f"dhrystone@{AS_TARBALL}", tmp_path) == AS_TARBALL
    assert 'version("9.9.0", sha256=' in site("checksum", "--batch", "benchkit", AS_TARBALL)


@pytest.mark.parametrize("version", [BY_TAG, AS_TARBALL])
def test_all_of_it_can_be_fetched(site, version):
    site("fetch", *(f"{name}@{version}" for name in (*BENCHMARKS, *OTHERS)))


def test_the_suite_is_the_newest_release_s_all_of_one_version(site, tmp_path):
    site("install", "joulemark-suite")
    for name in (*BENCHMARKS, "benchkit"):
        site("find", f"{name}@{AS_TARBALL}")
    assert version_that_runs(site, f"dhrystone@{AS_TARBALL}", tmp_path) == AS_TARBALL


def test_python_programs_get_regions_and_nothing_else(site):
    site("install", f"py-joulemark-regions@{BY_TAG}")
    load = site("load", "--sh", f"py-joulemark-regions@{BY_TAG}")
    program = "from joulemark.regions import region\nwith region('solve'): print('solved')"
    script = f'{load}\ncd / && python3 -c "{program}" && command -v joulemark'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("solved\n", 127), done.stderr


def test_a_mirror_serves_a_root_that_reaches_nothing_else(site, other_site, url, folder, tmp_path):
    spec = f"dhrystone@{BY_TAG}"
    site("mirror", "create", "--directory", folder / "mirror", "--dependencies", spec)
    bare = Path(url.removeprefix("file://"))
    hidden = bare.rename(bare.with_suffix(".hidden"))
    try:
        with pytest.raises(AssertionError, match=r"joulemark\.git"):
            other_site("install", spec)
        other_site("mirror", "add", "--type", "source", "site", f"file://{folder}/mirror")
        other_site("install", spec)
    finally:
        hidden.rename(bare)
    assert version_that_runs(other_site, spec, tmp_path) == BY_TAG


def test_a_signed_cache_serves_a_root_that_trusts_its_key(site, other_site, folder, tmp_path):
    spec, cache = f"dhrystone@{BY_TAG}", f"file://{folder}/cache"
    for key in ("gpg", "g2"):
        (folder / key).mkdir(mode=0o700)
    site("gpg", "create", "--expires", "1d", "site", "site@localhost")
    site("gpg", "export", folder / "site.pub")
    site("mirror", "add", "--signed", "cache", cache)
    site("install", spec)
    site("buildcache", "push", "--update-index", "cache", spec)
    other_site("mirror", "add", "--signed", "cache", cache)
    with pytest.raises(AssertionError):
        other_site("install", "--cache-only", spec)
    other_site("gpg", "trust", "--yes-to-all", folder / "site.pub")
    other_site("install", "--cache-only", spec)
    assert version_that_runs(other_site, spec, tmp_path) == BY_TAG


def test_a_pipeline_of_ci_builds_what_is_needed(site, folder):
    place = folder / "site/ci"  # below the folder in which Spack runs, as its artifacts must be
    place.mkdir()
    text = SITE.format(version=AS_TARBALL, cache=f"file://{folder}/empty")
    (place / "spack.yaml").write_text(text)
    wanted = ("--output-file", place / "ci.yml", "--artifacts-root", place / "artifacts")
    site("-e", place, "ci", "generate", *wanted)
    jobs = yaml.safe_load((place / "ci.yml").read_text())
    names = [name.split("@")[0] for name in jobs]
    assert {"dhrystone", "benchkit"} <= set(names) and "cmake" not in names, names
