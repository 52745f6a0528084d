"""What Slurm has of us besides its own: a part of AdminComment, and energy that came late."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path

from tests.cluster import Cluster, wait_for
from tests.e2e.jobs import alone, held, script
from tests.e2e.outcome import (
    admin_comment,
    apart_from_launch,
    comment,
    ended_well,
    outcome,
    read_record,
    record_dir,
    record_file,
    slurm_version,
)

AWKWARD = 'It\'s "Quoted" & MiXeD: 100 % Größe µJ; `tick` \\ back'


def put(cluster: Cluster, job: int, text: str) -> None:
    """As EpilogSlurmctld's merge does; no joules are told."""
    program = cluster.options.build.slurm_prefix / "libexec" / "joulemark" / "admincomment"
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, str(job))
        told.write_text(f"\t{text}")
        subprocess.run([program, folder], env=cluster.env, check=True)
        assert not told.exists()


def test_a_text_is_kept_letter_for_letter(steady: Cluster) -> None:
    job = steady.sbatch("--wrap", "true")
    comment(steady, outcome(steady, job).job)  # the epilog's own comes first
    put(steady, job, AWKWARD)
    wait_for(lambda: comment(steady, job) == AWKWARD, what=f"{AWKWARD} in sacct", poll_s=0.1)


def test_what_others_wrote_stays(steady: Cluster) -> None:
    with held(steady) as job:
        steady.run(["scontrol", "update", f"jobid={job}", "AdminComment=Paid by A"])
    text = comment(steady, outcome(steady, job).job)
    assert admin_comment(steady, job) == f"Paid by A <joulemark 1: {text}>"
    modify = ["sacctmgr", "-i", "modify", "job", "where", f"jobid={job}", "set"]
    steady.run([*modify, "AdminComment=paid by b <joulemark 1: none>, in full"])
    put(steady, job, text)
    assert admin_comment(steady, job) == f"paid by b <joulemark 1: {text}>, in full"


def test_energy_that_comes_late_reaches_sacct(steady: Cluster) -> None:
    """From Slurm 25.11 on, which lets it be set; the comment has it with any."""
    node = steady.node("n1")
    with held(steady) as job:
        node.daemon.kill(signal.SIGKILL)
    before = ended_well(steady, job)
    assert "missing: n1" in comment(steady, job)
    node.daemon.start()
    record = record_file(steady, job, "n1", folder="")

    def recovered() -> bool:  # the epilog's, which says that it is missing, may come once more
        return record.exists() and read_record(record)["missing"] is None

    wait_for(recovered, what="the recovered record")
    os.utime(record, (0, 0))  # what has waited for a minute any job's epilog takes
    outcome(steady, alone(steady, "true"))  # a later job's epilog merges what waits
    wait_for(lambda: "missing" not in comment(steady, job), what="a comment with n1's energy")
    late = outcome(steady, job)
    if slurm_version(steady) < (25, 11):
        assert late.sacct_j() == before.sacct_j()
    else:
        assert late.sacct_j() == round(late.energy_j()) > before.sacct_j() + 1


def test_each_task_of_an_array_has_its_own(steady: Cluster) -> None:
    """The last one's raw number is the array's."""
    took = "sleep 0.$((1 + 4 * SLURM_ARRAY_TASK_ID))"
    job = steady.sbatch("--array=0-2", "-w", "n1", "--exclusive", "--wrap", took)
    assert_own(steady, job, 3)


def test_each_component_of_a_heterogeneous_job_has_its_own(steady: Cluster) -> None:
    """The first one's raw number is the job's."""
    lines = ["#SBATCH -N1 -w n1", "#SBATCH hetjob", "#SBATCH -N1 -w n2", "sleep 0.5"]
    assert_own(steady, steady.sbatch(str(script(steady, "parts", *lines))), 2)


def test_a_comment_that_a_killed_teller_had_claimed_is_told(steady: Cluster) -> None:
    job = steady.sbatch("--wrap", "true")
    comment(steady, outcome(steady, job).job)
    claimed = record_dir(steady) / "comments" / f".{job}"
    claimed.write_text("\tclaimed")
    outcome(steady, steady.sbatch("--wrap", "true"))
    wait_for(lambda: comment(steady, job) == "claimed", what="its comment", poll_s=0.1)
    assert not claimed.exists()


def assert_own(cluster: Cluster, job: int, count: int) -> None:
    """Each of the parts has a comment of its own energy."""

    def comments() -> dict[int, str]:
        rows = cluster.sacct(job, "JobIDRaw,AdminComment", "-X")
        own = {int(row["JobIDRaw"]): row["AdminComment"] for row in rows}
        return own if len(own) == count and all(own.values()) else {}

    own = wait_for(comments, what=f"{count} comments")
    for part, text in own.items():
        energy_j = outcome(cluster, part).energy_j()
        assert text.startswith(f"<joulemark 1: Energy: {energy_j:.1f} J"), own


def test_the_comment_is_the_stores_line_and_merging_again_changes_nothing(steady: Cluster) -> None:
    job = steady.sbatch("-N2", "--exclusive", "--wrap", "srun sleep 0.5")
    done = outcome(steady, job)
    text = comment(steady, job)
    energy_j, error_j = (float(done.column(name)) for name in ("Energy", "EnergyError"))
    assert text.startswith(f"Energy: {energy_j:.1f} J +- {error_j:.1f} J (k=2), ")
    late_s = max(account["gap_seconds"] for account in done.accounts().values())
    assert all(apart_from_launch(account) == (0, "") for account in done.accounts().values())
    gap = f", gap {late_s:.1f} s" if late_s else ""  # a loaded machine launches late
    assert f" W mean, 2 nodes, counter{gap}, " in text
    merge = ["joulemark", "merge", "--job", str(job), "--nodes", "n[1-2]"]
    assert steady.run([*merge, "--print-comment"]) == f"{job}\t{round(energy_j)}\t{text}\n"
    assert steady.run(merge) == ""
    assert steady.run(["joulemark", "merge", "--rebuild"]) == ""
    assert comment(steady, job) == text


def test_a_comment_that_is_refused_holds_up_no_other(steady: Cluster) -> None:
    """Its job never was: it stays, and the next job's is set."""
    comments = record_dir(steady) / "comments"
    comments.mkdir(exist_ok=True)
    refused, claimed = comments / "4000000", comments / ".4000000"
    refused.write_text("\tfor nobody")
    try:
        job = steady.sbatch("--wrap", "true")
        assert comment(steady, outcome(steady, job).job).startswith("Energy: ")
        assert claimed.exists()
    finally:
        for path in (refused, claimed):
            path.unlink(missing_ok=True)
