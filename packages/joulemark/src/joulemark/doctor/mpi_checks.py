# Check of MPI's side: whether srun, as job templates call it, starts an MPI's ranks as one job.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
import re
from collections.abc import Iterator

from joulemark.doctor.finding import WARNING, Finding
from joulemark.doctor.site import Site, ask

TEMPLATES = "pmix"  # what joulemark-job.sh takes where MpiDefault is none
EITHER = "set MpiDefault, or JM_MPI for job templates, to one that srun has and your MPI speaks"


def ranks(site: Site) -> Iterator[Finding]:
    """Else each rank believes that it is alone, or ends in MPI_Init()."""
    there = _plugins()
    if not there:  # no srun here, or it has no configuration
        return
    where, said, plugin = _in_use(site)
    have = f"srun --mpi=list has {' '.join(sorted(there))}"
    if plugin not in there:
        fix = f"build Slurm with it, or {EITHER}"
        yield Finding("mpi", WARNING, where, f"{said}; {have}", fix)
        return
    for mpi, speaks in _loaded():
        if plugin.partition("_v")[0] not in speaks:
            value = f"{said}; {mpi} speaks {' '.join(sorted(speaks)) or 'none of Slurm'}; {have}"
            yield Finding("mpi", WARNING, where, value, _fix(sorted(speaks & there), mpi))


CHECKS = (ranks,)


def _plugins() -> set[str]:
    """What srun can be told: the names that it lists, and PMIx's own versions below them."""
    said = ask("srun", "--mpi=list").out
    return {*re.findall(r"^\s+(\w+)$", said, re.MULTILINE), *re.findall(r"\bpmix_v\d+", said)}


def _in_use(site: Site) -> tuple[str, str, str]:
    """Where it is set, what is set there, and the plugin that job templates take by it."""
    chosen = os.environ.get("JM_MPI")
    if chosen:
        return "environment", f"JM_MPI={chosen}", chosen
    default = site.conf.get("MpiDefault", "none")
    if default == "none":
        said = f"MpiDefault=none, where job templates take {TEMPLATES}"
        return str(site.conf.path), said, TEMPLATES
    return str(site.conf.path), f"MpiDefault={default}", default


def _loaded() -> Iterator[tuple[str, set[str]]]:
    """Each MPI whose program is on the PATH, as by its module, and the plugins that serve it."""
    said = ask("ompi_info", "--parsable").out
    if version := re.search(r"^ompi:version:full:v?((\d+)\S*)", said, re.MULTILINE):
        clients = set(re.findall(r"^mca:pmix:(ext|pmix|s2)", said, re.MULTILINE))
        speaks = {"pmi2" if client == "s2" else "pmix" for client in clients}
        yield f"Open MPI {version[1]}", speaks if int(version[2]) < 5 else {"pmix"}
    said = ask("mpichversion").out
    if version := re.search(r"^MPICH Version:\s*(\S+)", said, re.MULTILINE):
        client = re.search(r"--with-pmi(?:=(pmix|cray)\b|x=)", said)
        speaks = {"pmi2"}  # its own client: Slurm's pmi2 answers PMI-1 and PMI-2
        if client:
            speaks = {"cray_shasta" if client[1] == "cray" else "pmix"}
        yield f"MPICH {version[1]}", speaks


def _fix(both: list[str], mpi: str) -> str:
    if not both:
        return f"build {mpi} for one of Slurm's, or Slurm for what it speaks"
    return f"set MpiDefault={both[0]}, or JM_MPI={both[0]} for job templates"
