"""What an ordinary user can see of energy, tried as one (Platypus: fine power leaks secrets)."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.cluster import ORDINARY_USER, Cluster, ClusterError, wait_for
from tests.e2e.marking import client, say_outside
from tests.e2e.outcome import outcome, record_file
from tests.e2e.profiles import the_channel, wait_profile

USER = ORDINARY_USER
OTHER = "daemon"
SAMPLE_S = 0.02  # for a user's marks instruments are read no faster
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")

# Marks, wakes and questions without a pause, by every way that a process has.
GREEDY = """
from joulemark.regions import _client, BEGIN, END
links = [connect() for _ in range(8)]
end = time.monotonic() + 3
questions = 0
while time.monotonic() < end:
    _client.mark(BEGIN, "fast")
    _client.mark(END, "fast")
    os.write(_client.event, (1).to_bytes(8, sys.byteorder))
    if questions % 50 == 0:
        _client.last_energy()
    ask(links[questions % 8], "region_begin name=x")
    links[questions % 8].send(b"region_end name=x")
    links[questions % 8].recv(4096)
    ask(links[0], "status")
    questions += 1
print(json.dumps(questions))
"""

# A thousand questions a second, alone and then beside marks, which make ticks.
CURIOUS = """
from joulemark.regions import _client, BEGIN
link = connect()
shown = []
for marks in (False, True):
    times, questions, end = {}, 0, time.monotonic() + 2
    while time.monotonic() < end:
        if marks:
            _client.mark(BEGIN, "fast")
        answer = ask(link, "job_energy")
        fields = dict(word.split("=") for word in answer.split()[1:])
        times[int(fields["time_ns"])] = int(fields["energy_uj"])
        questions += 1
    shown.append([questions, sorted(times.items())])
print(json.dumps(shown))
"""

# A ring filled with nonsense, from a process that owns it.
HOSTILE = """
import random, struct
from joulemark import regions
client = regions._client
client.mark(regions.BEGIN, "mine")
end = time.monotonic() + 3
while time.monotonic() < end:
    at = random.randrange(0, regions.RING_SIZE - 4096)
    client.ring[at : at + 4096] = os.urandom(4096)
    struct.pack_into("@Q", client.ring, regions.HEAD, random.getrandbits(64))
    os.write(client.event, (1).to_bytes(8, sys.byteorder))
    time.sleep(0.001)
print(json.dumps("done"))
"""
HONEST = """
from joulemark import region
for _ in range(30):
    with region("honest"):
        time.sleep(0.1)
"""


def submit(cluster: Cluster, *options: str, user: str = USER) -> int:
    return cluster.sbatch("-w", "n1", *options, user=user)


def cannot_read(cluster: Cluster, path: Path, user: str = USER) -> None:
    assert path.exists()
    act = f"import os; p = {str(path)!r}; os.listdir(p) if os.path.isdir(p) else open(p, 'rb')"
    with pytest.raises(ClusterError, match="PermissionError"):
        cluster.run([sys.executable, "-c", act], user=user)


def test_nothing_makes_instruments_be_read_faster(steady: Cluster) -> None:
    done = outcome(steady, submit(steady, "--wrap", client(steady, "greedy", GREEDY)))
    questions = json.loads(steady.job_output(done.job))
    (account,) = done.accounts("batch").values()
    seconds = account.seconds
    assert questions > 100  # it was heard
    # beside those for marks: one a second, and those of Slurm's own questions
    assert account["samples"] <= 1.1 * seconds / SAMPLE_S + seconds + 20


def test_a_profile_is_no_finer_for_marks(steady: Cluster) -> None:
    command = client(steady, "greedy", GREEDY)
    done = outcome(steady, submit(steady, "--energy=profile,1000", "--wrap", command))
    with the_channel(wait_profile(steady, done.job)) as channel:
        times_s = channel["time_s"][:]
    gaps_s = times_s[1:-1] - times_s[:-2]  # the last is the job's end
    assert min(gaps_s) >= 0.9 * 0.1 - 1e-6  # profile_max_hz is 10


def test_who_asks_without_end_is_shown_no_finer_than_a_profile(steady: Cluster) -> None:
    done = outcome(steady, submit(steady, "--wrap", client(steady, "curious", CURIOUS)))
    alone, marking = json.loads(steady.job_output(done.job))
    assert alone[0] > 200 and marking[0] > 100  # it was heard, most often a thousand times
    assert len(alone[1]) <= 8  # its begin's and one a second: it makes no tick itself
    times_ns = [time_ns for time_ns, _ in alone[1] + marking[1]]
    gaps_s = [(b - a) / 1e9 for a, b in zip(times_ns, times_ns[1:]) if b > a]
    assert len(marking[1]) >= 5 and min(gaps_s) >= 0.1  # profile_max_hz is 10
    last_j = marking[1][-1][1] / 1e6
    assert 0 < last_j <= done.energy_j() + 0.01  # of what the job was charged in the end


def test_a_hostile_ring_spoils_its_own_regions_alone(steady: Cluster) -> None:
    honest = submit(steady, "-n1", "--wrap", client(steady, "honest", HONEST), user=OTHER)
    hostile = submit(steady, "-n1", "--wrap", client(steady, "hostile", HOSTILE))
    pid = steady.node("n1").daemon.pid
    (account,) = outcome(steady, honest).accounts("batch").values()
    (region,) = account["regions"]
    assert (region["name"], region["count"]) == ("honest", 30)
    assert 3 <= region["seconds"] <= account.seconds
    done = outcome(steady, hostile)
    (account,) = done.accounts("batch").values()
    assert json.loads(steady.job_output(hostile)) == "done"
    assert all(one["energy_uj"] <= account["energy_uj"] * 1.01 + 1 for one in account["regions"])
    assert steady.node("n1").daemon.pid == pid


def test_accounts_and_rings_of_others_are_out_of_reach(steady: Cluster) -> None:
    """Another user's job runs on the node; neither outside nor inside a job is it to be seen."""
    theirs = submit(steady, "-n1", "--wrap", "sleep 20", user=OTHER)
    wait_for(lambda: steady.node("n1").stepds(theirs), what="the other's job to run")
    verbs = ["read", "read scope=job", "books", "node", f"end job={theirs}", "close"]
    verbs += ["node_energy"]
    text = f"print(json.dumps([ask(connect(), verb) for verb in {verbs!r}]))"
    command = client(steady, "asks", text)
    inside = submit(steady, "-n1", "--wrap", command)
    outside = say_outside(steady, command, USER)
    outcome(steady, inside)
    for answers in (json.loads(outside), json.loads(steady.job_output(inside))):
        assert len(answers) == len(verbs)
        assert all(
            answer.startswith("error") and "not%20permitted" in answer for answer in answers
        )
    text = 'print(json.dumps([ask(connect(), verb) for verb in ("marks", "job_energy")]))'
    stray = client(steady, "stray", text)
    for answer in json.loads(say_outside(steady, stray, USER)):
        assert answer.startswith("error") and "no%20job%20step" in answer
    status = client(steady, "status", 'print(json.dumps(ask(connect(), "status")))')
    words = json.loads(say_outside(steady, status, USER))
    assert "watts" not in words and "energy" not in words
    steady.run(["scancel", str(theirs)])
    outcome(steady, theirs)


def test_ledger_records_and_drafts_of_profiles_cannot_be_read(steady: Cluster) -> None:
    job = submit(steady, "--energy=profile", "--wrap", "sleep 4")
    state = steady.node("n1").ledger
    (draft,) = wait_for(lambda: list(state.glob(f"profile.{job}.*")), what="the profile to begin")
    for path in (draft, state / "ledger.sqlite"):
        cannot_read(steady, path)
    outcome(steady, job)
    cannot_read(steady, record_file(steady, job, "n1"))
    merged = steady.state / "records" / "profiles" / "merged"
    path = merged / f"{steady.options.name}.{job}.n1.profile.jsonl"
    wait_for(path.exists, what=f"{path}")
    cannot_read(steady, path)


def test_the_ring_is_the_only_door(steady: Cluster) -> None:
    """What a process is given holds its own marks: no counter, no other process's memory."""
    text = """
from joulemark import regions
client = regions._client
client.mark(regions.BEGIN, "only")
ring = client.ring
names = ring[regions.FIRST_NAME :].replace(bytes(1), b"")
links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
(memory,) = [link for link in links if "memfd:joulemark" in os.path.realpath(link)]
try:
    os.truncate(memory, 1)
    sealed = False
except OSError:
    sealed = True
print(json.dumps([names.decode(), len(ring), sealed]))
"""
    done = outcome(steady, submit(steady, "--wrap", client(steady, "door", text)))
    names, size, sealed = json.loads(steady.job_output(done.job))
    assert names == "only" and sealed
    assert size == 4096 + 16384 * 32 + 4096 * 96
