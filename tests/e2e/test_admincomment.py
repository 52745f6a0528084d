"""AdminComment: one line of energy in plain sacct, letter for letter."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import subprocess

from tests.cluster import Cluster, wait_for
from tests.e2e.outcome import apart_from_launch, comment, outcome, record_dir

AWKWARD = 'It\'s "Quoted" & MiXeD: 100 % Größe µJ; `tick` \\ back'


def test_a_text_is_kept_letter_for_letter(steady: Cluster) -> None:
    job = steady.sbatch("--wrap", "true")
    comment(steady, outcome(steady, job).job)  # the epilog's own comes first
    program = steady.options.build.slurm_prefix / "libexec" / "joulemark" / "admincomment"
    subprocess.run([program, str(job)], input=AWKWARD.encode(), env=steady.env, check=True)
    wait_for(lambda: comment(steady, job) == AWKWARD, what=f"{AWKWARD} in sacct", poll_s=0.1)


def test_the_comment_is_the_stores_line_and_merging_again_changes_nothing(steady: Cluster) -> None:
    job = steady.sbatch("-N2", "--exclusive", "--wrap", "srun sleep 0.5")
    done = outcome(steady, job)
    text = comment(steady, job)
    energy_j, error_j = (float(done.column(name)) for name in ("Energy", "EnergyError"))
    assert text.startswith(f"Energy: {energy_j:.1f} J +- {error_j:.1f} J (k=2), ")
    late_s = max(account["gap_seconds"] for account in done.accounts().values())
    assert all(apart_from_launch(account) == (0, "") for account in done.accounts().values())
    gap = f", gap {late_s:.1f} s" if late_s else ""  # a loaded machine launches late
    assert text.endswith(f" W mean, 2 nodes, counter{gap}")
    merge = ["joulemark", "merge", "--job", str(job), "--nodes", "n[1-2]"]
    assert steady.run([*merge, "--print-comment"]) == f"{job}\t{text}\n"
    assert steady.run(merge) == ""
    assert steady.run(["joulemark", "merge", "--rebuild"]) == ""
    assert comment(steady, job) == text


def test_a_comment_that_is_refused_holds_up_no_other(steady: Cluster) -> None:
    """Job 0 never was: its comment stays, first in the folder, and the next job's is set."""
    comments = record_dir(steady) / "comments"
    comments.mkdir(exist_ok=True)
    refused = comments / "0"
    refused.write_text("for nobody")
    try:
        job = steady.sbatch("--wrap", "true")
        assert comment(steady, outcome(steady, job).job).startswith("Energy: ")
        assert refused.exists()
    finally:
        refused.unlink(missing_ok=True)
