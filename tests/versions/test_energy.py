"""The energy test of tests/e2e, letter for letter, on a cluster of the other Slurm."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import re

from tests.cluster import Cluster
from tests.e2e.test_admincomment import (
    test_a_text_is_kept_letter_for_letter,
    test_each_component_of_a_heterogeneous_job_has_its_own,
    test_each_task_of_an_array_has_its_own,
    test_energy_that_comes_late_reaches_sacct,
    test_what_others_wrote_stays,
)
from tests.e2e.test_energy import (
    test_a_job_of_300_ms_is_charged_its_30_joules,
    test_a_node_shows_its_watts,
    test_consumed_energy_is_the_raw_figure_with_a_prefix,
    test_joules_of_a_counter_are_the_waveforms_integral,
    test_joules_of_sampled_power_are_within_their_stated_uncertainty,
)
from tests.e2e.test_option import test_a_lone_srun_sums_itself_up
from tests.versions.slurm import Slurm

# in this order: `steady` is steady until a module's first other waveform
__all__ = [
    "test_a_job_of_300_ms_is_charged_its_30_joules",
    "test_a_lone_srun_sums_itself_up",
    "test_a_node_shows_its_watts",
    "test_a_text_is_kept_letter_for_letter",
    "test_consumed_energy_is_the_raw_figure_with_a_prefix",
    "test_each_component_of_a_heterogeneous_job_has_its_own",
    "test_each_task_of_an_array_has_its_own",
    "test_energy_that_comes_late_reaches_sacct",
    "test_joules_of_a_counter_are_the_waveforms_integral",
    "test_joules_of_sampled_power_are_within_their_stated_uncertainty",
    "test_what_others_wrote_stays",
]


def test_the_cluster_is_of_the_other_slurm(steady: Cluster, other: Slurm) -> None:
    for program in ("sinfo", "slurmctld", "slurmd", "slurmdbd"):
        assert steady.run([program, "-V"]).split()[1] == other.version
    running = steady.run(["scontrol", "show", "config"])
    assert re.search(rf"^SLURM_VERSION\s+= {re.escape(other.version)}$", running, re.MULTILINE)
