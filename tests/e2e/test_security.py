"""The threats of slurm-plugins/SECURITY.md, each tried; what other tests try is named there."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import json
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import ORDINARY_USER, Cluster, ClusterError, Node, processes, wait_for
from tests.cluster.config import service_user
from tests.cluster.ports import free_port
from tests.e2e.jobs import alone
from tests.e2e.marking import client, say_outside
from tests.e2e.outcome import (
    admin_comment,
    apart_from_launch,
    comment,
    joulemarkctl,
    outcome,
    record_dir,
    record_file,
)
from tests.peers.peer import Peer
from tests.peers.secret import secret as write_secret

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")

USER = ORDINARY_USER
UID = pwd.getpwnam(USER).pw_uid
DAC_READ_SEARCH = 1 << 2
SECRET = "battery staple horse"  # IPMI takes 20 characters at most


def run_job(cluster: Cluster, *options: str, user: str | None = None) -> int:
    return alone(cluster, "srun sleep 0.5", *options, user=user)


def assert_charged(cluster: Cluster, job: int) -> None:
    """100 W over its time, all of it seen."""
    done = outcome(cluster, job)
    (account,) = done.accounts().values()
    assert done.energy_j() == pytest.approx(100 * account.seconds, abs=1)
    assert apart_from_launch(account)[0] == 0


# -- what the daemon may do ----------------------------------------------------------------


def test_the_daemon_has_one_capability_and_gains_none(steady: Cluster) -> None:
    daemon = steady.node("n1").daemon
    lines = processes.read(daemon.pid, "status").decode().splitlines()
    status = dict(line.split(":\t") for line in lines)
    assert status["Uid"].split()[0] == str(pwd.getpwnam(service_user()).pw_uid) != "0"
    for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == DAC_READ_SEARCH, name
    assert status["NoNewPrivs"] == "1"


def test_the_units_rights_are_those(steady: Cluster) -> None:
    lines = unit(steady).read_text().splitlines()
    for line in (
        "User=slurm",
        "AmbientCapabilities=CAP_DAC_READ_SEARCH",
        "CapabilityBoundingSet=CAP_DAC_READ_SEARCH",
        "NoNewPrivileges=yes",
    ):
        assert line in lines


def test_a_stop_keeps_records_that_wait_and_no_failure_is_the_last(steady: Cluster) -> None:
    """Those beside the socket, and the list of what is not in the saved ledger."""
    head, service = unit(steady).read_text().split("[Service]")
    assert "\nStartLimitIntervalSec=0\n" in head
    assert "\nRestart=always\n" in service
    assert "\nRuntimeDirectoryPreserve=yes\n" in service
    if shutil.which("systemd-analyze"):
        subprocess.run(["systemd-analyze", "verify", unit(steady)], check=True)


def unit(cluster: Cluster) -> Path:
    return cluster.options.build.slurm_prefix / "share" / "joulemark" / "joulemarkd.service"


def test_its_memory_is_closed_to_its_own_user(steady: Cluster) -> None:
    """Other daemons of SlurmUser cannot take secrets out of it, nor does a core hold them."""
    pid = steady.node("n1").daemon.pid
    with pytest.raises(ClusterError, match="Permission denied"):
        steady.run(["cat", f"/proc/{pid}/environ"], user=service_user())
    with pytest.raises(ClusterError, match="Permission denied"):
        steady.run(["head", "-c1", f"/proc/{pid}/mem"], user=service_user())


def test_a_sites_script_gets_no_capability(steady: Cluster, shared: Path) -> None:
    seen = shared / "capabilities"
    script = f"grep Cap /proc/self/status > {seen}; while sleep 0.5; do echo 100; done"
    command = {"name": "script", "type": "exec", "command": script, "every": "line"}
    with steady.node("n1").configured(instruments=[command]):
        text = wait_for(lambda: seen.exists() and seen.read_text(), what="the script to run")
        found = dict(line.split(":\t") for line in text.splitlines())
        for name in ("CapPrm", "CapEff", "CapAmb"):
            assert int(found[name], 16) == 0, name


# -- the socket ----------------------------------------------------------------

FLOOD = """
import resource
links = [connect() for _ in range(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 50)]
print(len(links), flush=True)
time.sleep(600)
"""


class Flood(Peer):
    """A user who opens as many connections as he may have files, or calls without a pause."""

    def __init__(
        self, cluster: Cluster, folder: Path, program: str = FLOOD, name: str = "flood"
    ) -> None:
        self.node, self.log_file = cluster.node("n1"), folder / f"{name}.log"
        self.program = client(cluster, name, program).split()

    def command(self) -> list[object]:
        group = pwd.getpwnam(USER).pw_gid
        user = ("setpriv", f"--reuid={UID}", f"--regid={group}", "--clear-groups")
        user += ("--pdeathsig", "KILL")  # another user's is forgotten
        return ["prlimit", "--nofile=20000", *user, *self.program, self.node.socket]

    def ready(self) -> bool:
        return self.log().endswith("\n")


def test_a_users_connections_hold_nobody_up(steady: Cluster, shared: Path) -> None:
    """Jobs are accounted, marks of others are what may wait."""
    with Flood(steady, shared) as flood:
        assert int(flood.log()) > 5000
        assert_charged(steady, run_job(steady))
        assert "further ones are refused" in steady.node("n1").daemon.log_text()


CALLS = """
import itertools
for calls in itertools.count(1):
    connect().close()
    if calls == 1000:
        print(calls, flush=True)
"""


def test_a_users_calls_do_not_keep_slurm_out(steady: Cluster, shared: Path) -> None:
    """They fill the queue of those who wait to be let in; Slurm's processes have one of theirs."""
    with contextlib.ExitStack() as stack:
        for number in range(4):
            stack.enter_context(Flood(steady, shared, CALLS, f"calls{number}"))
        for _ in range(3):
            assert_charged(steady, run_job(steady))


NONSENSE = """
link = connect()
for number in range(1000):
    link.send(f"nonsense{number} quiet=1".encode())
print(ask(link, "status"))
"""


def test_a_users_packets_do_not_fill_the_log(steady: Cluster) -> None:
    node = steady.node("n1")
    said = node.daemon.news()
    answer = say_outside(steady, client(steady, "nonsense", NONSENSE), USER)
    assert answer.startswith("ok"), "all of them were heard"
    assert "unknown%20request" not in said()


# -- records ----------------------------------------------------------------


def forged(cluster: Cluster, job: int) -> str:
    """A sound record of a job that never was, cheaper than any."""
    done = outcome(cluster, run_job(cluster))
    record = done.records["n1"]
    record["JobIDRaw"] = job
    return json.dumps(record)


@pytest.fixture
def open_records(steady: Cluster) -> Iterator[Path]:
    """A record folder that a careless administrator has opened to everybody."""
    folder = record_dir(steady)
    folder.chmod(0o777)
    try:
        yield folder
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder / "rejected", ignore_errors=True)


def as_user(path: Path, text: str) -> None:
    path.write_text(text)
    os.chown(path, UID, UID)


def merge(cluster: Cluster) -> str:
    """Tried as slurmctld does, as its user; why files were rejected, by this merge or another."""
    words = ["setpriv", f"--reuid={service_user()}", "--clear-groups", "joulemark", "merge"]
    done = subprocess.run(
        [*words, "--wait", "0"], env=cluster.env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode in (0, 1), done.stderr  # 1: it has rejected some
    log = record_dir(cluster) / "rejected" / "rejected.log"
    return log.read_text() if log.exists() else done.stderr


def test_a_user_cannot_put_a_record_there(steady: Cluster) -> None:
    outcome(steady, run_job(steady))
    for folder in ("", "merged", "comments"):
        path = record_dir(steady) / folder / "forged"
        with pytest.raises(ClusterError, match="Permission denied"):
            steady.run(["touch", str(path)], user=USER)


def test_a_forged_record_is_refused_where_he_can(steady: Cluster, open_records: Path) -> None:
    job = 4_000_001
    path = record_file(steady, job, "n1", folder="")
    as_user(path, forged(steady, job))
    assert f"belongs to user {UID}" in merge(steady)
    assert not record_file(steady, job, "n1").exists() and not path.exists()
    assert (open_records / "rejected" / path.name).exists()


def test_a_link_to_a_record_is_refused(steady: Cluster, open_records: Path, shared: Path) -> None:
    """Else he could have another's file read, or change it after it was looked at."""
    job = 4_000_002
    as_user(shared / "mine.json", forged(steady, job))
    path = record_file(steady, job, "n1", folder="")
    path.symlink_to(shared / "mine.json")
    assert "a link: must be a plain file" in merge(steady)
    assert not record_file(steady, job, "n1").exists()


def test_a_pipe_does_not_hold_the_merge_up(steady: Cluster, open_records: Path) -> None:
    os.mkfifo(record_file(steady, 4_000_003, "n1", folder=""))
    assert "no plain file" in merge(steady)


def test_a_planted_link_is_not_written_through(
    steady: Cluster, open_records: Path, shared: Path
) -> None:
    """At every name that the next jobs' records have on their way."""
    victim = shared / "victim"
    victim.write_text("untouched")
    os.chown(victim, pwd.getpwnam(service_user()).pw_uid, -1)
    first = outcome(steady, run_job(steady)).job
    for job in range(first + 1, first + 4):
        for name in ("{}.json", ".{}.json", ".{}.json.tmp"):
            link = open_records / name.format(f"{steady.options.name}.{job}.n1")
            link.symlink_to(victim)
            os.chown(link, UID, UID, follow_symlinks=False)
    try:
        job = run_job(steady)
        steady.wait_job(job)

        def merged() -> bool:
            merge(steady)
            return record_file(steady, job, "n1").exists()

        wait_for(merged, what="the record", poll_s=0.5)
        assert victim.read_text() == "untouched"
    finally:
        for path in open_records.iterdir():
            if path.is_symlink():
                path.unlink()


def test_a_planted_outbox_is_not_sent_on(steady: Cluster) -> None:
    """The socket's folder may be one where others can write, such as /tmp."""
    node, job = steady.node("n1"), 4_000_004
    text = forged(steady, job)
    outbox = Path(f"{node.socket}.outbox")
    node.daemon.stop()
    shutil.rmtree(outbox, ignore_errors=True)
    outbox.mkdir()
    os.chown(outbox, UID, UID)
    try:
        as_user(outbox / f"{steady.options.name}.{job}.n1.json", text)
        node.daemon.start()
        assert_charged(steady, run_job(steady))
        assert not record_file(steady, job, "n1").exists()
        assert not record_file(steady, job, "n1", folder="").exists()
        assert f"outbox {outbox}: cannot be used" in node.daemon.log_text()
    finally:
        shutil.rmtree(outbox)
        node.daemon.stop()


def test_a_log_that_is_a_link_is_not_written(steady: Cluster, shared: Path) -> None:
    victim = shared / "victim.log"
    victim.write_text("untouched")
    victim.chmod(0o666)
    (shared / "log").symlink_to(victim)
    with steady.node("n1").configured(log_file=str(shared / "log")):
        assert_charged(steady, run_job(steady))
    assert victim.read_text() == "untouched"


def test_the_comment_is_not_his_to_change(steady: Cluster) -> None:
    """Neither before its job begins nor after its end; who may change it needs the same words."""
    waits = steady.sbatch("--hold", "--wrap", "true", user=USER)
    ended = run_job(steady, user=USER)
    text = comment(steady, outcome(steady, ended).job)
    of_ended = ["sacctmgr", "-i", "modify", "job", "where", f"jobid={ended}", "set"]
    changes = [["scontrol", "update", f"jobid={waits}"], of_ended]
    for change in changes:
        with pytest.raises(ClusterError, match="permission denied"):
            steady.run([*change, "AdminComment=0 J"], user=USER)
    assert comment(steady, ended) == text
    for change in changes:
        steady.run([*change, "AdminComment=0 J"])
    assert text not in admin_comment(steady, ended)


def test_a_jobs_environment_changes_nothing(steady: Cluster, shared: Path) -> None:
    """A configuration and a socket of his own: his marks find nobody, his energy is as it is."""
    fake = shared / "joulemark.yaml"
    fake.write_text("cluster: fake\nsocket: /nowhere\n")
    lies = f"--export=ALL,JOULEMARK_CONFIG={fake},JOULEMARK_SOCKET=/nowhere,SLURMD_NODENAME=n2"
    assert_charged(steady, run_job(steady, lies, user=USER))


# -- secrets ----------------------------------------------------------------


@pytest.fixture
def shared(steady: Cluster) -> Iterator[Path]:
    """A folder that every user reaches and the daemon's writes."""
    folder = steady.state / "security"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def with_secrets(secret: Path) -> list[dict[str, object]]:
    """Every instrument that takes a secret, asking where nobody answers."""
    host = "127.0.0.1"
    user = {"user": "reader", "password_file": str(secret), "timeout_s": 1}
    return [
        {"name": "mqtt", "type": "mqtt", "host": host, "port": free_port(), "topic": "t", **user},
        {"name": "ipmi", "type": "ipmi", "host": host, **user},
        {"name": "redfish", "type": "redfish", "url": f"https://{host}:{free_port()}", **user},
        {
            **{"name": "snmp", "type": "snmp", "host": f"{host}:{free_port()}", "timeout_s": 1},
            **{"channels": [{"name": "power", "oid": "1.3.6.1.4.1.99999.1"}]},
            **{"community_file": str(secret)},
        },
        {
            **{"name": "prometheus", "type": "prometheus", "query": "up", "timeout_s": 1},
            **{"url": f"http://{host}:{free_port()}", "token_file": str(secret)},
        },
    ]


def keep(secret: Path, mode: int = 0o600) -> None:
    write_secret(secret, SECRET, mode)
    os.chown(secret, pwd.getpwnam(service_user()).pw_uid, -1)


def said_by(cluster: Cluster, node: Node) -> str:
    """All that others can see of it."""
    texts = [node.daemon.log_text(), node.daemon.output.read_text()]
    for pid in (node.daemon.pid, *processes.children(node.daemon.pid)):
        texts += [processes.read(pid, file).decode() for file in ("cmdline", "environ")]
    texts.append(cluster.run([joulemarkctl(cluster), "-N", node.name, "status"], check=False))
    return "\n".join(texts)


def test_secrets_are_in_no_process_list_log_or_error(steady: Cluster, shared: Path) -> None:
    secret = shared / "secret"
    keep(secret)
    said = steady.node("n1").daemon.news()
    instruments = [*steady.options.instruments, *with_secrets(secret)]
    with steady.node("n1").configured(instruments=instruments) as node:
        sick = {"mqtt", "ipmi", "redfish", "snmp", "prometheus"}

        def failing() -> set[str]:
            """Who has asked, secret in hand, and was not answered."""
            return set(re.findall(r": instrument (\w+) fails: ", said()))

        wait_for(lambda: failing() == sick, what=lambda: f"{sick} to fail; so do {failing()}")
        done = outcome(steady, run_job(steady))
        everything = said_by(steady, node) + json.dumps(done.records)
        assert SECRET not in everything and SECRET.split()[-1] not in everything


@pytest.mark.parametrize("fault", ["others may read it", "another user", "symbolic links"])
def test_a_secret_that_is_not_kept_is_refused(steady: Cluster, shared: Path, fault: str) -> None:
    secret = shared / "secret"
    keep(secret, 0o644 if fault == "others may read it" else 0o600)
    if fault == "another user":
        os.chown(secret, UID, UID)
    if fault == "symbolic links":
        secret.rename(shared / "real")
        secret.symlink_to(shared / "real")
    said = steady.node("n1").daemon.news()
    instruments = [*steady.options.instruments, with_secrets(secret)[0]]
    with steady.node("n1").configured(instruments=instruments) as node:

        def complaints() -> list[str]:
            return [line for line in said().splitlines() if f"{secret}: " in line]

        found = wait_for(complaints, what="the log to name the file")
        assert all(fault in line for line in found)
        assert SECRET not in node.daemon.log_text()
