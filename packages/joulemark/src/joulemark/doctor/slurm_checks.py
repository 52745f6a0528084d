# Checks of Slurm's side: what slurm.conf, plugstack.conf and the plugins must be.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from joulemark import config
from joulemark.doctor import elf
from joulemark.doctor.finding import ERROR, WARNING, Finding
from joulemark.doctor.site import SPANK_PLUGIN, Site
from joulemark.errors import UserError

TYPE = "acct_gather_energy/joulemark"
NEEDS_RESTART = ("AcctGatherEnergyType", "JobAcctGatherType", "PluginDir")


def energy_type(site: Site) -> Iterator[Finding]:
    """Slurm must ask our plugin for energy."""
    if TYPE not in site.conf.words("AcctGatherEnergyType"):
        yield _conf(site, "energy-type", "AcctGatherEnergyType", f"set it to {TYPE}")


def plugin_dir(site: Site) -> Iterator[Finding]:
    """slurmctld and slurmd end with a fatal error where the plugin is not found."""
    if site.plugin_dirs and not site.energy_plugin:
        fix = "add PREFIX/lib/slurm of joulemark-slurm, on this machine too"
        yield _conf(site, "plugin-dir", "PluginDir", fix)


def plugin_version(site: Site) -> Iterator[Finding]:
    """Slurm ends with a fatal error where the plugin was built for another release of it."""
    if site.energy_plugin and not site.version:
        fix = "see what `scontrol -V` says: our plugins must be of Slurm's release"
        yield Finding("release", WARNING, "Slurm", "does not tell its release", fix)
    elif site.energy_plugin:
        built = elf.number(site.energy_plugin, "plugin_version")
        if _release(built) != site.version:
            yield _wrong_release(site, ERROR, site.energy_plugin, built)


def spank(site: Site) -> Iterator[Finding]:
    """Without the SPANK plugin no step has an account."""
    file = Path(site.conf.get("PlugStackConfig") or site.conf.path.with_name("plugstack.conf"))
    plugins = dict(_plugstack(file))
    ours = next((path for path in plugins if path.name == SPANK_PLUGIN), None)
    if not ours:
        fix = f"add a line `optional PREFIX/lib/slurm/{SPANK_PLUGIN}`"
        yield Finding("spank", ERROR, str(file), f"{SPANK_PLUGIN} is not in it", fix)
    elif not ours.exists():
        yield Finding("spank", ERROR, str(file), f"{ours} does not exist", "correct the path")
    else:
        built = elf.number(ours, "plugin_version")
        if site.version and _release(built)[:2] != site.version[:2]:
            yield _wrong_release(site, ERROR, ours, built)
        if plugins[ours] == "required":
            fix = "say `optional`: with `required` jobs fail where it cannot be loaded"
            yield Finding("spank", WARNING, str(file), f"required {ours}", fix)


def contain(site: Site) -> Iterator[Finding]:
    """The job's row in sacct is its .extern step's energy."""
    if "contain" not in site.conf.words("PrologFlags"):
        fix = "add Contain: without it sacct's job rows lack the energy of batch scripts"
        yield _conf(site, "contain", "PrologFlags", fix)


def node_frequency(site: Site) -> Iterator[Finding]:
    """`scontrol show node` has watts only where slurmctld asks for them."""
    if site.conf.get("AcctGatherNodeFreq", "0") == "0":
        fix = "set it to 30: nodes show no watts without it"
        yield _conf(site, "node-frequency", "AcctGatherNodeFreq", fix, WARNING)


def job_gathering(site: Site) -> Iterator[Finding]:
    """slurmstepd asks an energy plugin only where it gathers at all."""
    kind = site.conf.get("JobAcctGatherType", "jobacct_gather/none")
    if kind.endswith("/none"):
        fix = "set it to jobacct_gather/cgroup or jobacct_gather/linux"
        yield _conf(site, "job-gathering", "JobAcctGatherType", fix)
    frequency = site.conf.get("JobAcctGatherFrequency", "30").lower()
    if re.search(r"(^|,)(task=)?0(,|$)", frequency):
        fix = "set task=30: sstat shows no energy of running jobs without it"
        yield _conf(site, "job-gathering", "JobAcctGatherFrequency", fix, WARNING)


def accounting(site: Site) -> Iterator[Finding]:
    """sacct needs slurmdbd."""
    if site.conf.get("AccountingStorageType") != "accounting_storage/slurmdbd":
        fix = "set it to accounting_storage/slurmdbd: sacct shows nothing without it"
        yield _conf(site, "accounting", "AccountingStorageType", fix)


def private_store(site: Site) -> Iterator[Finding]:
    """The store knows no users. Of sacct's rows slurmdbd's own PrivateData decides."""
    try:
        path = config.load(site.config_file).store.path  # None: a database
        modes = [one.stat().st_mode for one in (path, *path.parents)] if path else []
    except (UserError, OSError):  # another check's to say
        return
    is_open = modes and modes[0] & stat.S_IROTH and all(mode & stat.S_IXOTH for mode in modes[1:])
    if not is_open:  # else slurmdbd is asked, which not each of a thousand nodes should do
        return
    where = next((name for name, words in site.private.items() if words & {"jobs", "all"}), None)
    if where:
        value = f"mode {stat.S_IMODE(modes[0]):04o}, and {where} has PrivateData=jobs"
        fix = "chmod 640: users read there what Slurm hides; joulemark sacct does without"
        yield Finding("private-store", WARNING, str(path), value, fix)


def epilogs(site: Site) -> Iterator[Finding]:
    """The one has the node's record written, the other merges the job's, each on its machine."""
    for key, name, runs_here in (
        ("Epilog", "epilog", site.is_node),
        ("EpilogSlurmctld", "epilogslurmctld", site.is_controller),
    ):
        programs = [Path(path) for path in site.conf.all(key) if path]
        if programs and not (runs_here or any(path.exists() for path in programs)):
            continue
        ours = [path for path in programs if _calls_us(path)]
        if not ours:
            fix = f"set it to PREFIX/libexec/joulemark/{name}, or call that from the site's own"
            yield _conf(site, "epilog", key, fix)
        for path in ours:
            if not os.access(path, os.X_OK):
                yield Finding("epilog", ERROR, str(path), "not executable", "chmod 755")


def epilog_environment(site: Site) -> Iterator[Finding]:
    """slurmctld starts EpilogSlurmctld with next to no environment."""
    usual = Path("/etc/slurm/joulemark.yaml")
    for path in site.conf.all("EpilogSlurmctld"):
        if not _calls_us(Path(path)) or not site.is_controller:
            continue
        text = Path(path).read_text(errors="replace")
        if "JOULEMARK_CONFIG=" not in text and site.config_file != usual:
            value = f"JOULEMARK_CONFIG is not set in it, and the file in use is {site.config_file}"
            fix = f"set it in a script that calls ours, or put the file at {usual}"
            yield Finding("epilog-environment", ERROR, path, value, fix)
        is_set = "SLURM_CONF" in os.environ and "SLURM_STEP_ID" not in os.environ  # srun sets it
        if "SLURM_CONF=" not in text and is_set:
            value = f"SLURM_CONF is not set in it, and here it is {site.conf.path}"
            fix = (
                "set it in a script that calls ours, where Slurm does not find the file by itself"
            )
            yield Finding("epilog-environment", WARNING, path, value, fix)
        if "JOULEMARK_BIN=" not in text and not _epilog_finds_command(site):
            value = "JOULEMARK_BIN is not set in it, and its PATH has no joulemark: no merge"
            fix = f"set it to {Path(sys.argv[0]).absolute().parent} in a script that calls ours"
            yield Finding("epilog-environment", ERROR, path, value, fix)


def running(site: Site) -> Iterator[Finding]:
    """What slurmctld runs with is what it read at its start."""
    if site.running is None:
        fix = "start it; its log says why it ended (SlurmctldLogFile)"
        yield Finding("slurmctld", ERROR, "scontrol show config", "slurmctld does not answer", fix)
        return
    for key in NEEDS_RESTART:
        written, runs = site.conf.get(key), site.running.get(key.lower(), "")
        if written and runs and written.lower() != runs.lower():
            fix = f"slurm.conf says {written}: restart slurmctld and every slurmd"
            yield Finding("running-config", ERROR, f"slurmctld: {key}", runs, fix)
    if "contain" in site.conf.words("PrologFlags"):
        runs = site.running.get("prologflags", "")
        if "contain" not in runs.lower():
            fix = "slurm.conf says Contain: run scontrol reconfigure"
            yield Finding("running-config", ERROR, "slurmctld: PrologFlags", runs, fix)


CHECKS = (
    energy_type,
    plugin_dir,
    plugin_version,
    spank,
    contain,
    node_frequency,
    job_gathering,
    accounting,
    private_store,
    epilogs,
    epilog_environment,
    running,
)


def _conf(site: Site, check: str, key: str, fix: str, level: str = ERROR) -> Finding:
    value = site.conf.get(key)
    return Finding(
        check, level, str(site.conf.path), f"{key}={value}" if value else f"no {key}", fix
    )


def _release(number: int | None) -> tuple[int, ...]:
    """SLURM_VERSION_NUMBER is 0xMMmmuu."""
    return (number >> 16, number >> 8 & 255, number & 255) if number else ()


def _wrong_release(site: Site, level: str, path: Path, built: int | None) -> Finding:
    text = ".".join(map(str, _release(built))) or "no Slurm that it says"
    runs = ".".join(map(str, site.version or ()))
    fix = f"build joulemark-slurm against Slurm {runs}, which runs here"
    return Finding("plugin-version", level, str(path), f"built for {text}", fix)


def _plugstack(file: Path, depth: int = 0) -> Iterator[tuple[Path, str]]:
    """(plugin, `optional` or `required`) of each line, included files' too."""
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        words = line.split("#")[0].split()
        if len(words) >= 2 and words[0] == "include" and depth < 10:
            for path in (
                sorted(file.parent.glob(words[1])) if words[1][0] != "/" else _glob(words[1])
            ):
                yield from _plugstack(path, depth + 1)
        elif len(words) >= 2:
            yield Path(words[1]), words[0]


def _glob(pattern: str) -> list[Path]:
    return sorted(Path("/").glob(pattern.lstrip("/")))


def _epilog_finds_command(site: Site) -> bool:
    """By the PATH that epilogslurmctld gives itself."""
    folders = ["/usr/local/bin", "/usr/bin", "/bin"]
    if site.prefix:
        folders.insert(0, str(site.prefix / "bin"))
    return shutil.which("joulemark", path=":".join(folders)) is not None


def _calls_us(path: Path) -> bool:
    """Ours, or a script that names us."""
    try:
        return path.is_file() and b"joulemark" in (os.fsencode(path) + path.read_bytes())
    except OSError:
        return False
