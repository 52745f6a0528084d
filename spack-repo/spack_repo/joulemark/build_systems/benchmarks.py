# Which benchmarks there are and which backends each has: their folders say so, no list does.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
import re
from pathlib import Path

HERE = os.path.dirname(os.path.realpath(__file__))

#: the checkout: HERE is <checkout>/spack-repo/spack_repo/joulemark/build_systems
CHECKOUT = os.path.abspath(os.path.join(HERE, *[os.pardir] * 4))

#: beside these files, wherever a site keeps the recipes
RECIPES = Path(HERE).parent / "packages"

#: the folder src/<key> of a backend, and the name of its variant
BACKENDS = {
    "omp": "openmp",
    "mpi": "mpi",
    "blas": "blas",
    "fftw": "fftw",
    "cuda": "cuda",
    "hip": "rocm",
    "opencl": "opencl",
    "c66x": "c66x",
}

#: benchmarks whose names other software has, too
COMMON_NAMES = ("qcd", "thermal", "triad")


def module_of(benchmark: str) -> str:
    """The name of its module for Lmod; environments/common/modules.yaml has it for Spack."""
    return f"jm-{benchmark}" if benchmark in COMMON_NAMES else benchmark


def benchmarks(checkout: str = CHECKOUT) -> list[str]:
    """The folders of packages/ that call benchkit_benchmark(), by name."""
    found = sorted(Path(checkout, "packages").glob("*/CMakeLists.txt"))
    return [path.parent.name for path in found if "\nbenchkit_benchmark(" in path.read_text()]


def backends_of(benchmark: str, checkout: str = CHECKOUT) -> list[str]:
    """The variants of a benchmark's backends, by its folders; in the order of BACKENDS."""
    source = Path(checkout, "packages", benchmark, "src")
    return [variant for folder, variant in BACKENDS.items() if (source / folder).is_dir()]


def benchmarks_with_recipe() -> list[str]:
    """The names of all recipes that say backends(...)."""
    names = [path.parent.name.replace("_", "-") for path in sorted(RECIPES.glob("*/package.py"))]
    return [name for name in names if backends_in_recipe(name)]


def backends_in_recipe(benchmark: str) -> list[str] | None:
    """What its recipe says: backends("openmp", ...); None where it has no recipe."""
    text = text_of_recipe(benchmark)
    call = re.search(r"^    backends\((.*?)\)", text, re.MULTILINE | re.DOTALL)
    return re.findall(r'"(\w+)"', call[1]) if call else [] if text else None


def versions_in_recipe(package: str) -> list[str]:
    """Of a package of the project, whose packages of one version are for each other."""
    text = text_of_recipe(package)
    return re.findall(r'^    version\(\s*"([\w.-]+)"', text, re.MULTILINE)


def text_of_recipe(package: str) -> str:
    recipe = RECIPES / package.replace("-", "_") / "package.py"
    return recipe.read_text() if recipe.exists() else ""
