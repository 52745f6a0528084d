"""A cluster each of whose machines has a release of Slurm and of Joulemark of its own, by a link.

STATE/machines/n1/slurm, joulemark    what n1 has; `ln -sfn` there is the upgrade
STATE/current                         where each machine sees its own, as /opt/.../current on a
                                      site: slurm.conf names it, the same for all
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.cluster import Build, Cluster

#: where users type Slurm's commands; this program is there, too
LOGIN = "login"


class RollingCluster(Cluster):
    """Slurm's daemons and ours, on machines slurmdbd, slurmctld, n1, n2, ..., and `login`."""

    def __init__(
        self, state: Path, ours: Build, slurm: Path, joulemark: Path, **options: object
    ) -> None:
        self.current = state / "current"
        self.machines = state / "machines"
        names = {"slurm_prefix": self.current / "joulemark", "slurm_root": self.current / "slurm"}
        super().__init__(state, build=replace(ours, **names), **options)
        self.remove()
        for machine in ("slurmdbd", "slurmctld", LOGIN, *self.nodes):
            self.link(machine, "slurm", slurm)
            self.link(machine, "joulemark", joulemark)
        self._place_services()

    def link(self, machine: str, name: str, prefix: Path) -> None:
        """`ln -sfn PREFIX NAME` on that machine."""
        folder = self.current if machine == LOGIN else self.machines / machine
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f"{name}.new"
        fresh.symlink_to(prefix)
        fresh.rename(folder / name)

    def within(self, machine: str) -> list[str]:
        """Words that let a command see the machine's links."""
        if machine == LOGIN:
            return []
        mount = f'mount --bind {self.machines / machine} {self.current} && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", mount, "sh"]

    def _place_services(self) -> None:
        """Each on its machine; a slurmctld that cannot read its state ends."""
        self.slurmctld.command.remove("-i")
        self.slurmdbd.within = self.within("slurmdbd")
        self.slurmctld.within = self.within("slurmctld")
        for name, node in self.nodes.items():
            node.slurmd.within = node.daemon.within = self.within(name)
