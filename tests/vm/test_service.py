"""joulemarkd as a service of systemd's, under a real Slurm with cgroup v2: booted, killed, hung,
stopped, cut off, configured late. What was charged is kept, and nothing is charged twice."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import Waited, wait_for
from tests.vm import Machine
from tests.vm.conftest import CPUS, FULL_W, IDLE_W, RECORDS

SLOW_S = 300.0  # QEMU interprets each instruction
SERVICES = "munge slurmctld slurmd joulemarkd"
UNTIL_TOLD = "touch /tmp/$SLURM_JOB_ID; while test -e /tmp/$SLURM_JOB_ID; do sleep 0.2; done"
HANGS_S = 10  # instead of the unit's own WatchdogSec, which would take its time


@pytest.fixture(scope="module")
def node(machine: Machine) -> Machine:
    """Booted with all its services, and it takes jobs."""
    machine.reboot()
    wait_idle(machine)
    return machine


def until(machine: Machine, true: Callable[[], object], what: str) -> None:
    """Or what the machine says of its services."""
    try:
        wait_for(true, SLOW_S, what, 0.5)
    except Waited as late:
        units = machine.ssh(f"systemctl status --no-pager -n 15 {SERVICES}").stdout
        raise Waited(f"{late}\n{units}") from None


def wait_idle(machine: Machine) -> None:
    until(machine, lambda: machine.ssh("sinfo -h -o %T").stdout.strip() == "idle", "an idle node")


def wait_answer(machine: Machine) -> None:
    until(machine, lambda: machine.ssh("joulemarkctl status").returncode == 0, "joulemarkd")


def pid(machine: Machine) -> int:
    return int(machine.run("systemctl show --value -p MainPID joulemarkd"))


def sbatch(command: str) -> str:
    return f"sbatch --parsable -n1 -o /dev/null --wrap '{command}'"


def wait_begun(machine: Machine, job: int) -> None:
    until(machine, lambda: machine.ssh(f"test -e /tmp/{job}").returncode == 0, f"job {job} to run")


def submit(machine: Machine, command: str) -> int:
    job = int(machine.run(sbatch(command)))
    wait_begun(machine, job)
    return job


def started(machine: Machine) -> int:
    """A job that runs until end() is told of it; on one CPU of the node's."""
    return submit(machine, UNTIL_TOLD)


def end(machine: Machine, job: int) -> None:
    machine.run(f"rm /tmp/{job}")


def accounts(machine: Machine, job: int, folder: str = RECORDS) -> dict[str, dict]:
    """Of the job's record, by step, once it is there."""
    path = f"{folder}/machine.{job}.node1.json"
    until(machine, lambda: machine.ssh(f"test -e {path}").returncode == 0, path)
    record = json.loads(machine.run(f"cat {path}"))
    return {account["step"]: account for account in record["accounts"]}


def balanced_uj(machine: Machine) -> int:
    """What its one channel ever had; joulemarkctl exits with 1 where less or more is charged."""
    return int(machine.run("joulemarkctl books").split()[2])


def test_its_unit_leaves_it_one_capability(node: Machine) -> None:
    lines = node.run(f"cat /proc/{pid(node)}/status").splitlines()
    status = {key: value.strip() for key, value in (line.split(":", 1) for line in lines)}
    dac_read_search = f"{1 << 2:016x}"
    assert {status[f"Cap{which}"] for which in ("Prm", "Eff", "Bnd")} == {dac_read_search}
    assert status["NoNewPrivs"] == "1"


def test_systemd_takes_all_that_a_site_copies(node: Machine, prefix: Path) -> None:
    """The gateway's and receiver's units are looked at, not started: they need a broker."""
    share = prefix / "share" / "joulemark"
    node.run(
        f"cp {share}/joulemark-*.service /etc/systemd/system/ && "
        "ln -s /bin/true /usr/local/bin/joulemark && "
        "systemd-analyze verify joulemark-gateway.service joulemark-receive.service && "
        f"systemd-sysusers {share}/joulemark.sysusers"
    )


def test_its_user_may_ask_the_nodes_own_bmc(node: Machine, prefix: Path) -> None:
    rule = prefix / "share" / "joulemark" / "joulemark.rules"
    device = "stat -c '%U %G %a' /dev/ipmi0"
    node.run("modprobe -a ipmi_si ipmi_devintf; udevadm settle")
    assert node.run(device).split() == ["root", "root", "600"]
    node.run(f"cp {rule} /etc/udev/rules.d/70-joulemark.rules; udevadm control --reload")
    node.run("udevadm trigger --action=add --settle /dev/ipmi0")
    assert node.run(device).split() == ["root", "slurm", "660"]


def test_slurmd_begins_when_it_answers(node: Machine) -> None:
    stamp = "systemctl show --value -p ActiveEnterTimestampMonotonic"
    assert int(node.run(f"{stamp} joulemarkd")) < int(node.run(f"{stamp} slurmd"))
    assert node.run("systemctl show --value -p Type joulemarkd").strip() == "notify"


def test_it_knows_how_many_cores_slurm_gives_to_jobs(node: Machine) -> None:
    """By a program that must start with what a node with slurmd has."""
    until(node, lambda: f"\ncores: {CPUS}\n" in node.run("joulemarkctl status"), "cores")


def test_a_jobs_cpu_time_is_that_of_its_control_group(node: Machine) -> None:
    """Who works has left the process tree, and the job beside it sleeps where it is seen."""
    sleeping = started(node)
    burn = 'timeout 20 sh -c "while :; do :; done"'
    working = submit(
        node, f"(setsid {burn} >/dev/null 2>&1 &); touch /tmp/$SLURM_JOB_ID; sleep 20"
    )
    worked = accounts(node, working)
    end(node, sleeping)
    slept = accounts(node, sleeping)
    assert {part["cpu_time"] for one in (worked, slept) for part in one.values()} == {"cgroup2"}
    idle_w = IDLE_W / CPUS
    assert worked["job"]["average_w"] > idle_w + 0.6 * (FULL_W - IDLE_W) / CPUS
    assert slept["job"]["average_w"] < worked["job"]["average_w"] - 5
    balanced_uj(node)


def test_a_killed_daemon_goes_on_with_its_accounts(node: Machine) -> None:
    job, before = started(node), pid(node)
    node.run(f"kill -KILL {before}")
    wait_answer(node)
    assert pid(node) != before
    end(node, job)
    assert set(accounts(node, job)) == {"job", "extern", "batch"}
    balanced_uj(node)


def test_a_hung_daemon_is_started_anew(node: Machine) -> None:
    drop_in = "/run/systemd/system/joulemarkd.service.d/soon.conf"
    node.write(drop_in, f"[Service]\nWatchdogSec={HANGS_S}\n")
    node.run("systemctl daemon-reload; systemctl restart joulemarkd")
    wait_answer(node)
    job, before = started(node), pid(node)
    node.run(f"sleep {3 * HANGS_S}")
    assert pid(node) == before  # it shows that it lives
    node.run(f"kill -STOP {before}")
    until(node, lambda: pid(node) not in (0, before), "another daemon")
    wait_answer(node)
    node.run(f"rm {drop_in}; systemctl daemon-reload; systemctl restart joulemarkd")
    wait_answer(node)
    end(node, job)
    account = accounts(node, job)["job"]
    assert account["gap_seconds"] > 0
    balanced_uj(node)


def test_records_that_wait_outlive_a_stop_and_a_power_cut(node: Machine) -> None:
    outbox = "/var/lib/joulemark/outbox"
    node.run(f"mv {RECORDS} {RECORDS}.away")
    job = started(node)
    end(node, job)
    waiting = accounts(node, job, outbox)
    before_uj = balanced_uj(node)
    node.run("systemctl stop joulemarkd")
    assert accounts(node, job, outbox) == waiting
    node.run("sync")
    node.cut_power()
    wait_idle(node)
    wait_answer(node)
    assert accounts(node, job, outbox) == waiting
    node.run(f"mv {RECORDS}.away {RECORDS}")
    assert accounts(node, job) == waiting
    until(node, lambda: not node.run(f"find {outbox} -type f").strip(), "an empty outbox")
    assert balanced_uj(node) > before_uj


def test_a_job_under_way_at_a_power_cut_has_its_record(node: Machine) -> None:
    job = started(node)
    node.run("sleep 5; sync")  # the kernel would by itself, within half a minute
    node.cut_power()
    wait_answer(node)
    record = accounts(node, job)
    assert record["job"]["energy_uj"] > 0 and record["job"]["gap_seconds"] > 0
    node.run(f"scancel {job}")  # Slurm itself asks its node half an hour later
    wait_idle(node)
    assert accounts(node, job) == record
    balanced_uj(node)


def test_a_job_that_waits_for_a_reboot_pays_from_when_its_node_is_there_again(
    node: Machine,
) -> None:
    """Slurm's own reboot; the job is there before it."""
    node.reboot(f"scontrol reboot ASAP nextstate=RESUME node1 && {sbatch(UNTIL_TOLD)} >/root/job")
    job = int(node.run("cat /root/job"))
    wait_begun(node, job)
    end(node, job)
    account = accounts(node, job)["job"]
    assert account["start_ns"] > 1e9 * float(node.run("awk '/btime/ {print $2}' /proc/stat"))
    assert "while joulemarkd was" not in " ".join(account["notes"])
    balanced_uj(node)


def test_a_late_configuration_is_waited_for_and_holds_up_nobody(node: Machine) -> None:
    """As where its folder is mounted late; without it the unit fails, once a second."""
    file = "/etc/slurm/joulemark.yaml"
    node.run(f"mv {file} {file}.late; sync")
    node.reboot()
    wait_idle(node)
    failures = "systemctl show --value -p NRestarts joulemarkd"
    until(node, lambda: int(node.run(failures)) > 7, "more failures than systemd lets be")
    assert node.ssh("systemctl is-active joulemarkd").stdout.strip() == "activating"
    node.run(f"mv {file}.late {file}")
    wait_answer(node)
    balanced_uj(node)
