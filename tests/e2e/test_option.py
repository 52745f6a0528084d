"""`--energy`: what a job is told about its own energy."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import re

import pytest

from tests.cluster import Cluster, ClusterError
from tests.cluster.config import MODEL
from tests.e2e.jobs import script
from tests.e2e.outcome import UJ, Outcome, outcome
from tests.e2e.waveform import STEADY

SUMMARY = re.compile(
    r"Energy(?P<estimated> \(estimated[^)]*\))?: (?P<joules>[\d.]+) J \+- [\d.]+ J \(k=2\), "
    r"(?P<watts>[\d.]+) W mean.*"
)


def the_summary(done: Outcome) -> re.Match[str]:
    """The one summary of the job; it is the last line of the output."""
    output = done.cluster.job_output(done.job)
    (found,) = SUMMARY.finditer(output)
    assert found[0] == output.splitlines()[-1]
    return found


#: the end of a script whose summary is compared with the job's energy
SAY_WHEN = "date +%s%N"


def after_j(done: Outcome, node: str) -> float:
    """What the job used there after its script had said when: the summary need not have it."""
    output = done.cluster.job_output(done.job)
    (said_ns,) = (int(line) for line in output.splitlines() if line.isdigit())
    return STEADY.energy_j(said_ns, done.accounts()[node]["end_ns"])


@pytest.mark.parametrize("command", ["srun", "sbatch", "salloc"])
def test_help_names_the_option_and_its_values(steady: Cluster, command: str) -> None:
    assert "--energy=off|summary|profile" in steady.run([command, "--help"])


def test_a_summary_is_the_last_line_and_steps_do_not_repeat_it(steady: Cluster) -> None:
    options = "#SBATCH --energy=summary --exclusive"  # inside, as users write them
    path = script(steady, "summary", options, "echo hello", "srun sleep 1", SAY_WHEN)
    done = outcome(steady, steady.sbatch(path))
    assert steady.job_output(done.job).startswith("hello\n")
    found = the_summary(done)
    # it is printed when the script has ended, a moment before the job has
    (node,) = done.accounts()
    assert -0.5 <= done.sacct_j() - float(found["joules"]) <= after_j(done, node) + 1
    assert float(found["watts"]) == pytest.approx(100, abs=1)
    assert not found["estimated"]


def test_a_summary_of_two_nodes_is_their_sum(steady: Cluster) -> None:
    options = "#SBATCH -N2 --exclusive --energy=summary"
    path = script(steady, "summary-of-two", options, "srun sleep 2", SAY_WHEN)
    done = outcome(steady, steady.sbatch(path))
    found = the_summary(done)
    assert ", 2 nodes" in found[0]
    joules = float(found["joules"])
    first_node_j = done.accounts()["n1"]["energy_uj"] / UJ - after_j(done, "n1")
    both_nodes_j = done.sacct_j() - after_j(done, "n1") - after_j(done, "n2")
    assert joules > 1.5 * first_node_j
    assert 0.7 * both_nodes_j <= joules <= 1.3 * done.sacct_j()


def test_a_lone_srun_sums_itself_up(steady: Cluster) -> None:
    text = steady.run(["srun", "--exclusive", "--energy=summary", "sh", "-c", "echo a; sleep 1"])
    first, last = text.splitlines()
    assert first == "a" and SUMMARY.fullmatch(last)


@pytest.mark.parametrize("option", [[], ["--energy=off"]], ids=["default", "off"])
def test_off_prints_nothing_and_is_accounted_all_the_same(
    steady: Cluster, option: list[str]
) -> None:
    job = steady.sbatch("--exclusive", *option, "--wrap", "echo quiet; srun sleep 0.5")
    done = outcome(steady, job)
    assert steady.job_output(job) == "quiet\n"
    assert done.sacct_j() > 50


def test_the_environment_says_it_where_the_option_does_not(steady: Cluster) -> None:
    env = {"JOULEMARK_ENERGY": "summary"}
    job = steady.sbatch("--exclusive", "--wrap", "srun sleep 0.5", env=env)
    the_summary(outcome(steady, job))
    words = ["srun", "--exclusive", "--energy=off", "echo", "quiet"]
    assert steady.run(words, env=env) == "quiet\n"
    said = steady.run(["sh", "-c", "srun true 2>&1"], env={"JOULEMARK_ENERGY": "all"}, check=False)
    assert "JOULEMARK_ENERGY=all: not one of off, summary" in said


@pytest.mark.parametrize("command", ["srun", "sbatch", "salloc"])
def test_a_wrong_value_is_refused_at_submission(steady: Cluster, command: str) -> None:
    work = ["--wrap", "true"] if command == "sbatch" else ["true"]
    with pytest.raises(ClusterError, match=r"--energy=all: .*off, summary, profile"):
        steady.run([command, "--energy=all", *work])


def test_a_models_estimate_is_called_one_everywhere(steady: Cluster) -> None:
    with steady.changed(instruments=[MODEL]) as cluster:
        job = cluster.sbatch("--exclusive", "--energy=summary", "--wrap", "srun sleep 0.5")
        done = outcome(cluster, job)
        assert the_summary(done)["estimated"]
        assert done.accounts()["n1"]["estimated"]
        assert float(done.column("Energy")) > 0 and done.column("Estimated") == "estimated"
