"""What a test leaves behind is named, whatever it is, and gone for the next one."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import signal
import subprocess

from tests.cluster import Cluster, wait_for
from tests.e2e.outcome import record_dir
from tests.left_behind import accounts, is_stopped, left_behind, remains
from tests.peers.joulemarkd import ask

JOB = 4243


def test_what_a_test_leaves_behind_is_named_and_put_right(cluster: Cluster) -> None:
    node = cluster.node("n1")
    assert left_behind(cluster) == []
    assert ask(node.socket, f"open job={JOB} step=0") == "ok"  # of this process, which lives on
    wait_for(lambda: accounts([node]), what="the account to be on disk")
    record_dir(cluster).chmod(0o555)  # so nobody brings it there
    record = node.ledger / "outbox" / f"{cluster.options.name}.{JOB}.n1.json"
    record.write_text("{}")
    point = cluster.state / "left"
    point.mkdir(exist_ok=True)
    made = subprocess.run(["mount", "-t", "tmpfs", "left", str(point)], capture_output=True)
    env = {"SLURM_JOB_ID": str(JOB), "SLURM_CONF": str(cluster.slurm_conf)}
    with subprocess.Popen(["/bin/sleep", "600"], env=env) as stray:
        try:
            node.slurmd.kill(signal.SIGSTOP)
            wait_for(lambda: is_stopped(node.slurmd), what="slurmd to stop")
            found = "\n".join(left_behind(cluster, patience_s=2))
            stray.wait(10)
        finally:
            stray.kill()
            record_dir(cluster).chmod(0o755)
    assert "slurmd-n1 is stopped" in found
    for step in ("job", "0"):
        assert f"n1: open account of job {JOB}, {step}" in found
    assert f"file in the outbox: {record}" in found
    assert made.returncode or f"mount: {point}" in found
    assert os.geteuid() or not made.returncode
    assert f"process {stray.pid}: /bin/sleep 600" in found
    assert remains(cluster) == []
