"""What is no kill: a full disk, a clock that steps, a reboot, a counter that starts again."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import time
import uuid
from pathlib import Path

from tests.chaos import jobs
from tests.chaos.books import (
    UJ,
    Charge,
    charged_beyond_the_truth,
    charged_twice,
    charges,
    lost_unstated,
    snapshot,
)
from tests.cluster import Cluster, ClusterError, Node, pause, processes, wait_for
from tests.disks import Unavailable, fill, small_disk
from tests.e2e.waveform import EPOCH_S, NS, STEADY, Waveform

HOUR_S = 3600
RECORD_S = 60.0
IN_MEMORY = "the ledger goes on in memory"


def wait_charged(cluster: Cluster, node: str, *wanted: jobs.Job) -> dict[int, Charge]:
    """The records of these jobs on the node, when they have ended and all are there."""
    jobs.wait_ended(cluster, list(wanted))
    ids = {job.id for job in wanted}
    wait_for(lambda: ids <= set(charges(cluster, node)), RECORD_S, f"records of jobs {ids}")
    return charges(cluster, node)


# -- a disk that fills up ------------------------------------------------------------------------


def disk_full(cluster: Cluster, dice: random.Random, true: Waveform) -> list[str]:
    """A job's whole life, its record too, while the ledger cannot be saved; then the daemon dies.

    Another job runs through all of it: it must not be charged again what the first one was.
    """
    go = [cluster.jobs_folder / f"full-{i}" for i in range(2)]
    node = cluster.node("n1")
    in_memory = node.daemon.log_text().count(IN_MEMORY)
    began_ns = time.time_ns()
    with small_disk(cluster.state / "small") as folder, cluster.changed():
        node.configure(state_dir=str(folder / "ledger"))
        long = jobs.start(cluster, dice, go[0], nodes=["n1"], has_step=True)
        filler = fill(folder)
        log = node.daemon.log_text
        wait_for(lambda: log().count(IN_MEMORY) > in_memory, what="the ledger's disk to be full")
        short = jobs.start(cluster, dice, go[1], nodes=["n1"], has_step=True)
        go[1].touch()
        wait_charged(cluster, "n1", short)
        node.daemon.kill(signal.SIGKILL)
        filler.unlink()
        node.daemon.start()
        go[0].touch()
        found = wait_charged(cluster, "n1", long, short)
        node.daemon.stop()
        used_j = true.energy_j(began_ns, time.time_ns())
        last = snapshot(folder / "ledger")
    assert last
    faults = [jobs.disturbance(cluster, job) for job in (long, short)]
    both = [found[job.id] for job in (long, short)]
    faults += charged_twice(both, true.energy_j)
    return [*filter(None, faults), *charged_beyond_the_truth(both, last, used_j)]


# -- a clock that steps --------------------------------------------------------------------------


def clock_step(cluster: Cluster, dice: random.Random, _: Waveform) -> list[str]:
    """The daemon's clock goes an hour ahead and back again while a job runs; a watt stays a watt.

    Only the daemon's: a library ahead of libc's shifts what it is told. Nobody else's clock moves.
    """
    node, go = cluster.node("n1"), cluster.jobs_folder / "step"
    began_ns = time.time_ns()
    clock = Clock(cluster.state / "clock")
    power = STEADY.instrument(cluster.state / "traces", name="stepped", **{"as": "power"})
    with cluster.changed():
        before = node.daemon.env
        node.daemon.env = {**before, **clock.env}
        try:
            ledger = str(cluster.state / "ledger" / "stepped")
            node.configure(instruments=[power], state_dir=ledger, period_s=0.2)
            job = jobs.submit(cluster, dice, go, nodes=["n1"], alone=True, has_step=True)
            jobs.wait_started(cluster, [job])
            for offset_s in (HOUR_S, 0, -HOUR_S, 0):
                pause(1.0)
                clock.set(offset_s)
            pause(1.0)
            go.touch()
            charge = wait_charged(cluster, "n1", job)[job.id]
            ended_ns = time.time_ns()
            node.daemon.stop()
        finally:
            node.daemon.env = before
    span = jobs.span_ns(cluster, job)
    assert span
    # what Slurm does before and after the script is the job's as well, and may take its time
    most_j = STEADY.energy_j(began_ns, ended_ns)
    faults = [jobs.disturbance(cluster, job), *lost_unstated(charge, span, STEADY.energy_j, 100)]
    if charge.energy_uj > most_j * UJ:
        faults.append(f"job {job.id}: {charge.energy_uj} uJ charged, {most_j:.1f} J were used")
    if charge.end_ns < charge.start_ns:
        faults.append(f"job {job.id}: its record ends before it begins")
    return [*filter(None, faults)]


class Clock:
    """A file with an offset, and the library that adds it to the real time a program is told."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        self.file, self.library = folder / "offset", folder / "clock_shim.so"
        self.set(0)
        source = Path(__file__).with_name("clock_shim.c")
        words = ["gcc", "-shared", "-fPIC", "-O1", "-o", self.library, source]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
        if done.returncode:
            raise ClusterError(f"{source} does not compile:\n{done.stderr}")

    @property
    def env(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library), "CLOCK_SHIM_FILE": str(self.file)}

    def set(self, offset_s: int) -> None:
        with self.file.open("r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("=q", offset_s * NS))
        self.file.chmod(0o644)


# -- a counter that starts again, and a node that does -------------------------------------------


def fresh_counter(cluster: Cluster, true: Waveform) -> dict[str, object]:
    """The same power, counted from now on: whole periods later, so that its phase stays."""
    periods = int((time.time() - EPOCH_S) // true.period_s)
    epoch = EPOCH_S + periods * true.period_s
    return true.instrument(cluster.state / "traces", epoch=epoch)


def counter_reset(cluster: Cluster, dice: random.Random, true: Waveform) -> list[str]:
    """While the daemon is dead its counter starts again: nobody knows that time's energy."""
    node, go = cluster.node("n2"), cluster.jobs_folder / "reset"
    job = jobs.start(cluster, dice, go, nodes=["n2"], alone=True, has_step=True)
    node.daemon.kill(signal.SIGKILL)
    pause(1.0)
    node.configure(instruments=[fresh_counter(cluster, true)])
    pause(1.0)
    go.touch()
    charge = wait_charged(cluster, "n2", job)[job.id]
    span = jobs.span_ns(cluster, job)
    assert span
    faults = [jobs.disturbance(cluster, job), *charged_twice([charge], true.energy_j)]
    most_w = max(power_w for _, power_w in true.points)
    if charge.gap_s < 1.0:
        faults.append(f"job {job.id}: a counter was reset, a gap of {charge.gap_s} s is stated")
    return [*filter(None, faults), *lost_unstated(charge, span, true.energy_j, most_w)]


def reboot(cluster: Cluster, dice: random.Random, true: Waveform) -> list[str]:
    """All of a node dies, and comes back with another boot id and a counter that starts again."""
    node, go = cluster.node("n2"), cluster.jobs_folder / "reboot"
    job = jobs.start(cluster, dice, go, nodes=["n2"], alone=True, has_step=True)
    for service in (node.slurmd, node.daemon):
        service.kill(signal.SIGKILL)
    job.excuse = "its node was rebooted"
    end_all_of(job, node)
    other_boot(cluster, node)
    node.configure(instruments=[fresh_counter(cluster, true)])
    # Slurm finds a dead node by SlurmdTimeout, minutes later; this is what it does then
    cluster.run(["scontrol", "update", "nodename=n2", "state=down", "reason=rebooted"])
    node.slurmd.start()
    cluster.run(["scontrol", "update", "nodename=n2", "state=resume"], check=False)
    charge = wait_charged(cluster, "n2", job)[job.id]
    faults = charged_twice([charge], true.energy_j)
    if not charge.gap_s:
        faults.append(f"job {job.id}: its node was rebooted, and no gap is stated")
    return faults


def end_all_of(job: jobs.Job, node: Node) -> None:
    """The job's processes and its slurmstepds, as a power cut ends them."""
    mark = f"SLURM_JOB_ID={job.id}".encode()
    own = [pid for pid in processes.all_pids() if mark in processes.environment(pid)]
    for pid in [*node.stepds(job.id).values(), *own]:
        processes.send(pid)
    wait_for(lambda: not node.stepds(job.id), what=f"job {job.id} to die")


def other_boot(cluster: Cluster, node: Node) -> None:
    """From its next start on the daemon sees another boot id, in a mount namespace of its own."""
    if os.geteuid() != 0:
        raise Unavailable("only root can give the daemon another boot id")
    real = "/proc/sys/kernel/random/boot_id"
    fake = cluster.state / "boot_id"
    fake.write_text(f"{uuid.uuid4()}\n")
    fake.chmod(0o644)
    daemon = node.daemon
    if daemon.user:
        script = f'mount --bind {fake} {real} && exec "$@"'
        as_user = [*daemon.as_user(), *daemon.command]
        daemon.command = ["unshare", "--mount", "sh", "-c", script, "sh", *as_user]
        daemon.user, daemon.capabilities = None, ""


EVENTS = {
    "disk full": disk_full,
    "clock stepped": clock_step,
    "counter reset": counter_reset,
    "node reboot": reboot,
}
