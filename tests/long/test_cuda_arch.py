"""A GPU's architecture and the toolkit fit, or Spack refuses: by CudaPackage's conditions."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from collections.abc import Callable

import pytest
from building.with_cmake import BENCHMARKS
from spack_repo.joulemark.build_systems.benchmarks import backends_in_recipe

from tests.cluster import CHECKOUT
from tests.stranger import stranger_in

TOOLKITS = ("12.6", "12.8", "12.9", "13.0")
RECIPES = [name for name in BENCHMARKS if "cuda" in backends_in_recipe(name)]
#: of each recipe: whether these toolkits are taken for an architecture
ASK = (
    "import spack.repo, spack.spec as s; "
    "needs = lambda name, arch: [made['cuda'].spec for when, made in "
    "spack.repo.PATH.get_pkg_class(name).dependencies.items() "
    "if 'cuda' in made and s.Spec('+cuda cuda_arch=' + arch).satisfies(when)]; "
    "_ = [print(n, *(all(s.Spec('cuda@' + t).satisfies(x) for x in needs(n, '{arch}')) "
    "for t in '{toolkits}'.split())) for n in '{names}'.split()]"
)


@pytest.fixture(scope="module")
def spack(tmp_path_factory) -> Callable[..., str]:
    """A site's, which has these toolkits, good for any compiler."""
    folder = tmp_path_factory.mktemp("site")
    command = stranger_in(folder)
    command("repo", "add", CHECKOUT / "spack-repo/spack_repo/joulemark")
    there = "+allow-unsupported-compilers, prefix: /opt/cuda/"
    externals = ", ".join(f"{{spec: cuda@{n}{there}{n}}}" for n in TOOLKITS)
    site = folder / "toolkits.yaml"
    site.write_text(f"packages: {{cuda: {{buildable: false, externals: [{externals}]}}}}\n")
    command("config", "add", "--file", site)
    return command


@pytest.mark.parametrize(
    ("arch", "taken"),
    [("100", "False True True True"), ("70", "True True True False")],  # Blackwell, Volta
)
def test_each_recipe_takes_the_toolkits_that_know_an_architecture(spack, arch, taken):
    names = [*RECIPES, "joulemark-suite"]
    words = {"arch": arch, "toolkits": " ".join(TOOLKITS), "names": " ".join(names)}
    said = spack("python", "-c", ASK.format(**words)).splitlines()
    assert said == [f"{name} {taken}" for name in names]


@pytest.mark.parametrize(
    ("arch", "good", "bad"), [("100", "12.8", "12.6"), ("70", "12.9", "13.0")]
)
def test_it_concretizes_by_one_that_knows_it_alone(spack, arch, good, bad):
    spec = f"hydro@main +cuda cuda_arch={arch} ^cuda@"
    assert f"cuda_arch:={arch}" in spack("spec", f"{spec}{good}")
    with pytest.raises(AssertionError, match=f"when cuda_arch={arch}"):
        spack("spec", f"{spec}{bad}")
