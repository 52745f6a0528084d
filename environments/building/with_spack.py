# The build by Spack: finds or fetches it, keeps its files in the state, installs the environment.
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import sys
from pathlib import Path

from spack_repo.joulemark.build_systems.digest import tree_digest

from building.steps import (
    CHECKOUT,
    JOBS,
    StepFailed,
    Steps,
    Unavailable,
    ask,
    modules_by_library,
    say,
)

#: the official repositories, at the commits that the recipes are tested with, and the solver: with
#: the machine's own packages they determine what an environment becomes, as a lock file would
OFFICIAL = "https://github.com/spack"
SPACK_COMMIT = "5817ab9613f211442a2747b304960c556797c40f"
PACKAGES_COMMIT = "1e8cf059e35d55c4fe1142fed41785bedf6c7246"
CLINGO = "clingo==5.8.3"
PYPI = ("--retries", "1", "--timeout", "20")
OLDEST = (1, 1)  # the first whose externals name their dependencies
SOURCES = ("packages", "slurm-plugins", "job-templates", "spack-repo", "environments")
ENVIRONMENTS = sorted(path.parent.name for path in CHECKOUT.glob("environments/*/spack.yaml"))
RECIPES = CHECKOUT / "spack-repo/spack_repo/joulemark/packages"
BUILD_DSP_TOOLCHAIN = RECIPES / "tic6x_elf_gcc/build-toolchain"
DETECT = CHECKOUT / "environments/detect"
DETECTED = "sites/debian/detected.yaml"
#: a folder or a git URL of what the machine brings; environments/sites/include.yaml reads it
SITE = os.environ.get("JOULEMARK_SITE", "")
PREPARE_CROSS = CHECKOUT / "environments/cross/prepare"
#: what environments/bundle has put beside the sources: Spack and its recipes, `wheels`, `mirror`
BUNDLE = CHECKOUT / "bundle"
FETCH_LIMIT_S = 300
REACH_LIMIT_S = 15
#: one line, as `spack python -c` wants it; `spack fetch` asks for sources of externals, too, and
#: fails where Spack does not know their version
FETCH = (
    "import spack.environment as e; [s.package.do_fetch() for s in "
    "e.active_environment().all_specs() if not (s.external{or_here})]"
)
#: the environment's folder of modules, which may be the site's
MODULES = (
    "import spack.environment as e, spack.modules as m; "
    "root = e.active_environment().concrete_roots()[0]; "
    "print(m.module_types['lmod'].from_spec(root, 'joulemark').layout.arch_dirname)"
)


def build(steps: Steps, environment: str, name: str) -> dict:
    """Install the environment, unless NAME.stamp says it is; return what goes into build.env."""
    if environment not in ENVIRONMENTS:
        raise Unavailable(f"there is no folder environments/{environment}")
    if not SITE and not is_debian():
        raise Unavailable("$JOULEMARK_SITE names no site: see environments/sites/README.md")
    spack = obtain(steps)
    folder = prepare_environment(steps, environment)
    stamp = steps.cache / f"{name}.stamp"
    digests = digests_of_all(spack, folder)
    before = read_stamp(stamp)
    if before == digests:
        say("nothing has changed since the last build")
    else:
        if before:
            changed = [part for part in digests if digests[part] != before.get(part)]
            say(f"changed since the last build: {', '.join(changed)}")
        stamp.unlink(missing_ok=True)
        install(steps, spack, folder)
        stamp.write_text(json.dumps(digests))
    return {**locate(spack, folder), **how_to_run(steps, environment)}


def read_stamp(stamp: Path) -> dict[str, str]:
    """What was built, by part; nothing where no build has ended, or one of another version did."""
    try:
        said = json.loads(stamp.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def is_debian() -> bool:
    """Whether environments/sites/include.yaml takes this machine's packages without a site."""
    release = Path("/etc/os-release").read_text()
    return bool(re.search(r'^ID="?(debian|ubuntu)\b', release, re.MULTILINE))


def obtain(steps: Steps) -> Path:
    """A command that runs Spack with all of its files inside the state folder."""
    own = find_installed()
    if own is None and not BUNDLE.exists() and not shutil.which("git"):
        raise Unavailable("there is no spack, and no git to fetch it with")
    builtin = find_builtin(steps, own)
    spack = own or fetch(steps, "spack", SPACK_COMMIT) / "bin/spack"
    python = python_with_clingo(steps)
    config = steps.cache / "spack-config"
    write_config(steps, config, builtin)
    command = steps.cache / "bin/spack"
    command.parent.mkdir(exist_ok=True)
    command.write_text(
        "#!/bin/sh\n"
        "# Spack as environments/build runs it: its configuration and caches lie in this folder.\n"
        f"export SPACK_PYTHON={shlex.quote(str(python))}\n"
        f"export SPACK_USER_CONFIG_PATH={shlex.quote(str(config))}\n"
        f"export SPACK_USER_CACHE_PATH={shlex.quote(str(steps.cache / 'spack-cache'))}\n"
        "unset SPACK_ROOT SPACK_ENV\n"
        f'exec {shlex.quote(str(spack))} "$@"\n'
    )
    command.chmod(0o755)
    return command


def find_installed() -> Path | None:
    """The user's own Spack, if there is one and it is new enough."""
    root = os.environ.get("SPACK_ROOT")
    found = Path(root, "bin/spack") if root else shutil.which("spack")
    answer = ask(found, "--version") if found else None
    if not answer:
        if found:
            say(f"not using {found}: it does not run")
        return None
    version = re.match(r"(\d+)\.(\d+)", answer)
    if version and tuple(map(int, version.groups())) >= OLDEST:
        say(f"using {found}, version {answer}")
        return Path(found)
    say(f"not using {found}: version {answer} is older than {'.'.join(map(str, OLDEST))}")
    return None


def find_builtin(steps: Steps, own: Path | None) -> Path:
    """Spack's package recipes: the pinned ones, or, out of their reach, the user's own Spack's."""
    try:
        return fetch(steps, "spack-packages", PACKAGES_COMMIT) / "repos/spack_repo/builtin"
    except Unavailable as why:
        found = ask(own, "location", "--repo", "builtin") if own else None
        if not found:
            raise
        say(f"using the recipes in {found}: {why}")
        return Path(found)


def fetch(steps: Steps, name: str, commit: str) -> Path:
    """One official repository at one commit, without its history."""
    if (BUNDLE / name).exists():
        return BUNDLE / name  # beside sources that pin the same commit
    folder = steps.cache / name
    if ask("git", "-C", folder, "rev-parse", "HEAD") == commit:
        return folder
    partial = steps.cache / f"{name}.partial"
    for old in (partial, folder):
        shutil.rmtree(old, ignore_errors=True)
    url = f"{OFFICIAL}/{name}.git"
    # a network that swallows all is found at once, not after FETCH_LIMIT_S
    steps.attempt(
        f"reach {name}",
        *("env", "GIT_TERMINAL_PROMPT=0", "git", "ls-remote", "-q", url, "HEAD"),
        timeout_s=REACH_LIMIT_S,
        why=f"{url} cannot be reached",
    )
    script = 'git init -q "$1" && cd "$1" && git fetch --depth 1 "$2" "$3" && git checkout -q "$3"'
    steps.attempt(
        f"fetch {name}",
        *("env", "GIT_TERMINAL_PROMPT=0", "sh", "-c", script, "sh", partial, url, commit),
        timeout_s=FETCH_LIMIT_S,
        why=f"{url} cannot be fetched",
    )
    partial.rename(folder)
    return folder


def python_with_clingo(steps: Steps) -> Path:
    """A Python that has clingo, Spack's solver; else a virtual environment with PyPI's."""
    folder = steps.cache / "spack-python"
    said = "import clingo; print(clingo.__version__)"
    site = os.environ.get("SPACK_PYTHON")
    if site and ask(site, "-c", said):
        return Path(site)
    if ask(folder / "bin/python", "-c", said) == CLINGO.partition("==")[2]:
        return folder / "bin/python"
    script = (
        'rm -rf "$1" && "$2" -m venv "$1" && pip="$1/bin/pip" && shift 2 && "$pip" install "$@"'
    )
    wheels = BUNDLE / "wheels"
    source = ("--no-index", "--find-links", wheels) if wheels.exists() else PYPI
    steps.attempt(
        "install clingo",
        *("sh", "-c", script, "sh", folder, sys.executable, *source, CLINGO),
        timeout_s=FETCH_LIMIT_S,
        why="clingo, the solver that Spack needs, cannot be installed from PyPI",
    )
    return folder / "bin/python"


def write_config(steps: Steps, config: Path, builtin: Path) -> None:
    """Spack's user scope: what it would keep in the home directory lies in the state folder."""
    config.mkdir(exist_ok=True)
    settings = {
        "install_tree": {"root": f"{steps.cache}/spack-store"},
        "build_stage": [f"{steps.cache}/spack-stage"],
        "source_cache": f"{steps.cache}/spack-sources",
    }
    (config / "config.yaml").write_text(json.dumps({"config": settings}))
    (config / "repos.yaml").write_text(json.dumps({"repos": {"builtin": str(builtin)}}))
    if (BUNDLE / "mirror").exists():
        mirror = {"url": f"file://{BUNDLE}/mirror", "source": True, "binary": False}
        (config / "mirrors.yaml").write_text(json.dumps({"mirrors": {"bundle": mirror}}))


def prepare_environment(steps: Steps, name: str) -> Path:
    """A copy of environments/ in the state folder; without a site, what this machine has, too."""
    copy = steps.cache / "environments"
    for part in ("common", "sites"):  # Spack reads all that lies there, what is no more, too
        shutil.rmtree(copy / part, ignore_errors=True)
    generated = shutil.ignore_patterns(".spack-env", "spack.lock", "detected.yaml")
    for part in ("common", "cross", "sites", name):
        source = CHECKOUT / "environments" / part
        shutil.copytree(source, copy / part, ignore=generated, dirs_exist_ok=True)
    link = steps.cache / "spack-repo"
    link.unlink(missing_ok=True)
    link.symlink_to(CHECKOUT / "spack-repo")
    if SITE:
        return copy / name
    detected = copy / DETECTED
    steps.run("detect externals", DETECT, detected)
    with detected.open("a") as file:
        file.write(variants_here() + dsp_toolchain_here())
    if is_crossed(name):
        steps.run(f"prepare {name}", PREPARE_CROSS, name, "--into", copy / "cross")
    return copy / name


def is_crossed(environment: str) -> bool:
    """Whether this machine builds the environment for another one's processor."""
    known = (CHECKOUT / f"environments/cross/{environment}.yaml").exists()
    return known and platform.machine() == "x86_64" and not SITE


def variants_here() -> str:
    """An entry of packages.yaml: the instruments whose libraries are here, as CMake's AUTO."""
    there = modules_by_library()
    variants = "".join(f"{'+' if has else '~'}{module}" for module, has in there.items())
    return f"  joulemark-slurm:\n    require: '{variants}'\n"


def dsp_toolchain_here() -> str:
    """An entry of packages.yaml: the DSP's compiler on the PATH, or in the user's cache."""
    found = shutil.which("tic6x-elf-gcc")
    prefix = Path(found).parents[1] if found else ask(BUILD_DSP_TOOLCHAIN, "--where")
    if not prefix:
        return ""
    version = ask(f"{prefix}/bin/tic6x-elf-gcc", "-dumpfullversion")
    external = f"- spec: tic6x-elf-gcc@{version}\n      prefix: {prefix}"
    return f"  tic6x-elf-gcc:\n    buildable: false\n    externals:\n    {external}\n"


def digests_of_all(spack: Path, folder: Path) -> dict[str, str]:
    """Of the sources, recipes and environments, what the site brings, and Spack."""
    site = site_digest(folder.parent)
    for prepared in folder.parent.glob(f"cross/{folder.name}-here.yaml"):
        site += prepared.read_bytes()
    parts = {
        **{f"{name}/": tree_digest(CHECKOUT / name) for name in SOURCES},
        "the site" if SITE else "what this machine has": site,
        "Spack": spack.read_bytes() + str(ask(spack, "--version")).encode(),
    }
    return {name: hashlib.sha256(part).hexdigest() for name, part in parts.items()}


def site_digest(copy: Path) -> bytes:
    if not SITE:
        return (copy / DETECTED).read_bytes()
    if "://" in SITE:
        return f"{SITE} {ask('git', 'ls-remote', SITE, 'refs/heads/main')}".encode()
    return SITE.encode() + tree_digest(copy / "sites" / SITE)


def install(steps: Steps, spack: Path, folder: Path) -> None:
    here = (spack, "-e", folder)
    steps.run("concretize", *here, "concretize", "-f")
    steps.attempt(
        "fetch sources",
        *(*here, "python", "-c", FETCH.format(or_here=" or s.installed")),
        timeout_s=FETCH_LIMIT_S,
        why="Spack cannot fetch its compiler wrapper",
    )
    try:
        steps.run("install", *here, "install", "-j", str(JOBS))
    except StepFailed as failure:
        failure.advice += "; --no-spack builds without Spack"
        raise
    # what an earlier version left would be loaded by its name; a site's own root keeps it
    shutil.rmtree(folder / ".spack-env/lmod", ignore_errors=True)
    steps.run("make modules", *here, "module", "lmod", "--name", "joulemark", "refresh", "-y")


def locate(spack: Path, folder: Path) -> dict:
    """Where the environment's packages and modules are."""
    found = ask(spack, "-e", folder, "find", "--format", "{name} {prefix}") or ""
    prefix = dict(line.split(maxsplit=1) for line in found.splitlines())
    where = {
        "JOULEMARK_BUILT_BY": "spack",
        "JOULEMARK_WHY": f"Spack {ask(spack, '--version')}",
        "JOULEMARK_VIEW": folder / ".spack-env/view",
    }
    if modules := ask(spack, "-e", folder, "python", "-c", MODULES):
        where["JOULEMARK_MODULES"] = f"{modules.splitlines()[-1]}/Core"
    if "joulemark-slurm" in prefix:
        where["JOULEMARK_SLURM_PREFIX"] = prefix["joulemark-slurm"]
    if "joulemark" in prefix:
        where["JOULEMARK_BIN"] = f"{prefix['joulemark']}/bin"
    return where


def how_to_run(steps: Steps, environment: str) -> dict:
    """What runs the programs here, where they are for another machine: prepare's last word."""
    if not is_crossed(environment):
        return {}
    log = steps.logs / f"prepare-{environment}.log"
    return {"JOULEMARK_RUNNER": log.read_text().splitlines()[-1]}
