"""The cluster's configuration files, from the templates beside this module and few options."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import getpass
import glob
import json
import os
import re
import socket
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from tests.cluster.errors import ClusterError
from tests.cluster.place import Build

TEMPLATES = Path(__file__).parent / "templates"

# Estimated energy where the machine has no sensor; a real figure needs a real instrument.
MODEL = {"name": "model", "type": "model", "idle_w": 40, "full_w": 120}

CGROUP = {
    "ProctrackType": "proctrack/cgroup",
    "TaskPlugin": "task/affinity,task/cgroup",
    "JobAcctGatherType": "jobacct_gather/cgroup",
}

#: The nodes are one machine: through shared memory Open MPI would take ranks of two for each other
#: (and loopback, which it leaves out of TCP, may be the only interface; version 5
#: reaches no rank of its own machine by another).
#: By Slurm's other fence (for data a ring) of some hundred steps one rank sends before the other
#: has left its MPI_Init, which dies of it: https://github.com/open-mpi/ompi/issues/12495
OPEN_MPI = {
    "OMPI_MCA_btl": "self,tcp",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "SLURM_PMIX_FENCE": "tree",
}


@dataclass(frozen=True)
class Options:
    """What a caller may choose; Cluster(state, ...) and cluster.change(...) take these by name."""

    name: str = "joulemark"
    nodes: int = 2
    cpus: int = 2  # per node
    # per node: its own line instead, as CPUs=4 CoresPerSocket=2 ThreadsPerCore=2
    topology: Mapping[str, str] = field(default_factory=dict)
    build: Build | None = None  # None: plain Slurm, no Joulemark
    contain: bool = True  # PrologFlags=Contain
    cgroup: bool = False
    partition: str = ""  # further keys of its line, as OverSubscribe=FORCE:2
    gpus: int = 0  # per node, for Slurm to bind; /dev/null stands for each
    slurm_conf: Mapping[str, str | None] = field(default_factory=dict)  # None removes the key
    instruments: Sequence[Mapping] = (MODEL,)
    daemon: Mapping[str, object] = field(default_factory=dict)  # further keys of joulemark.yaml
    # per node: keys of that node's daemon alone, such as instruments
    node_daemon: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    @property
    def node_names(self) -> list[str]:
        return [f"n{i}" for i in range(1, self.nodes + 1)]


def service_user() -> str:
    """Who runs everything but slurmd: Slurm's own user where root may choose, else the caller."""
    return "slurm" if os.geteuid() == 0 else getpass.getuser()


def write_files(state: Path, options: Options, ports: Mapping[str, int]) -> None:
    """Writes every file under etc/ that changed."""
    values = _values(state, options, ports)
    etc = state / "etc"
    _write(etc / "my.cnf", _fill("my.cnf", values))
    _write(etc / "slurmdbd.conf", _fill("slurmdbd.conf", values), 0o600, service_user())
    _write(etc / "slurm.conf", slurm_conf(options, ports, values))
    _write(state / "env.sh", _fill("env.sh", values))
    if options.gpus:
        _write(etc / "gres.conf", gres_conf(state, options))
    if options.cgroup:
        _write(etc / "cgroup.conf", _fill("cgroup.conf", values))
    if options.build:
        _write(etc / "plugstack.conf", _fill("plugstack.conf", values))
        _write(etc / "epilogslurmctld", _fill("epilogslurmctld", values), 0o755)
        _write(etc / "joulemark.yaml", yaml(daemon_config(state, options)))
        for node in options.node_names:
            write_daemon_config(state, options, node)


def write_daemon_config(state: Path, options: Options, node: str) -> Path:
    """Writes one node's own file: tests give nodes different instruments."""
    path = state / "etc" / f"joulemark-{node}.yaml"
    own = options.node_daemon.get(node, {})
    _write(path, yaml({**daemon_config(state, options), **own}))
    return path


def slurm_conf(options: Options, ports: Mapping[str, int], values: Mapping[str, object]) -> str:
    text = _fill("slurm.conf", values)
    if options.build:
        text += _fill("energy.conf", values)
    chosen: dict[str, str | None] = {"PrologFlags": "Contain" if options.contain else None}
    if options.cgroup:
        chosen.update(CGROUP)
    if options.gpus:
        chosen["GresTypes"] = "gpu"
    for key, value in {**chosen, **options.slurm_conf}.items():
        text = _set_key(text, key, value)
    return text + "".join(_node_lines(options, ports))


def _node_lines(options: Options, ports: Mapping[str, int]) -> list[str]:
    memory = _memory_mb() // (2 * options.nodes)  # no more than is there, or the node is refused
    common = f"NodeHostname={_host()} NodeAddr=127.0.0.1 RealMemory={memory}"
    if options.gpus:
        common += f" Gres=gpu:{options.gpus}"
    cpus = {node: f"CPUs={options.cpus}" for node in options.node_names} | dict(options.topology)
    nodes = [f"NodeName={n} {common} {cpus[n]} Port={ports[n]}\n" for n in options.node_names]
    main = "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
    return ["\n", *nodes, f"{main} {options.partition}".rstrip() + "\n"]


def gres_conf(state: Path, options: Options) -> str:
    """Slurm wants a character device behind each GPU, and takes its number from the name."""
    files = [state / "etc" / f"gpu{number}" for number in range(options.gpus)]
    for file in files:
        if not file.is_symlink():
            file.symlink_to(os.devnull)
    head = "# Written by tests/cluster.\n# SPDX-License-Identifier: Apache-2.0 OR MIT\n"
    nodes = ",".join(options.node_names)
    return head + "".join(f"NodeName={nodes} Name=gpu File={file}\n" for file in files)


def _set_key(text: str, key: str, value: str | None) -> str:
    """Replaces `key=...` where it stands, appends it where it does not, removes it for None."""
    line = "" if value is None else f"{key}={value}\n"
    pattern = re.compile(rf"^{re.escape(key)}=.*\n", re.MULTILINE)
    if pattern.search(text):
        return pattern.sub(lambda _: line, text)
    return text + line


def daemon_config(state: Path, options: Options) -> dict[str, object]:
    return {
        "cluster": options.name,
        "socket": f"{state}/run/joulemarkd-%n.sock",
        "state_dir": f"{state}/ledger/%n",
        "record_dir": f"{state}/records",
        "store": f"{state}/store/store.sqlite",
        "log_file": f"{state}/log/joulemarkd-%n.log",
        "period_s": 1.0,
        "cpus": options.cpus,
        "privileged_users": [service_user()],
        "instruments": list(options.instruments),
        **options.daemon,
    }


def yaml(config: Mapping[str, object]) -> str:
    """YAML of a flat mapping with a list of instruments; scalars are JSON, which YAML contains."""
    lines = ["# Written by tests/cluster.", "# SPDX-License-Identifier: Apache-2.0 OR MIT"]
    for key, value in config.items():
        if key != "instruments" or not value:
            lines.append(f"{key}: {json.dumps(value)}")
            continue
        lines.append("instruments:")
        for instrument in value:
            pairs = [f"{name}: {json.dumps(entry)}" for name, entry in instrument.items()]
            lines += [("  - " if i == 0 else "    ") + pair for i, pair in enumerate(pairs)]
    return "\n".join(lines) + "\n"


def machine_instruments(
    powercap: Path = Path("/sys/class/powercap"), hwmon: Path = Path("/sys/class/hwmon")
) -> list[dict[str, object]]:
    """The best that this machine has: RAPL, a power sensor, or the model, which is an estimate."""
    if any(_readable(path) for path in powercap.glob("*/energy_uj")):
        return [{"name": "rapl", "type": "powercap"}]
    sensors = [*hwmon.glob("*/power*_input"), *hwmon.glob("*/power*_average")]
    if any(_readable(path) for path in sensors):
        return [{"name": "hwmon", "type": "hwmon"}]
    return [dict(MODEL)]


def _readable(path: Path) -> bool:
    try:
        return bool(path.read_text().strip())
    except OSError:
        return False


def _values(state: Path, options: Options, ports: Mapping[str, int]) -> dict[str, object]:
    build = options.build
    own = build.slurm_root if build else None
    plugin_path = [f"{own}/lib/slurm" if own else slurm_plugin_folder()]
    if build:
        plugin_path.append(str(build.slurm_prefix / "lib" / "slurm"))
    return {
        "state": state,
        "cluster": options.name,
        "host": _host(),
        "service_user": service_user(),
        "node_user": getpass.getuser(),
        "ctld_port": ports["slurmctld"],
        "dbd_port": ports["slurmdbd"],
        "slurm_plugins": ":".join(plugin_path),
        "prefix": build.slurm_prefix if build else "",
        "bin": build.bin if build and build.bin else "/usr/bin",
        "modules": build.modules if build and build.modules else "",
        "open_mpi": " ".join(f"{key}={value}" for key, value in OPEN_MPI.items()),
    }


def slurm_plugin_folder() -> str:
    """Where this machine's Slurm keeps its plugins."""
    for pattern in ("lib/*/slurm-wlm", "lib/*/slurm", "lib64/slurm", "lib/slurm"):
        for folder in sorted(glob.glob(f"/usr/{pattern}")):
            if os.path.exists(f"{folder}/accounting_storage_slurmdbd.so"):
                return folder
    raise ClusterError("no Slurm plugins under /usr/lib: is slurm-wlm installed? Run tests/setup")


def has_pmix() -> bool:
    """Whether this machine's Slurm starts ranks by PMIx: Debian's does not from 26.05.5-1 on."""
    return bool(glob.glob(f"{slurm_plugin_folder()}/mpi_pmix*.so"))


def _fill(name: str, values: Mapping[str, object]) -> str:
    return Template((TEMPLATES / name).read_text()).substitute(values)


def _write(path: Path, text: str, mode: int = 0o644, owner: str | None = None) -> None:
    """Writes a file that differs, with its mode and owner set before it has its name."""
    if path.exists() and path.read_text() == text and stat.S_IMODE(path.stat().st_mode) == mode:
        return
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode)
    fresh.write_text(text)
    fresh.chmod(mode)
    give(fresh, owner)
    fresh.rename(path)


def give(path: Path, owner: str | None) -> None:
    """Changes the owner where the caller is root; anybody else owns all of it already."""
    if owner and os.geteuid() == 0:
        import pwd

        entry = pwd.getpwnam(owner)
        os.chown(path, entry.pw_uid, entry.pw_gid)


def _host() -> str:
    return socket.gethostname().split(".")[0]


def _memory_mb() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
