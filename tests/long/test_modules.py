"""The tree of modules that an environment makes, as Lmod's users see it: what was built with which
MPI and compiler. The packages are not built here, their modules are Spack's and Lmod is real."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from building.with_spack import MODULES

from tests.cluster import CHECKOUT
from tests.spack.lmod import Lmod
from tests.stranger import stranger_in

COMMON = CHECKOUT / "environments/common"
MPIS, LLVM = ("openmpi", "mpich"), "14.0.6"
SPECS = [
    "joulemark@main",
    "joulemark-templates@main",
    "benchkit@main",
    "triad@main",
    f"triad@main %c=llvm@{LLVM}",
    *(f"hydro@main ^[virtuals=mpi] {mpi}" for mpi in MPIS),
    "hydro@main +cuda cuda_arch=90 ^[virtuals=mpi] openmpi",
    "qcd@main ^[virtuals=mpi] openmpi",
    "hpl ^[virtuals=mpi] openmpi",
    "mod2am@main ~blas ^[virtuals=mpi] nvhpc",
]
CLANG = {"c": "/usr/bin/clang", "cxx": "/usr/bin/clang++"}
PACKAGES = {
    "mpich": {"buildable": False, "externals": [{"spec": "mpich@4.0.2", "prefix": "/opt/mpich"}]},
    "nvhpc": {"externals": [{"spec": "nvhpc@23.9 +mpi", "prefix": "/opt/nvhpc"}]},
    "cuda": {"buildable": False, "externals": [{"spec": "cuda@12.4.1", "prefix": "/opt/cuda"}]},
    "llvm": {
        "externals": [
            {
                "spec": f"llvm@{LLVM}+clang~flang",
                "prefix": "/usr",
                "extra_attributes": {"compilers": CLANG},
            }
        ]
    },
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a site wants our modules; its own set, beside, is none of ours."""
    return tmp_path_factory.mktemp("apps")


@pytest.fixture(scope="module")
def lmod(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Lmod:
    folder = tmp_path_factory.mktemp("stranger")
    spack = stranger_in(folder)
    spack("repo", "add", CHECKOUT / "spack-repo/spack_repo/joulemark")
    roots = {name: {"roots": {"lmod": f"{root}/{name}"}} for name in ("joulemark", "default")}
    (folder / "site").mkdir()
    (folder / "site/modules.yaml").write_text(json.dumps({"modules": roots}))
    environment = folder / "environment"
    environment.mkdir()
    settings = {
        "include": [str(folder / "site"), str(COMMON)],
        "view": False,
        "concretizer": {"unify": False},
        "packages": PACKAGES,
        "specs": SPECS,
    }
    (environment / "spack.yaml").write_text(json.dumps({"spack": settings}))
    spack("-e", environment, "concretize")
    spack("-e", environment, "install", "--fake")
    spack("-e", environment, "module", "lmod", "--name", "joulemark", "refresh", "-y")
    said = spack("-e", environment, "python", "-c", MODULES)
    return Lmod(Path(said.splitlines()[-1], "Core"), folder)


@pytest.fixture(scope="module")
def version(lmod: Lmod) -> str:
    """`main-TARGET`, of the machine that builds."""
    return re.search(r"^jm-triad/(main-\S+)$", lmod("module -t avail"), re.MULTILINE)[1]


def available(lmod: Lmod, *words: str) -> set[str]:
    said = lmod(*words, "module -t avail")
    return {word for word in said.split() if re.fullmatch(r"[\w-]+/[\w.-]+", word)}


def test_a_sites_root_has_our_set_and_its_own_is_left_alone(lmod, root):
    assert [path.name for path in root.iterdir()] == ["joulemark"]


def test_what_needs_an_mpi_appears_with_it(lmod, version):
    core = available(lmod)
    names = {name.partition("/")[0] for name in core}
    ours = {"joulemark", "joulemark-templates", "benchkit", "jm-triad"}
    # an MPI that is a compiler, too, shows what that has compiled; mod2am is another's
    assert names == {*MPIS, "llvm", "nvhpc", "mod2am", *ours}
    assert available(lmod, "module load mpich") - core == {f"hydro/{version}"}
    more = available(lmod, "module load openmpi") - core
    hpl = next(name for name in more if name.startswith("hpl/"))
    assert hpl.endswith(version.removeprefix("main"))
    expected = {f"hydro/{version}", f"hydro/{version}-cuda", f"jm-qcd/{version}", hpl}
    assert more == expected


def test_a_benchmark_out_of_reach_is_told_with_the_way_to_it(lmod, version):
    assert "module spider hydro" in lmod("module load hydro", status=1)
    said = lmod(f"module spider hydro/{version}")
    lines = {line.split("/")[0].strip() for line in said.splitlines() if "/" in line}
    assert lines >= set(MPIS), said


def test_another_mpi_brings_its_own_build(lmod, version):
    where = "command -v hydro"
    load = f"module load openmpi hydro/{version}"
    said = lmod(load, where, "module swap openmpi mpich", where)
    first, second = re.findall(r"^/.*/bin/hydro$", said, re.MULTILINE)
    assert first != second


def test_one_mpi_at_a_time(lmod):
    said = lmod("module load openmpi", "module load mpich", "module -t list")
    assert "mpich/" in said.splitlines()[-1] and not re.search("^openmpi/", said, re.MULTILINE)


def test_a_compilers_module_shows_what_it_built(lmod):
    where = "command -v triad"
    said = lmod("module load jm-triad", where, "module purge", "module load llvm jm-triad", where)
    system, clang = re.findall(r"^/.*/bin/triad$", said, re.MULTILINE)
    assert system != clang


def test_the_command_brings_the_templates(lmod):
    assert lmod("module load joulemark", "echo $JOULEMARK_TEMPLATES").startswith("/")
