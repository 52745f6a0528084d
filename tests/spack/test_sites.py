"""What a site brings by $JOULEMARK_SITE, and what Spack takes from a machine without one."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import itertools
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.cluster import CHECKOUT
from tests.spack.sites import SITES, concretized, environments, must_be_as_told, spack_at

__all__ = ["environments"]

BENCHMARKS = """\
# SPDX-License-Identifier: Apache-2.0 OR MIT
spack:
  include: [../sites, ../common]
  specs: [joulemark-suite@main]
  view: false
"""
LUMI = SITES["lumi"]
EXAMPLES = CHECKOUT / "environments/sites/examples"
INSTALL = CHECKOUT / "packages/joulemark/guides/install.md"


def packages(site: str, environments: Path, login=LUMI.login) -> dict:
    """What Spack knows of packages in the environment x86_64, on this node."""
    said = spack_at(login, site, environments)("x86_64", "config", "get", "packages")
    return yaml.safe_load(said[said.index("packages:") :])["packages"]  # after git's progress


def test_a_site_gives_compiler_mpi_blas_and_the_compute_nodes_target(environments):
    (environments / "suite").mkdir()
    (environments / "suite/spack.yaml").write_text(BENCHMARKS)
    must_be_as_told(concretized(LUMI, "lumi", environments, "suite"), LUMI)


def test_srun_starts_the_ranks_of_an_mpi_that_spack_builds_by_the_guides_environment(environments):
    name = "aws-ubuntu2404"
    text = re.search(r"(?m)^    spack:\n(?:     .*\n)+", INSTALL.read_text())[0]
    site = str(environments / "sites/examples" / name)
    text = text.replace("$JOULEMARK_SITE", site).replace("$tree", str(environments.parent))
    (environments / "guide").mkdir()
    (environments / "guide/spack.yaml").write_text(text.replace("\n    ", "\n")[4:])
    specs = concretized(SITES[name], name, environments, "guide").values()
    [mpi] = [spec["parameters"] for spec in specs if spec["name"] == "openmpi"]
    assert mpi["schedulers"] == ["slurm"], mpi


def test_a_site_may_be_a_git_repository(environments, tmp_path):
    site = tmp_path / "site"
    (environments / "sites/examples/lumi").rename(site)
    git = ("git", "-C", site, "-c", "user.name=n", "-c", "user.email=e@mail")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "all")):
        subprocess.run([*git, *words], check=True, timeout=60)
    known = packages(f"file://{site}", environments)
    assert known["cray-mpich"]["externals"] and set(known["openmpi"]) == {"variants"}


def test_a_site_may_have_more_built(environments):
    site = environments / "sites/examples/lumi"
    (site / "definitions.yaml").write_text("definitions: [{cluster: [hpl]}]\n")
    told = "import spack.environment as e; print(*e.active_environment().user_specs)"
    said = spack_at(LUMI.login, "examples/lumi", environments)("x86_64", "python", "-c", told)
    assert "hpl" in said.split() and "joulemark-suite@main" in said.split(), said


def test_without_a_site_another_distributions_packages_are_spacks_to_find_or_build(environments):
    known = packages("", environments)
    assert not known.keys() & {"openblas", "slurm", "python"}
    assert set(known["openmpi"]) == {"variants"}


def test_without_a_site_ubuntu_brings_its_packages_as_debian_does(environments):
    detected = "packages: {slurm: {externals: [{spec: slurm@22-05-8-1, prefix: /usr}]}}\n"
    (environments / "sites/debian/detected.yaml").write_text(detected)
    login = LUMI.login._replace(distribution="ubuntu", release="24.04")
    slurm = packages("", environments, login)["slurm"]
    assert not slurm["buildable"] and slurm["externals"][0]["prefix"] == "/usr"


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.iterdir()))
def test_an_example_says_where_its_facts_are_from(name):
    """A public repository, and its commit."""
    lines = (EXAMPLES / name / "packages.yaml").read_text().splitlines()
    said = " ".join(itertools.takewhile(lambda line: line.startswith("#"), lines))
    assert re.search(r" [\w.-]+/[\w.-]+[ ,].*\bat #? ?[0-9a-f]{12}\b", said), said
