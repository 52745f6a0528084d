"""The site's side on a real cluster: sacct's own JSON, requeued jobs, usage, other stores."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import databases
import pytest

from tests.cluster import Cluster, wait_for
from tests.e2e.jobs import alone, requeue, requeuing
from tests.e2e.outcome import Outcome, outcome, record_dir


@pytest.fixture(scope="module")
def done(steady: Cluster) -> Outcome:
    """One job on two nodes that has ended and is merged."""
    return outcome(steady, steady.sbatch("-N2", "--exclusive", "--wrap", "srun sleep 0.5"))


def test_json_is_sacct_s_own_with_an_object_more(steady: Cluster, done: Outcome) -> None:
    words = ["sacct", "--json", "-j", str(done.job)]

    def both_of_one_moment() -> tuple[dict, dict] | None:
        """slurmdbd may be told of a job's start after its end."""
        before, ours, after = (
            json.loads(steady.run(asked)) for asked in (words, ["joulemark", *words], words)
        )
        return (after, ours) if before == after else None

    wait_for(lambda: json.loads(steady.run(words))["jobs"][0]["working_directory"])
    theirs, ours = wait_for(both_of_one_moment)
    for answer in (theirs, ours):
        answer["meta"].pop("command", None)  # 23.11 and later: how sacct was called
    for job in ours["jobs"]:
        energy = job.pop("joulemark")
        assert energy["energy_uj"] == done.energy_uj()
        for step in job["steps"]:
            name = str(step["step"]["id"]).rpartition(".")[2]
            assert step.pop("joulemark")["energy_uj"] == done.energy_uj(name)
    assert ours == theirs


def test_earlier_run_of_a_requeued_job_keeps_its_energy(steady: Cluster) -> None:
    with requeuing(steady) as cluster:
        script = "[ $SLURM_RESTART_COUNT ] || sleep 60; sleep 1"
        job = cluster.sbatch("--requeue", "--exclusive", "--wrap", script)
        cluster.wait_running(job)
        wait_for(lambda: len(cluster.sacct(job, "JobID")) > 1, what="the job's first step")
        requeue(cluster, job)

        def charged(*options: str) -> list[dict[str, str]]:
            """Rows that have an energy."""
            rows = cluster.sacct(job, "State,Energy,Run", "-X", *options, ours=True)
            return [row for row in rows if row["Energy"]]

        wait_for(lambda: len(charged("-D")) == 2, what="both runs' records")
        last = outcome(cluster, job)  # the first run's record would do for it before
        first, second = charged("-D")
        assert (first["State"], first["Run"]) == ("REQUEUED", "0")
        assert (second["State"], second["Run"]) == ("COMPLETED", "1")
        assert float(second["Energy"]) == pytest.approx(last.energy_j(), abs=1e-6)
        assert charged() == [second]


def test_usage_knows_who_ran_the_job_and_where(steady: Cluster, done: Outcome) -> None:
    """EpilogSlurmctld's environment told it at the merge."""
    words = ["joulemark", "report", "usage", "--by", "user,partition", "--format", "json"]
    (owner,) = steady.sacct(done.job, "User,Partition", "-X")
    groups = json.loads(steady.run(words))
    (group,) = (g for g in groups if [g["user"], g["partition"]] == list(owner.values()))
    assert group["energy_uj"] >= done.energy_uj() and group["energy_error_j"] > 0


def test_overhead_of_a_shared_channel_comes_with_its_lines(steady: Cluster) -> None:
    """The gateway's lines are later than the job: a later merge takes them."""
    job = alone(steady, "sleep 2", "-n1")
    done = outcome(steady, job)
    (account,) = done.accounts().values()
    shared = record_dir(steady) / "shared"
    shared.mkdir(exist_ok=True)
    file = shared / "rack.jsonl"
    span_ns = account["end_ns"] - account["start_ns"]
    try:
        for time_ns, energy_uj in ((0, 0), (span_ns // 2, 600), (span_ns, 1000)):
            line = {"time_ns": account["start_ns"] + time_ns, "energy_uj": energy_uj * 10**6}
            line |= {"systematic_uj": energy_uj * 10**4, "random_uj": 0.0, "run": "a"}
            line |= {"nodes": "n[1-2]", "split": "equal"}
            with file.open("a") as out:
                out.write(json.dumps(line) + "\n")
        steady.run(["joulemark", "merge", "--rebuild"])
        (row,) = steady.sacct(job, "Energy,EnergyOverhead,OverheadError", "-X", ours=True)
        part = account["cpus"] / done.records["n1"]["node_cpus"]
        assert float(row["EnergyOverhead"]) == pytest.approx(1000 / 2 * part, abs=1e-5)
        assert float(row["OverheadError"]) == pytest.approx(2 * 10 / 2 * part, rel=1e-6)
        assert float(row["Energy"]) == pytest.approx(done.energy_j(), abs=1e-6)
    finally:
        file.unlink()
        if not any(shared.iterdir()):  # a gateway makes it its own way
            shared.rmdir()


@pytest.fixture(scope="module", params=["mariadb", "postgresql"])
def server(request: pytest.FixtureRequest) -> Iterator[databases.Server]:
    try:
        with databases.SERVERS[request.param]() as made:
            yield made
    except databases.Missing as missing:
        pytest.skip(str(missing))


def test_records_of_a_cluster_rebuild_the_same_in_a_server(
    steady: Cluster, done: Outcome, server: databases.Server, tmp_path: Path
) -> None:
    here = (steady.state / "etc" / "joulemark.yaml").read_text()
    text = re.sub(r"(?m)^store: .*$", f"store: {server.database()}", here)
    text += f"store_password_file: {server.password_file}\ncarbon_g_per_kwh: 360\n"
    (tmp_path / "joulemark.yaml").write_text(text)
    env = {"JOULEMARK_CONFIG": str(tmp_path / "joulemark.yaml")}
    assert list((record_dir(steady) / "merged").glob(f"*.{done.job}.*"))
    steady.run(["joulemark", "merge", "--rebuild"], env=env)
    words = ["joulemark", "sacct", "-nP", "-j", str(done.job), "-o"]
    columns = "JobIDRaw,Energy,EnergyError,EnergyCPU,AveWatts,GapSeconds,EnergyMethod"
    assert steady.run([*words, columns], env=env) == steady.run([*words, columns])
    grams = float(steady.run([*words[:2], "-X", *words[2:], "Carbon"], env=env))
    assert grams == pytest.approx(done.energy_uj() / 3.6e12 * 360, abs=1e-6)
