"""`joulemark top` as a user without rights and as an operator see it, beside what sacct tells."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator

import pytest

from tests.cluster import ORDINARY_USER, Cluster, ClusterError, processes, wait_for
from tests.e2e.jobs import Flag, alone, wait_step
from tests.e2e.outcome import assert_whole, ended_well
from tests.e2e.test_energy import current_watts
from tests.e2e.waveform import NS

USER = ORDINARY_USER if os.geteuid() == 0 else None
OTHER = "daemon"
STEP = "joulemark-top"
TABLE_S = 60.0


def top(cluster: Cluster, *words: str, user: str | None = USER) -> dict:
    return json.loads(cluster.run(["joulemark", "top", "--once", "--json", *words], user=user))


def steps_of_ours() -> list[int]:
    """Programs that a `joulemark top` has started, here or on the nodes."""
    started = (STEP, "--look-on", "node --every")
    words = {pid: " ".join(processes.command(pid)) for pid in processes.all_pids()}
    return [pid for pid, text in words.items() if any(word in text for word in started)]


class Terminal:
    """A user's, in which one command runs."""

    def __init__(self, cluster: Cluster, *words: str) -> None:
        ids = [f"--reuid={USER}", f"--regid={USER}", "--init-groups"]
        self.seen = ""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 132, 0, 0))
            os.chdir(cluster.jobs_folder)
            stale = ("COLUMNS", "LINES")  # readline leaves them in pytest's environment
            env = {key: value for key, value in cluster.env.items() if key not in stale}
            env["TERM"] = "xterm"
            words = ("setpriv", *ids, *words) if USER else words
            os.execvpe(words[0], words, env)

    def look(self, pattern: str) -> re.Match[str]:
        """Waits until it is there, in what was not looked for before."""
        deadline = time.monotonic() + TABLE_S
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < deadline, self.seen
            self._read()
        self.seen = self.seen[found.end() :]
        return found

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def status(self) -> int:
        """After its end."""
        with contextlib.suppress(OSError):
            while True:
                self._read()
        os.close(self._fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> None:
        if select.select([self._fd], [], [], 0.1)[0]:
            self.seen += re.sub(r"\x1b\[[\d;?]*\w", "", os.read(self._fd, 65536).decode())


@pytest.fixture
def two(steady: Cluster) -> Iterator[tuple[int, int, Flag]]:
    """Two jobs of the user, each with a step and a node for itself, 100 W each, until the flag."""
    end = Flag(steady, "top")
    script = f"srun sh -c '{end.wait}'"
    first, second = (alone(steady, script, node=node, user=USER) for node in ("n1", "n2"))
    wait_step(steady, first, "0", "n1")
    wait_step(steady, second, "0", "n2")
    yield first, second, end
    end.set()


def test_two_jobs_are_watched_until_they_end(steady: Cluster, two: tuple[int, int, Flag]) -> None:
    first, second, end = two
    once = top(steady)
    assert [job["job_id_raw"] for job in once["jobs"]] == [first, second]
    for job in once["jobs"]:
        assert job["power_w"] == pytest.approx(100, rel=0.01)
        assert job["nodes_told"] == ["n1" if job["job_id_raw"] == first else "n2"]
    assert not wait_gone()

    live = Terminal(steady, "joulemark", "top", "--every", "1")
    seen_j = []
    while len(set(seen_j)) < 5:  # it moves; on a busy machine it is drawn twice of one reading
        row = live.look(rf"\r?\n{first} +wrap +1 +\S+ +100 +\S+ +100 +([\d.]+) ")
        seen_j.append(float(row[1]))
        assert live.look(rf"\r?\n{second} ") and live.look(r"\r?\nall +200 ")
    assert seen_j == sorted(seen_j)
    end.set()
    last_j = {}
    for _ in range(2):
        found = live.look(r"job (\d+) ended; it used ([\d.]+) J \+- ([\d.]+) J \(k=2\)")
        last_j[int(found[1])] = float(found[2])
    assert live.status() == 0 and not wait_gone()

    for job in (first, second):
        done = ended_well(steady, job)
        assert last_j[job] == pytest.approx(done.sacct_j(), abs=1)
        assert_whole(done)
        rows = steady.sacct(job, "JobID,JobName,ConsumedEnergyRaw")
        watched = [int(row["ConsumedEnergyRaw"] or 0) for row in rows if row["JobName"] == STEP]
        assert len(watched) == 2 and max(watched) <= 100  # no more than before it said what it is
        own = done.accounts("0")
        (account,) = own.values()
        assert account.energy_j >= 100 * (account.seconds - 2)


def wait_gone() -> list[int]:
    """Those of ours that are there though they had the time to end."""
    with contextlib.suppress(ClusterError):
        wait_for(lambda: not steps_of_ours(), 10, "what was started to end")
    return steps_of_ours()


def test_ctrl_c_ends_it_alone(steady: Cluster, two: tuple[int, int, Flag]) -> None:
    first, second, end = two
    live = Terminal(steady, "joulemark", "top", str(first), "--every", "0.5")
    live.look(rf"\r?\n{first} .* 100 ")
    live.type("\x03")
    assert live.status() == 0 and not wait_gone()
    killed = Terminal(steady, "joulemark", "top", "--every", "0.5")
    killed.look(r"\r?\nall +200 ")
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.status() == -signal.SIGKILL and not wait_gone()
    end.set()
    for job in (first, second):
        assert_whole(ended_well(steady, job))


def test_a_job_of_two_nodes_is_summed(steady: Cluster) -> None:
    end = Flag(steady, "wide")
    job = steady.sbatch("-N2", "--exclusive", "--wrap", f"srun sh -c '{end.wait}'", user=USER)
    wait_step(steady, job, "0", "n2")
    (one,) = top(steady)["jobs"]
    begun_s = time.time()
    assert one["nodes_told"] == ["n1", "n2"] and one["power_w"] == pytest.approx(200, rel=0.01)
    end.set()
    done = ended_well(steady, job)
    ended_s = max(account["end_ns"] for account in done.accounts().values()) / NS
    assert 0 <= done.energy_j() - one["energy_j"] <= 200 * (ended_s - begun_s + 3)
    assert_whole(done, within_j=0.02)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")
def test_another_users_job_is_not_shown(steady: Cluster, two: tuple[int, int, Flag]) -> None:
    first, second, end = two
    with pytest.raises(ClusterError, match=f"job {first}: srun: .*[Aa]ccess/permission denied"):
        top(steady, str(first), user=OTHER)
    assert top(steady, user=OTHER)["jobs"] == []
    end.set()
    for job in (first, second):
        ended_well(steady, job)


def test_an_operator_sees_nodes(steady: Cluster) -> None:
    for node in steady.nodes:
        wait_for(lambda node=node: current_watts(steady, node) == "100", what=f"100 W on {node}")
    found = {one["node"]: one for one in top(steady, "--nodes", "all", user=None)["nodes"]}
    assert found.keys() == {"n1", "n2"}
    assert all(one["power_w"] == 100 and one["charged_w"] is None for one in found.values())
    asked = top(steady, "--nodes", "all", "--split", user=None)
    assert asked["silent"] == {} and not wait_gone()
    for one in asked["nodes"]:
        assert one["jobs"] == 1  # the visit
        assert one["power_w"] == pytest.approx(100, rel=0.01)
        assert one["charged_w"] + one["unallocated_w"] == pytest.approx(100, rel=0.01)
    wait_for(lambda: not steady.run(["squeue", "-h"]), what="the visits to end")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")
def test_a_user_is_not_told_what_others_use(steady: Cluster) -> None:
    with pytest.raises(ClusterError, match="not permitted: only root and `privileged_users`"):
        top(steady, "--nodes", "n1", "--split", user=USER)
    wait_for(lambda: not steady.run(["squeue", "-h"]), what="the visit to end")
