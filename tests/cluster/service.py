"""One background process: apart from the terminal, found again later, no stranger taken for it."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import processes
from tests.cluster.errors import ClusterError, Waited
from tests.cluster.processes import start_ticks
from tests.cluster.waiting import PATIENCE_S, wait_for

# Every service carries this variable, so that a process whose record was lost is still found.
MARK = "JOULEMARK_SERVICE_OF"


def _threads(pid: int) -> int:
    """Those that still end, after the process is a zombie, keep its sockets open."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def find_program(name: str, first: str = "") -> str:
    """On the path `first`, else on the caller's; an ordinary user's has no sbin for daemons."""
    paths = [first, os.environ.get("PATH", os.defpath), "/usr/local/sbin:/usr/sbin:/sbin"]
    path = ":".join(filter(None, paths))
    found = shutil.which(name, path=path)
    if not found:
        raise ClusterError(f"{name} is not installed: see tests/packages.txt, or run tests/setup")
    return found


@dataclass(eq=False)
class Service:
    """A supervised daemon. `kill(9)` and `start()` are all that a test of recovery needs."""

    name: str
    command: Sequence[str]
    state: Path
    env: Mapping[str, str]
    ready: Callable[[], bool]
    user: str | None = None  # None: whoever runs this program
    capabilities: str = ""
    within: Sequence[str] = ()  # words before the command: another namespace
    log: Path | None = None  # None: it has none but its plain output
    inputs: Sequence[Path] = ()  # files that it reads at its start

    def __post_init__(self) -> None:
        self.command = list(self.command)
        self.env = {**self.env, MARK: str(self.state)}
        self.output = self.state / "log" / f"{self.name}.out"
        self.log = self.log or self.output
        self._record = self.state / "services" / f"{self.name}.json"
        self._child: subprocess.Popen[bytes] | None = None

    @classmethod
    def recorded(cls, name: str, state: Path) -> Service:
        """A service of an earlier run: all that is known is how to stop it."""
        return cls(name, [], state, {}, ready=lambda: True)

    @property
    def pid(self) -> int | None:
        """The running process, or None."""
        if self._child:
            self._child.poll()  # a dead child of ours must not stay a zombie
        record = self._recorded()
        started = start_ticks(record["pid"]) if record else None
        return record["pid"] if started and started == record["start_ticks"] else None

    def _recorded(self) -> dict:
        try:
            return json.loads(self._record.read_text())
        except (OSError, ValueError):
            return {}

    @property
    def outdated(self) -> bool:
        """Runs, but from another command, configuration or build than a start would use now."""
        return self.alive and self._recorded().get("started_from") != self._fingerprint()

    def _fingerprint(self) -> str:
        digest = hashlib.sha256(repr((self.command, sorted(self.env.items()))).encode())
        for path in self.inputs:
            with contextlib.suppress(FileNotFoundError, PermissionError):
                digest.update(path.read_bytes())
        return digest.hexdigest()

    @property
    def alive(self) -> bool:
        return self.pid is not None

    def start(self, timeout_s: float = PATIENCE_S) -> None:
        """Starts it and waits until it answers; does nothing where it runs."""
        self.launch()
        self.wait_ready(timeout_s)

    def launch(self) -> None:
        """Starts it without waiting for an answer."""
        if self.alive:
            return
        with self.output.open("ab") as output:
            self._child = subprocess.Popen(
                [
                    *self.within,
                    *self.as_user(),
                    self.program(self.command[0]),
                    *self.command[1:],
                ],
                env=self.env,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C at the terminal is for the launcher alone
            )
        record = {
            "pid": self._child.pid,
            "start_ticks": start_ticks(self._child.pid),
            "started_from": self._fingerprint(),
        }
        self._record.write_text(json.dumps(record))

    def run_as_user(self, *command: str) -> None:
        """Runs a command to its end as this service's user."""
        done = subprocess.run(
            [*self.as_user(), self.program(command[0]), *command[1:]],
            env=self.env,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise ClusterError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")

    def program(self, name: str) -> str:
        """Where a program is that this service, or one of its kind, runs."""
        return find_program(name, self.env.get("PATH", ""))

    def as_user(self) -> list[str]:
        """The words that give a command this service's user and capabilities."""
        if not self.user:
            return []
        own = f"+{self.capabilities}"
        ambient = [f"--inh-caps={own}", f"--ambient-caps={own}", f"--bounding-set=-all,{own}"]
        return [
            find_program("setpriv"),
            f"--reuid={self.user}",
            f"--regid={self.user}",
            "--clear-groups",
            *(ambient if self.capabilities else []),
        ]

    def wait_ready(self, timeout_s: float = PATIENCE_S) -> None:
        """Waits until it answers; says at once when it died instead."""
        try:
            wait_for(lambda: self.ready() or not self.alive, timeout_s, self.name)
        except Waited:
            raise ClusterError(
                f"{self.name} does not answer after {timeout_s:g} s{self._story()}"
            ) from None
        self.require_alive()

    def require_alive(self) -> None:
        """A server may answer before it has found the fault that ends it."""
        if not self.alive:
            raise ClusterError(f"{self.name} ended right after its start{self._story()}")

    def _story(self) -> str:
        tail = "\n".join("    " + line for line in self.log_text().splitlines()[-8:])
        return f"; log: {self.log}\n{tail}"

    def log_text(self) -> str:
        """All that it has logged; its plain output where it never opened its log."""
        for path in (self.log, self.output):
            with contextlib.suppress(OSError):
                text = path.read_text(errors="replace")
                if text:
                    return text
        return ""

    def news(self) -> Callable[[], str]:
        """`said = service.news()`: said() is what it has logged since."""
        before = len(self.log_text())
        return lambda: self.log_text()[before:]

    def wait_log(self, part: str) -> None:
        wait_for(lambda: part in self.log_text(), what=f"'{part}' in {self.log}")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Sends a signal; for SIGKILL also waits until the process is gone."""
        pid = self.pid
        if pid is None:
            raise ClusterError(f"{self.name} does not run, so signal {number} has nobody to go to")
        processes.send(pid, number)
        if number == signal.SIGKILL:
            wait_for(lambda: not self.alive and _threads(pid) <= 1, what=f"{self.name} to die")

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """It hangs for the block, and goes on."""
        self.kill(signal.SIGSTOP)
        try:
            yield
        finally:
            self.kill(signal.SIGCONT)

    def terminate(self) -> None:
        """Asks it to end and does not wait; that it has just ended is as good."""
        pid = self.pid
        if pid is not None:
            processes.send(pid, signal.SIGTERM)

    def stop(self, timeout_s: float = 5.0) -> None:
        """Asks it to end, insists after timeout_s."""
        self.terminate()
        try:
            wait_for(lambda: not self.alive, timeout_s)
        except Waited:
            with contextlib.suppress(ClusterError):  # it ended at last
                self.kill(signal.SIGKILL)
        self._record.unlink(missing_ok=True)

    def restart(self) -> None:
        self.stop()
        self.start()


def leftovers(state: Path, slurm_conf: Path, but: Collection[int] = ()) -> list[int]:
    """Living processes of this cluster, recorded or not: services, slurmstepds, and jobs.

    Without `but` and what descends from those, by one look: what ends meanwhile is no orphan.
    """
    # this program and all it runs under: never a target, even inside a job's shell
    spared = {os.getpid(), *processes.ancestors(os.getpid())}
    mark = f"{MARK}={state}".encode()
    conf = f"SLURM_CONF={slurm_conf}".encode()
    parents: dict[int, int] = {}
    found: set[int] = set()
    for pid in processes.all_pids():
        parent = processes.parent(pid)
        if parent is None or pid in spared:
            continue
        parents[pid] = parent
        variables = processes.environment(pid)
        is_job = conf in variables and any(v.startswith(b"SLURM_JOB_ID=") for v in variables)
        if mark in variables or is_job or _is_stepd_of(pid, state):
            found.add(pid)
    found |= {pid for pid in parents if _descends(pid, parents, found)}
    return sorted(p for p in found if p not in but and not _descends(p, parents, but))


def _descends(pid: int, parents: Mapping[int, int], roots: Collection[int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid in roots:
            return True
    return False


def _is_stepd_of(pid: int, state: Path) -> bool:
    """A slurmstepd's title overwrites its environment; its open log still tells whose it is."""
    files = processes.open_files(pid) if processes.name(pid) == "slurmstepd" else []
    return any(file.startswith(f"{state}/") for file in files)
