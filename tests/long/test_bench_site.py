"""The simulated site of tests/bench/site, small: whatever it takes, no job's record is lost."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import subprocess
import sys

from tests.cluster import CHECKOUT

SMALL = ("--nodes", "20", "--jobs", "2", "--seconds", "2", "--json")


def test_a_small_site_loses_no_job_over_a_folder_nor_over_mqtt():
    words = [sys.executable, CHECKOUT / "tests/bench/site", *SMALL]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    figures = {figure["name"]: figure for figure in map(json.loads, done.stdout.splitlines())}
    for transport in ("folder", "mqtt"):
        lost = figures[f"{transport}_20_nodes_jobs_lost"]
        assert lost["value"] == 0, (lost, done.stderr)
        assert (
            int(lost["unit"].removeprefix("of ")) > 40
        )  # the burst's, and some at the day's pace
        assert figures[f"{transport}_20_nodes_latency_median"]["value"] > 0
