"""Another Slurm from Debian's source of it, built into the cache, and our plugins for it.

CACHE/slurm/24.11.5/prefix      Slurm: bin, sbin, lib/slurm, include
CACHE/slurm/24.11.5/joulemark   our plugins, daemon and epilogs, built against it
CACHE/slurm/24.11.5/earlier     the same of an earlier commit, for upgrades
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.cluster import CHECKOUT, Build, cache_folder, exclusive, run_child

PACKAGE = "slurm-wlm"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
MIRROR = "http://deb.debian.org/debian"
JOBS = str(len(os.sched_getaffinity(0)))
STEP_LIMIT_S = 3600.0
#: of November 2026: its ledger is two versions older, and its protocol has none yet
EARLIER = "28cbdbb2edc3d80bcf0382c821e1c53806172575"

# What an energy test needs: munge, MariaDB, several slurmd on a machine. All else costs time.
OPTIONS = [
    *("--quiet", "--disable-static", "--disable-dependency-tracking", "--disable-debug"),
    "--enable-multiple-slurmd",
    *(f"--disable-{what}" for what in ("x11", "sview", "slurmrestd", "pam")),
    *(f"--without-{what}" for what in ("hdf5", "pmix", "freeipmi", "ucx", "rdkafka", "libcurl")),
    *(f"--without-{what}" for what in ("nvml", "rsmi", "oneapi", "jwt", "lua", "readline")),
    *(f"--without-{what}" for what in ("bpf", "yaml", "http-parser", "ofed")),
    "--with-json",  # for sacct's
    *("CC=ccache gcc", "CFLAGS=-O1 -pipe"),  # each new checkout compiles the same files
]


class NotToBeHad(Exception):
    """The source cannot be had here: no network, or the mirror lacks it."""


@dataclass(frozen=True)
class Slurm:
    """One release in the cache."""

    version: str  # "24.11.5"

    @property
    def folder(self) -> Path:
        return cache_folder() / "slurm" / self.version

    @property
    def prefix(self) -> Path:
        return self.folder / "prefix"

    @property
    def plugins(self) -> Path:
        """The prefix of what we built against it."""
        return self.folder / "joulemark"

    @property
    def earlier(self) -> Path:
        """The prefix of what was ours at the commit EARLIER."""
        return self.folder / "earlier"

    @property
    def configurable(self) -> bool:
        return (self.folder / "source" / "configure").exists()

    @property
    def built(self) -> bool:
        return _is_of_today(self.folder / "built")

    def build_for(self, ours: Build) -> Build:
        """The same Python command and modules, with this Slurm and the plugins for it."""
        return replace(ours, slurm_prefix=self.plugins, slurm_root=self.prefix)


def all_built() -> list[Slurm]:
    """Every release in the cache that is whole, oldest first."""
    names = [path.parent.name for path in (cache_folder() / "slurm").glob("*/built")]
    return [slurm for slurm in map(Slurm, sorted(names, key=numbers)) if slurm.built]


def upgradable(old: Slurm, new: Slurm) -> bool:
    """Slurm from 24.11 on takes up what the three releases before it left; one comes in May and
    one in November."""
    year, month = numbers(new.version)[:2]
    old_year, old_month = numbers(old.version)[:2]
    return 0 < 2 * (year - old_year) + (month > 6) - (old_month > 6) <= 3


def numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def other_suite() -> str:
    """Debian's stable release; where that is this machine's own, the one before."""
    words = Path("/etc/os-release").read_text().splitlines()
    return "bookworm" if "VERSION_CODENAME=trixie" in words else "trixie"


# -- the source -----------------------------------------------------------------------------------


def of_suite(suite: str) -> Slurm:
    """The suite's Slurm as the cache has its source, else as the mirror has it today."""
    known = cache_folder() / "slurm" / f"{suite}.version"
    if known.exists() and (kept := Slurm(known.read_text())).configurable:
        return kept
    slurm = of_tar(fetch(suite))
    known.write_text(slurm.version)
    return slurm


def fetch(suite: str) -> Path:
    """Downloads the suite's Slurm by apt, which checks signature and digests.

    The machine's own apt sources and lists are neither used nor changed. Only the upstream tar is
    taken: Debian's patches move files to Debian's places.
    """
    apt = cache_folder() / "slurm" / "apt" / suite
    for folder in ("lists/partial", "archives/partial"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    (apt / "sources.list").write_text(f"deb-src [signed-by={KEYRING}] {MIRROR} {suite} main\n")
    options = [
        f"Dir::Etc::SourceList={apt}/sources.list",
        "Dir::Etc::SourceParts=-",
        f"Dir::State::Lists={apt}/lists",
        f"Dir::Cache={apt}",
        f"APT::Sandbox::User={'root' if os.geteuid() == 0 else ''}",
        "Acquire::Retries=2",
        "Acquire::http::Timeout=30",
        "Acquire::Check-Valid-Until=false",  # a mirror may lag, and an older release does as well
    ]
    words = ["apt-get", "-q", *(word for option in options for word in ("-o", option))]
    _apt([*words, "-o", "APT::Update::Error-Mode=any", "update"], apt)
    _apt([*words, "source", "--download-only", "--tar-only", PACKAGE], apt)
    tars = sorted(apt.glob(f"{PACKAGE}_*.orig.tar.*"), key=lambda path: numbers(path.name))
    if not tars:
        raise NotToBeHad(f"apt-get left no {PACKAGE}_VERSION.orig.tar in {apt}")
    return tars[-1]


def of_tar(tar: Path) -> Slurm:
    """That of SchedMD's tar, slurm-26.05.3.tar.bz2, or of Debian's."""
    named = re.fullmatch(rf"(?:slurm-|{PACKAGE}_)(\d[\d.]+\d)(\.orig)?\.tar\.\w+", tar.name)
    if not named or not tar.exists():
        raise NotToBeHad(f"{tar}: give a tar of Slurm's source, slurm-VERSION.tar.bz2")
    slurm = Slurm(named[1])
    if not slurm.configurable:
        _unpack(tar, slurm.folder / "source")
    return slurm


def _apt(words: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600)
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise NotToBeHad(str(error)) from None
    if done.returncode:
        faults = [line for line in done.stderr.splitlines() if line.startswith("E:")]
        raise NotToBeHad("; ".join(faults) or done.stderr.strip())


def _unpack(tar: Path, target: Path) -> None:
    """The tar's one top folder becomes `target`, whole or not at all."""
    fresh = target.with_name("unpacking")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.4
    with tarfile.open(tar) as archive:
        archive.extractall(fresh, **safely)
    (top,) = fresh.iterdir()
    top.rename(target)
    fresh.rmdir()


# -- the builds -----------------------------------------------------------------------------------


def build(slurm: Slurm) -> None:
    """Configures, makes and installs Slurm; takes up where an interrupted run stopped."""
    if slurm.built:
        return
    with exclusive(slurm.folder.with_suffix(".lock"), f"Slurm {slurm.version} is being built"):
        source, configured = slurm.folder / "source", slurm.folder / "configured"
        if not _is_of_today(configured):
            prefix = [f"--prefix={slurm.prefix}", f"--sysconfdir={slurm.prefix}/etc"]
            step(slurm, source, ["./configure", *prefix, *OPTIONS])
            step(slurm, source, ["make", "-s", "-C", "src", "clean"])  # nothing tracks config.h
            configured.write_text(" ".join(OPTIONS))
        for target in (["-C", "src"], ["-C", "src", "install"], ["install-pkgincludeHEADERS"]):
            step(slurm, source, ["make", "-s", f"-j{JOBS}", *target])
        (slurm.folder / "built").write_text(" ".join(OPTIONS))


def _is_of_today(stamp: Path) -> bool:
    """A cache outlives many checkouts, and what these built with other options."""
    return stamp.exists() and stamp.read_text() == " ".join(OPTIONS)


def build_plugins(slurm: Slurm) -> None:
    """Builds slurm-plugins of this checkout against that Slurm."""
    _build(slurm, CHECKOUT / "slurm-plugins", slurm.plugins, slurm.folder / "plugins")


def build_earlier(slurm: Slurm) -> None:
    """The same of the commit EARLIER, once; NotToBeHad where a clone goes not so far back."""
    if (slurm.earlier / "sbin" / "joulemarkd").exists():
        return
    source = slurm.folder / "earlier-source"
    source.mkdir(exist_ok=True)
    words = ["git", "-C", str(CHECKOUT), "archive", EARLIER, "slurm-plugins"]
    packed = subprocess.run(words, capture_output=True)
    if packed.returncode:
        raise NotToBeHad(f"commit {EARLIER[:7]}: {packed.stderr.decode().strip()}")
    subprocess.run(["tar", "-x"], cwd=source, input=packed.stdout, check=True)
    _build(slurm, source / "slurm-plugins", slurm.earlier, slurm.folder / "earlier-build")


def _build(slurm: Slurm, source: Path, prefix: Path, made: Path) -> None:
    configure = [
        *("cmake", "--fresh", "--preset", "release", "-B", made, "-DBUILD_TESTING=OFF"),
        f"-DSLURM_ROOT={slurm.prefix}",
        f"-DCMAKE_INSTALL_PREFIX={prefix}",
        "-DCMAKE_INSTALL_RPATH_USE_LINK_PATH=ON",
    ]
    step(slurm, source, configure)
    step(slurm, source, ["cmake", "--build", made, "--parallel", JOBS])
    step(slurm, source, ["cmake", "--install", made])


def step(slurm: Slurm, folder: Path, words: Sequence[str | Path]) -> None:
    log = slurm.folder / "build.log"
    with log.open("a") as output:
        output.write(f"$ {' '.join(map(str, words))}\n")
        output.flush()
        status = run_child(
            ["nice", "-n", "10", *words],
            STEP_LIMIT_S,
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    if status:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        raise RuntimeError(f"{words[0]}: exit {status}; log: {log}\n{tail}")
