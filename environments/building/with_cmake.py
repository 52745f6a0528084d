# The build without Spack: each source's CMake preset into one prefix, with its own Lmod modules.
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import re
import shutil
from pathlib import Path

from spack_repo.joulemark.build_systems.benchmarks import benchmarks, module_of

from building.steps import CHECKOUT, JOBS, Steps, ask

BENCHMARKS = benchmarks(CHECKOUT)
#: in the order of their dependencies
PROJECTS = (
    *("packages/benchkit", "packages/fs-scan"),
    *(f"packages/{name}" for name in BENCHMARKS),
    "slurm-plugins",
)

#: each module, and the project whose version it has
MODULES = {
    **{module_of(name): name for name in BENCHMARKS},
    "fs-scan": "fs-scan",
    "joulemark-slurm": "slurm-plugins",
    "joulemark": "slurm-plugins",
    "joulemark-templates": "slurm-plugins",
}
TEMPLATES, APPS = "share/joulemark/templates", "share/joulemark/apps"
MODULE = """\
-- {name} {version}, built by CMake; written by environments/build.
whatis("Name: {name}")
whatis("Version: {version}")
prepend_path("PATH", "{prefix}/bin")
"""
#: for users' programs: `from joulemark.regions import region`; and the templates
COMMAND_MODULE = """\
prepend_path("PYTHONPATH", "{sources}/src")
depends_on("joulemark-templates")
"""
#: for `sbatch $JOULEMARK_TEMPLATES/stream.sbatch`, and `joulemark app`
TEMPLATES_MODULE = """\
setenv("JOULEMARK_TEMPLATES", "{templates}")
prepend_path("JOULEMARK_APPS", "{apps}")
"""


def build(steps: Steps, why: str) -> dict:
    """Build and install everything; return what goes into build.env."""
    prefix = steps.cache / "prefix"
    for project in PROJECTS:
        install_project(steps, CHECKOUT / project, prefix)
    install_templates = CHECKOUT / "job-templates/install"
    steps.run("install templates", install_templates, prefix / TEMPLATES)
    shutil.rmtree(prefix / APPS, ignore_errors=True)
    shutil.copytree(CHECKOUT / "packages/apps", prefix / APPS)
    return {
        "JOULEMARK_BUILT_BY": "cmake",
        "JOULEMARK_WHY": why,
        "JOULEMARK_SLURM_PREFIX": prefix,
        "JOULEMARK_MODULES": write_modules(steps, prefix),
        "JOULEMARK_BIN": install_command(steps, prefix),
    }


def install_project(steps: Steps, source: Path, prefix: Path) -> None:
    """Configure, build and install one CMake project, outside the checkout."""
    name, build_folder = source.name, build_folder_of(steps, source.name)
    steps.run(
        f"configure {name}",
        *("env", "-C", source, "cmake", "--preset", "release", "-B", build_folder),
        f"-DCMAKE_INSTALL_PREFIX={prefix}",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_INSTALL_RPATH_USE_LINK_PATH=ON",
        "-DBUILD_TESTING=OFF",
    )
    steps.run(f"build {name}", "cmake", "--build", build_folder, "--parallel", str(JOBS))
    steps.run(f"install {name}", "cmake", "--install", build_folder)


def build_folder_of(steps: Steps, name: str) -> Path:
    return steps.cache / "cmake" / name


def write_modules(steps: Steps, prefix: Path) -> Path:
    """The folder for `module use`, with the modules that Spack would make."""
    modules = steps.cache / "modules"
    shutil.rmtree(modules, ignore_errors=True)  # of another version, perhaps
    for name, project in MODULES.items():
        cached = (build_folder_of(steps, project) / "CMakeCache.txt").read_text()
        version = re.search(r"^CMAKE_PROJECT_VERSION:\w+=(.+)$", cached, re.MULTILINE)[1]
        file = modules / name / f"{version}.lua"
        file.parent.mkdir(parents=True, exist_ok=True)
        text = MODULE.format(name=name, version=version, prefix=prefix)
        if name == "joulemark":
            text += COMMAND_MODULE.format(sources=build_folder_of(steps, name))
        if name == "joulemark-templates":
            text += TEMPLATES_MODULE.format(templates=prefix / TEMPLATES, apps=prefix / APPS)
        file.write_text(text)
    return modules


def install_command(steps: Steps, prefix: Path) -> Path:
    """Install the Python command into a virtual environment of its own, that sees the system's
    modules, as the recipe does; the command alone is in the prefix."""
    venv = steps.cache / "cmake/venv"
    python = venv / "bin/python"
    if ask(python, "-m", "pip", "--version") is None:
        steps.run("make venv", "/usr/bin/python3", "-m", "venv", "--system-site-packages", venv)
    sources = build_folder_of(steps, "joulemark")
    sources.mkdir(parents=True, exist_ok=True)
    # what tests leave beside them may be another user's
    needed = [
        CHECKOUT / "packages/joulemark" / name for name in ("pyproject.toml", "README.md", "src")
    ]
    steps.run("copy joulemark", "cp", "-r", "-t", sources, *needed)
    install = ("-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation")
    steps.run("install joulemark", python, *install, "--force-reinstall", sources)
    steps.run("write completions", python, "-m", "joulemark.shell", prefix)
    command = prefix / "bin/joulemark"
    command.unlink(missing_ok=True)
    command.symlink_to(venv / "bin/joulemark")
    steps.run("try joulemark", command, "--help")
    return command.parent
