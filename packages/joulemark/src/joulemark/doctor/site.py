# What the checks look at: this machine's Slurm, its configuration and ours, each asked once.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import functools
import os
import re
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from joulemark import config, environment
from joulemark.doctor.slurmconf import SlurmConf
from joulemark.errors import UserError
from joulemark.slurm import configuration

ENERGY_PLUGIN = "acct_gather_energy_joulemark.so"
SPANK_PLUGIN = "spank_joulemark.so"
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
ANSWER_S = 20
FILTERS = ("SQUEUE_", "SINFO_")  # a user's own, of which jobs and nodes he cares to see


@dataclass(frozen=True)
class Answer:
    """What a program said; status None: it is not there, or did not end in time."""

    status: int | None
    out: str = ""
    err: str = ""

    @property
    def good(self) -> bool:
        return self.status == 0


def answer_s() -> float:
    """What a program has: who asks many nodes at once gives each less."""
    what = "a time in seconds up to 3600"
    return environment.number("JOULEMARK_ANSWER_S", ANSWER_S, lambda s: 0 < s <= 3600, what)


def ask(*words: str | Path, env: dict[str, str] | None = None) -> Answer:
    """Runs a program, found also where only root looks."""
    path = f"{os.environ.get('PATH', os.defpath)}:{SBIN}"
    inherited = {key: text for key, text in os.environ.items() if not key.startswith(FILTERS)}
    program, limit_s = shutil.which(str(words[0]), path=path), answer_s()
    if not program:
        return Answer(None, err=f"{words[0]} is not installed")
    try:
        done = subprocess.run(
            [program, *map(str, words[1:])],
            env={**inherited, "PATH": path, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        return Answer(None, err=f"{words[0]} does not end within {limit_s:g} s")
    return Answer(done.returncode, done.stdout, done.stderr.strip())


class Site:
    """This machine, as the checks see it."""

    def __init__(self, conf: SlurmConf, node: str | None):
        self.conf = conf
        self.host = socket.gethostname().split(".")[0]
        named = node or os.environ.get("SLURMD_NODENAME") or self._named_in_conf()
        self.is_node = bool(named)
        self.node = named or self.host

    def _named_in_conf(self) -> str:
        """The one NodeName that is on this host; "": none is, or several are."""
        found = []
        for line in self.conf.nodes:
            names = self.conf.names_of(line)
            hosts = self.conf.names_of(line, "nodehostname")
            found += [name for name, host in zip(names, hosts) if host == self.host]
        return found[0] if len(found) == 1 else ""

    @functools.cached_property
    def daemon(self) -> Answer:
        """What joulemarkd of this node says of itself."""
        return ask(self.program("joulemarkctl"), "-N", self.node, "status")

    @functools.cached_property
    def daemon_said(self) -> dict[str, str]:
        """By its keys; none where it does not answer, or this is no node."""
        lines = self.daemon.out.splitlines() if self.is_node and self.daemon.good else []
        return dict(line.split(": ", 1) for line in lines if ": " in line)

    @functools.cached_property
    def is_controller(self) -> bool:
        """Does slurmctld belong here?"""
        hosts = [re.sub(r"\(.*", "", value) for value in self.conf.all("SlurmctldHost")]
        return self.host in [host.split(".")[0] for host in hosts]

    @functools.cached_property
    def version(self) -> tuple[int, ...] | None:
        """Of the Slurm that is installed here: its daemons' first, for they load the plugins."""
        for program in ("slurmctld", "slurmd", "scontrol"):
            found = re.search(r"(\d+)\.(\d+)\.(\d+)", ask(program, "-V").out)
            if found:
                return tuple(map(int, found.groups()))
        return None

    @functools.cached_property
    def running(self) -> dict[str, str] | None:
        """slurmctld's own view of its configuration, by lower-case key; None: no answer."""
        answer = ask("scontrol", "show", "config")
        return configuration.keys(answer.out) if answer.good else None

    @functools.cached_property
    def private(self) -> dict[str, set[str]]:
        """PrivateData by who has it: slurm.conf, and slurmdbd, which tells its own; where it does
        not, and its file is closed to us, it may have any."""
        answer, name = ask("sacctmgr", "show", "configuration"), "slurmdbd.conf"
        dbd = configuration.of_slurmdbd(answer.out)
        if answer.good and "privatedata" not in dbd:
            try:
                path = Path(configuration.keys(answer.out).get("slurmdbd_conf", ""))
                dbd = configuration.keys(path.read_text(errors="replace"))
            except OSError:
                name, dbd = (
                    f"perhaps {name}, which sacctmgr does not tell,",
                    {"privatedata": "jobs"},
                )
        return {
            str(self.conf.path): self.conf.words("PrivateData"),
            name: configuration.words(dbd.get("privatedata", "")),
        }

    @functools.cached_property
    def plugin_dirs(self) -> list[Path]:
        """PluginDir of slurm.conf, else the default that Slurm was built with."""
        text = self.conf.get("PluginDir") or (self.running or {}).get("plugindir", "")
        return [Path(folder) for folder in text.split(":") if folder]

    @functools.cached_property
    def energy_plugin(self) -> Path | None:
        """The file that Slurm would load."""
        found = (folder / ENERGY_PLUGIN for folder in self.plugin_dirs)
        return next((path for path in found if path.exists()), None)

    @functools.cached_property
    def prefix(self) -> Path | None:
        """Where joulemark-slurm is installed: its energy plugin is in lib/slurm there."""
        return self.energy_plugin.resolve().parents[2] if self.energy_plugin else None

    def program(self, name: str) -> str:
        """One of ours: beside the energy plugin, where it was installed with it, else on PATH."""
        if self.prefix:
            for folder in ("sbin", "bin"):
                if (self.prefix / folder / name).exists():
                    return str(self.prefix / folder / name)
        return name

    @functools.cached_property
    def config_file(self) -> Path:
        """joulemark.yaml, found as the daemon finds it."""
        return config.find()

    @functools.cached_property
    def by_broker(self) -> bool:
        """Do records go by MQTT, so that nodes have no record_dir?"""
        try:
            return config.load(self.config_file).by_broker
        except UserError:  # another check's to say
            return False

    @functools.cached_property
    def slurm_user(self) -> str:
        """Who slurmctld runs as."""
        return self.conf.get("SlurmUser", "root")

    def key(self, name: str) -> str:
        """A path of joulemark.yaml for this node, as joulemarkctl resolves it; "": unknown."""
        answer = ask(self.program("joulemarkctl"), "-N", self.node, "config", name)
        return answer.out.strip() if answer.good else ""
