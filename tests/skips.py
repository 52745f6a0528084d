"""Which tests may be skipped on this machine: reads tests/skips.txt, where its form is told."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import functools
import os
import re
import resource
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import CHECKOUT, ORDINARY_USER, Build, ClusterError, cache_folder
from tests.cluster.config import has_pmix
from tests.targets import cuda
from tests.versions.slurm import EARLIER, NotToBeHad, fetch

LIST = CHECKOUT / "tests" / "skips.txt"
LINE = re.compile(r"(?P<condition>[\w-]+): (?P<reason>.+) -- (?P<why>.+)")
TOOLCHAIN = "spack-repo/spack_repo/joulemark/packages/tic6x_elf_gcc/build-toolchain"
ANSWER_S = 60


@dataclass(frozen=True)
class Rule:
    condition: str
    reason: re.Pattern[str]

    def allows(self, reason: str, holds: Callable[[str], bool]) -> bool:
        return bool(self.reason.fullmatch(reason)) and holds(self.condition)


def rules(path: Path = LIST) -> list[Rule]:
    """ValueError with file and line for a line that is no rule."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        rule = LINE.fullmatch(line)
        if rule is None:
            raise ValueError(f"{path}:{number}: '{line}': give CONDITION: REASON -- WHY")
        if rule["condition"] not in CONDITIONS:
            known = ", ".join(CONDITIONS)
            raise ValueError(
                f"{path}:{number}: no condition '{rule['condition']}'; one of {known}"
            )
        try:
            found.append(Rule(rule["condition"], re.compile(rule["reason"], re.DOTALL)))
        except re.error as wrong:
            raise ValueError(f"{path}:{number}: '{rule['reason']}': {wrong}") from None
    return found


def reason_of(skipped: ElementTree.Element) -> str:
    """What pytest wrote of a skip; of a file that was skipped whole it stands in the text."""
    whole = re.search(r"Skipped: (.*?)['\"]\)\s*$", skipped.text or "", re.DOTALL)
    if skipped.get("message") == "collection skipped" and whole:
        return whole[1]
    return skipped.get("message") or ""


def forbidden(
    reasons: Iterable[str],
    allowed: Sequence[Rule] | None = None,
    holds: Callable[[str], bool] | None = None,
) -> list[str]:
    """The reasons of skips that must not be on this machine."""
    allowed, holds = rules() if allowed is None else allowed, holds or is_so_here
    return [one for one in reasons if not any(rule.allows(one, holds) for rule in allowed)]


# -- what this machine is ------------------------------------------------------------------------


def succeeds(*words: str | Path) -> bool:
    try:
        return not subprocess.run(words, capture_output=True, timeout=ANSWER_S).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False


def has_spack() -> bool:
    try:
        return Build.load(cache_folder()).built_by == "spack"
    except ClusterError:
        return False


def has_spacks_servers() -> bool:
    """With them there is a way to get Spack, and that it failed is a failure."""
    servers = (f"https://github.com/spack/{name}.git" for name in ("spack", "spack-packages"))
    ask = ("env", "GIT_TERMINAL_PROMPT=0", "git", "ls-remote", "-q")
    return all(succeeds(*ask, one, "HEAD") for one in servers) and has_network()


def has_network() -> bool:
    """As pip sees it: PyPI or a mirror of it."""
    pip = (cache_folder() / "venv" / "bin" / "python", "-m", "pip", "download", "--quiet")
    alone = ("--no-deps", "--no-cache-dir", "--retries", "0", "--timeout", "10")
    with tempfile.TemporaryDirectory(prefix="network-") as folder:
        return succeeds(*pip, *alone, "--dest", folder, "wheel")


def has_lists(architecture: str) -> bool:
    """Whether apt can have the lists of an architecture's packages: a mirror may lag behind its
    Release, or be of fewer architectures. No other package than libc6 is asked for."""
    with tempfile.TemporaryDirectory(prefix="lists-") as folder:
        Path(folder, "state/lists/partial").mkdir(parents=True)
        given = {
            "APT::Architecture": architecture,
            "APT::Architectures::": architecture,
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
            "Dir::State": f"{folder}/state",
            "Dir::State::status": "/dev/null",  # what is installed is of no list
            "Dir::Cache": f"{folder}/cache",
        }
        options = [f"-o{key}={value}" for key, value in given.items()]
        succeeds("apt-get", "update", *options)  # of another source's list it may fail
        return succeeds("apt-cache", "show", "libc6", *options)


def has_source(suite: str) -> bool:
    """Whether apt can have that suite's Slurm."""
    try:
        return fetch(suite).exists()
    except NotToBeHad:
        return False


def can_mount(*words: str) -> bool:
    """In a mount namespace of its own, which goes when it ends."""
    return os.geteuid() == 0 and succeeds("unshare", "--mount", *words)


AS_USER = ("setpriv", f"--reuid={ORDINARY_USER}", "--clear-groups", "--regid=nogroup")
TMPFS = ("mount", "-t", "tmpfs", "none", tempfile.gettempdir())
CAPABILITY = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
CONDITIONS: dict[str, Callable[[], bool]] = {
    "gpu": lambda: cuda.gpu() is not None,
    "no-gpu": lambda: cuda.gpu() is None,
    "nvcc": lambda: cuda.find() is not None,
    "bmc": lambda: Path("/dev/ipmi0").exists(),
    "no-spack": lambda: not has_spack(),
    "no-spack-server": lambda: not has_spack() and not has_spacks_servers(),
    "no-network": lambda: not has_network(),
    "no-forky": lambda: not has_source("forky"),
    "no-arm64-lists": lambda: not has_lists("arm64"),
    "no-armhf-lists": lambda: not has_lists("armhf"),
    "user": lambda: os.geteuid() != 0,
    "private": lambda: os.geteuid() == 0 and not succeeds(*AS_USER, "test", "-r", LIST),
    "no-mounts": lambda: not can_mount(*TMPFS),
    "no-history": lambda: not succeeds("git", "-C", CHECKOUT, "cat-file", "-e", EARLIER),
    "no-loop": lambda: not (can_mount(*TMPFS) and succeeds("losetup", "--find")),
    "no-capability": lambda: not succeeds("setpriv", *CAPABILITY, "true"),
    "no-cgroup1": lambda: not os.access("/sys/fs/cgroup/cpuacct/cpuacct.usage", os.R_OK),
    "few-files": lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 3 * 1024,
    "no-io500": lambda: shutil.which("io500") is None,
    "no-toolchain": lambda: (
        not (shutil.which("tic6x-elf-gcc") or succeeds(CHECKOUT / TOOLCHAIN, "--where"))
    ),
    "open-mpi-5": lambda: succeeds("sh", "-c", "mpicc --showme:version | grep 'Open MPI [5-9]'"),
    "no-pmix": lambda: not has_pmix(),
    "not-x86-64": lambda: os.uname().machine != "x86_64",
}


@functools.cache
def is_so_here(condition: str) -> bool:
    return CONDITIONS[condition]()
