"""The cluster as a whole: its services, the order of their start, and how they end."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.cluster import config, processes
from tests.cluster.child import undisturbed
from tests.cluster.client import SBIN, SlurmClient
from tests.cluster.config import Options, service_user
from tests.cluster.errors import ClusterError, Waited
from tests.cluster.place import exclusive
from tests.cluster.ports import choose_ports, known_ports, listens
from tests.cluster.service import Service, leftovers
from tests.cluster.waiting import PATIENCE_S, wait_for


@dataclasses.dataclass(frozen=True)
class Node:
    """One node of the cluster: its slurmd and, with Joulemark, its daemon."""

    name: str
    cluster: Cluster
    slurmd: Service
    daemon: Service

    @property
    def socket(self) -> Path:
        return self.cluster.state / "run" / f"joulemarkd-{self.name}.sock"

    @property
    def config_file(self) -> Path:
        return self.cluster.state / "etc" / f"joulemark-{self.name}.yaml"

    @property
    def ledger(self) -> Path:
        """The daemon's state folder."""
        return self.cluster.state / "ledger" / self.name

    def configure(self, **keys: object) -> None:
        """Gives this node's daemon keys of its own (instruments=[...], ...) and restarts it."""
        own = {**self.cluster.options.node_daemon, self.name: keys}
        self.cluster.options = dataclasses.replace(self.cluster.options, node_daemon=own)
        config.write_daemon_config(self.cluster.state, self.cluster.options, self.name)
        self.daemon.restart()

    @contextlib.contextmanager
    def configured(self, **keys: object) -> Iterator[Node]:
        """`with node.configured(state_dir=...) as node: ...` and back."""
        with self.cluster.changed() as cluster:
            node = cluster.node(self.name)
            node.configure(**keys)
            yield node

    def stepds(self, job: int | str) -> dict[str, int]:
        """Pids of the job's slurmstepds on this node: {"extern": 12, "batch": 13, "0": 14}."""
        log = str(self.slurmd.log)
        found = {}
        for pid in processes.all_pids():
            title = " ".join(processes.command(pid))
            match = re.match(rf"slurmstepd: \[{job}\.(\w+)\]", title)
            if match and log in processes.open_files(pid):
                found[match[1]] = pid
        return found


class Cluster(SlurmClient):
    """Brings a cluster up under one state folder, repairs it, talks to it, takes it down."""

    def __init__(self, state: Path | str, **options: object) -> None:
        self.state = Path(state).absolute()
        if " " in str(self.state) or len(str(self.state)) > 70:
            raise ClusterError(
                f"state folder {self.state}: no space, at most 70 characters (socket paths)"
            )
        self.options = Options(**options)  # type: ignore[arg-type]
        self.ports = known_ports(self.state)
        self._build_services()

    # -- services ------------------------------------------------------------------------------

    def _build_services(self) -> None:
        state, etc = self.state, self.state / "etc"
        user = service_user() if os.geteuid() == 0 else None
        slurm_path = self.options.build.slurm_path if self.options.build else []
        path = ":".join([*slurm_path, SBIN])
        slurm_env = {"PATH": path, "LANG": "C.UTF-8", "SLURM_CONF": str(self.slurm_conf)}
        slurm_files = [etc / f"{name}.conf" for name in ("slurm", "plugstack", "cgroup", "gres")]

        def service(name: str, *command: str, **more: object) -> Service:
            log = state / "log" / f"{name}.log"
            chosen = {"state": state, "env": slurm_env, "user": user, "log": log, **more}
            return Service(name, command, **chosen)  # type: ignore[arg-type]

        self.munged = service(
            "munged",
            *("munged", "--foreground", f"--socket={state}/run/munge.sock"),
            *(f"--key-file={state}/munge/key", f"--seed-file={state}/munge/seed"),
            *(f"--pid-file={state}/run/munged.pid", f"--log-file={state}/munge/log"),
            ready=lambda: _answers(state / "run" / "munge.sock"),
            log=state / "munge" / "log",
            inputs=[state / "munge" / "key"],
        )
        self.mariadb = service(
            "mariadb",
            *("mariadbd", f"--defaults-file={etc}/my.cnf"),
            ready=lambda: _answers(state / "run" / "mariadb.sock"),
            inputs=[etc / "my.cnf"],
        )
        self.slurmdbd = service(
            *("slurmdbd", "slurmdbd", "-D"),
            env={**slurm_env, "MYSQL_UNIX_PORT": f"{state}/run/mariadb.sock"},
            ready=lambda: listens(self.ports["slurmdbd"]),
            inputs=[etc / "slurmdbd.conf"],
        )
        self.slurmctld = service(
            # -i: 26.05 starts no more once it was killed before it first wrote each of its files
            *("slurmctld", "slurmctld", "-D", "-i"),
            ready=lambda: listens(self.ports["slurmctld"]),
            inputs=[*slurm_files, *self._plugin_files("*.so")],
        )
        self.nodes: dict[str, Node] = {}
        for name in self.options.node_names:
            slurmd = service(
                f"slurmd-{name}",
                *("slurmd", "-D", "-N", name),
                user=None,
                # slurmd tells only its children; plugins inside it must not guess by host name
                env={**slurm_env, "SLURMD_NODENAME": name},
                ready=lambda name=name: listens(self.ports[name]),
                inputs=[*slurm_files, *self._plugin_files("*.so")],
            )
            daemon_file = etc / f"joulemark-{name}.yaml"
            socket_file = state / "run" / f"joulemarkd-{name}.sock"
            daemon = service(
                f"joulemarkd-{name}",
                *(self._daemon_program(), "-N", name, "-c", str(daemon_file)),
                capabilities="dac_read_search",  # RAPL's counters are root's to read
                ready=lambda path=socket_file: _answers(path, socket.SOCK_SEQPACKET),
                inputs=[daemon_file, *self._plugin_files("joulemarkd")],
            )
            self.nodes[name] = Node(name, self, slurmd, daemon)

    def _daemon_program(self) -> str:
        build = self.options.build
        return str(build.slurm_prefix / "sbin" / "joulemarkd") if build else "joulemarkd"

    def _plugin_files(self, pattern: str) -> list[Path]:
        build = self.options.build
        return sorted(build.slurm_prefix.glob(f"*/**/{pattern}")) if build else []

    @property
    def services(self) -> list[Service]:
        """All of them, in the order in which they start."""
        with_energy = [node.daemon for node in self.nodes.values()] if self.options.build else []
        slurmds = [node.slurmd for node in self.nodes.values()]
        return [self.munged, self.mariadb, self.slurmdbd, *with_energy, self.slurmctld, *slurmds]

    def node(self, name: str) -> Node:
        return self.nodes[name]

    def merging(self) -> list[int]:
        """What EpilogSlurmctld leaves running: a script, `joulemark merge`, admincomment."""
        found = []
        for pid in leftovers(self.state, self.slurm_conf):
            words = " ".join(processes.command(pid))
            if any(word in words for word in MERGING):
                found += [pid, *processes.descendants(pid)]
        return sorted(set(found))

    # -- up and down ---------------------------------------------------------------------------

    def up(self) -> Cluster:
        """Starts what is dead, restarts what has another configuration or build.

        If that fails or is interrupted, nothing stays behind but the logs.
        """
        try:
            self._bring_up()
        except BaseException:
            self.down()
            raise
        return self

    def _bring_up(self) -> None:
        with self._locked():
            self._make_folders()
            running = {s.name.removeprefix("slurmd-"): s.alive for s in self.services}
            self.ports = choose_ports(self.state, [*SERVERS, *self.nodes], running)
            config.write_files(self.state, self.options, self.ports)
            self._retire()
            self.munged.launch()
            self._create_database()
            self.mariadb.launch()
            self.munged.wait_ready()
            self.mariadb.wait_ready()
            self.slurmdbd.start()
            self._register()
            rest = self.services[3:]
            for service in rest:
                service.launch()
            for service in rest:
                service.wait_ready()
            self.wait_nodes(started=rest)

    def _retire(self) -> None:
        """Stops outdated services, and those that the options no longer ask for."""
        current = {service.name for service in self.services}
        for record in (self.state / "services").glob("*.json"):
            if record.stem not in current:
                Service.recorded(record.stem, self.state).stop()
        stale = [service for service in self.services if service.outdated]
        for service in stale:
            service.terminate()
        for service in stale:
            service.stop()

    def down(self) -> None:
        """Ends every job and process of this cluster, also those that a crash left unrecorded."""
        if not self.state.exists():
            return
        with undisturbed(), self._locked():
            if self.slurmctld.alive:
                self.end_jobs()
            names = [record.stem for record in (self.state / "services").glob("*.json")]
            for stage in (r"slurm(d-|ctld)", r"slurmdbd|joulemarkd", r""):
                stopping = [Service.recorded(n, self.state) for n in names if re.match(stage, n)]
                for service in stopping:
                    service.terminate()
                for service in stopping:
                    service.stop()
            self._end_leftovers()

    def end_jobs(self) -> None:
        user = [f"--user={service_user()}"] if os.geteuid() else []
        with contextlib.suppress(ClusterError, subprocess.TimeoutExpired):
            ids = self.run(["squeue", "-h", "-o", "%i"], timeout=30).split()
            if ids:
                self.run(["scancel", *user, *ids], timeout=30)
                wait_for(lambda: not self.run(["squeue", "-h"], timeout=30), what="jobs to end")

    def _end_leftovers(self) -> None:
        for number, patience_s in ((signal.SIGTERM, 2.0), (signal.SIGKILL, PATIENCE_S)):
            for pid in leftovers(self.state, self.slurm_conf):
                with contextlib.suppress(PermissionError):
                    processes.send(pid, number)
            with contextlib.suppress(Waited):
                wait_for(lambda: not leftovers(self.state, self.slurm_conf), patience_s)
                return
        raise ClusterError(f"processes outlive SIGKILL: {leftovers(self.state, self.slurm_conf)}")

    def remove(self) -> None:
        """Takes the cluster down and its state folder away."""
        self.down()
        shutil.rmtree(self.state, ignore_errors=True)
        self._lock_file.unlink(missing_ok=True)

    def change(self, **options: object) -> Cluster:
        """Other options from here on; only the services that they touch restart."""
        self.options = dataclasses.replace(self.options, **options)  # type: ignore[arg-type]
        self._build_services()
        return self.up()

    @contextlib.contextmanager
    def changed(self, **options: object) -> Iterator[Cluster]:
        """`with cluster.changed(contain=False): ...` and back."""
        before = self.options
        try:
            yield self.change(**options)
        finally:
            self.options = before
            self._build_services()
            self.up()

    def status(self) -> dict[str, int | None]:
        """Pid of every service; None: does not run."""
        return {service.name: service.pid for service in self.services}

    @property
    def _lock_file(self) -> Path:
        return self.state.with_name(self.state.name + ".lock")

    def _locked(self) -> contextlib.AbstractContextManager[None]:
        return exclusive(self._lock_file)

    def _make_folders(self) -> None:
        """Services and jobs run as different users: each folder has its owner and mode."""
        self.state.mkdir(parents=True, exist_ok=True)
        self.state.chmod(0o755)
        owner = service_user()
        root_only = ["services", "etc", "spool"]
        shared = ["run", "log", "records", "store", "profiles", "ledger"]
        private = ["munge", "spool/slurmctld"]
        everybody = ["tmp", "jobs"]
        per_node = [f"{kind}/{n}" for kind in ("spool", "tmp") for n in self.nodes]
        for folders, mode, user in (
            (root_only, 0o755, None),
            (shared, 0o755, owner),
            (private, 0o700, owner),
            (everybody, 0o1777, None),
            (per_node, 0o755, None),
            ([f"ledger/{n}" for n in self.nodes], 0o755, owner),
        ):
            for name in folders:
                folder = self.state / name
                folder.mkdir(exist_ok=True)
                folder.chmod(0o1777 if name.startswith("tmp/") else mode)
                config.give(folder, user)
        self._make_munge_key()

    def _make_munge_key(self) -> None:
        key = self.state / "munge" / "key"
        if not key.exists():
            key.touch(0o600)
            key.write_bytes(os.urandom(1024))
            config.give(key, service_user())

    def _create_database(self) -> None:
        """An empty MariaDB whose administrator is the service user by its uid: no password.

        slurmdbd would make its database itself, and fail: where it is missing it connects once
        more by the same handle, for which libmariadb3 11.8.9 allows results of 0 columns alone.
        """
        if (self.state / "db").exists():
            return
        fresh = self.state / "db.new"  # renamed when it is whole
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(0o700)
        config.give(fresh, service_user())
        sql = self.state / "accounting.sql"
        sql.write_text("CREATE DATABASE slurm_acct_db;\n")
        sql.chmod(0o644)
        self.mariadb.run_as_user(
            *("mariadb-install-db", "--no-defaults", f"--datadir={fresh}"),
            f"--tmpdir={self.state}/tmp",  # a starting server deletes every "#sql" file there
            *("--auth-root-authentication-method=socket", "--skip-test-db", "--skip-name-resolve"),
            "--force",  # nobody connects by name, so it need not be one that can be looked up
            *(f"--auth-root-socket-user={service_user()}", "--innodb-log-file-size=16M"),
            f"--extra-file={sql}",
        )
        sql.unlink()
        fresh.rename(self.state / "db")

    def _register(self) -> None:
        """Tells slurmdbd the cluster's name, once."""
        name = self.options.name
        if name not in self.run(["sacctmgr", "-nP", "show", "cluster", "format=cluster"]).split():
            self.run(["sacctmgr", "-i", "add", "cluster", name])

    def wait_nodes(self, timeout_s: float = PATIENCE_S, started: Sequence[Service] = ()) -> None:
        """Waits until every node can take jobs; says at once when one of `started` has died."""

        def waiting() -> list[str]:
            for service in started:
                service.require_alive()
            lines = self.run(["sinfo", "-h", "-N", "-o", "%N %T %E"], check=False).splitlines()
            ready = {w[0] for w in map(str.split, lines) if re.match(USABLE, w[1])}
            return [] if ready >= set(self.nodes) else (lines or ["no answer from slurmctld"])

        what = f"to be ready; logs: {self.state}/log"
        wait_for(lambda: not waiting(), timeout_s, lambda: f"{waiting()} {what}")


SERVERS = ("slurmctld", "slurmdbd")  # each has a port, and so has each node
MERGING = ("epilogslurmctld --", "merge --ended ", "/admincomment ")
USABLE = r"(idle|mixed|allocated|completing)$"


def _answers(path: Path, kind: socket.SocketKind = socket.SOCK_STREAM) -> bool:
    with socket.socket(socket.AF_UNIX, kind) as client:
        client.settimeout(1)
        return client.connect_ex(str(path)) == 0
