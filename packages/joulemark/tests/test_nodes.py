# `joulemark report nodes`: what jobs used on each node.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import random
from datetime import date

import builders
import pytest
from joulemark import config, store
from joulemark.store import retention

UNMEASURED = {**builders.account(), "energy_uj": None}


def records(site, *words):
    return json.loads(site.out("report", "nodes", *words, "--format", "json"))


def test_nodes_have_all_that_jobs_used_once(site):
    """The books: their sum is the users'; merged again, they stay as they are."""
    choose = random.Random(12)
    for job in range(1, 40):
        for node in choose.sample(range(1, 9), choose.randrange(1, 5)):
            made = builders.account("job", choose.randrange(1, 10**12), choose.randrange(1, 10**5))
            site.leave(job, f"n{node}", accounts=[made, builders.account("0", 7)])
    site.out("merge")
    found = records(site)
    (whole,) = json.loads(site.out("report", "usage", "--by", "cluster", "--format", "json"))
    assert sum(one["energy_uj"] for one in found) == whole["energy_uj"]
    assert len(found) == 8 and found == sorted(found, key=lambda one: -one["energy_uj"])
    site.out("merge", "--rebuild")
    assert records(site) == found


def test_sums_are_exact_beyond_what_a_databases_number_can_say(site):
    """Also when they are pruned: half of the jobs, then the rest."""
    for job in range(1, 7):
        start_s = 20 * 86_400 if job > 3 else 0
        site.leave(job, accounts=[builders.account("job", 2**62 - job, 10, start_s)])
    site.out("merge")
    before = records(site)
    assert [one["energy_uj"] for one in before] == [6 * 2**62 - 21]
    began = date.fromtimestamp(builders.START_NS // 10**9)
    for days in (10, 30):
        site.out("store", "prune", "--keep", f"{(date.today() - began).days - days}d")
        assert [one["energy_uj"] for one in records(site)] == [6 * 2**62 - 21]


def test_power_is_over_the_time_of_jobs_whose_energy_is_known(site):
    site.leave(1, "n1", accounts=[builders.account("job", 10**9, 10)])
    site.leave(2, "n1", accounts=[builders.account("job", 2 * 10**9, 20, estimated=True)])
    site.leave(3, "n1", accounts=[UNMEASURED], missing="dead")
    site.out("merge")
    (one,) = records(site)
    assert (one["node"], one["jobs"], one["energy_jobs"], one["estimated_jobs"]) == ("n1", 3, 2, 1)
    assert (one["job_seconds"], one["job_power_w"]) == (30, pytest.approx(100))
    assert one["job_power_error_w"] == pytest.approx(one["energy_error_j"] / 30)
    text = site.out("report", "nodes")
    assert "~3.00 (2 of 3)" in text and "~100" in text and "Power a job [W]" in text


def test_two_jobs_at_once_have_half_of_a_nodes_power_and_no_word_says_that_it_draws_that(site):
    for job in (1, 2):
        site.leave(job, "n1", accounts=[builders.account("job", 600 * 10**6, 10)])
    site.leave(3, "n2", accounts=[builders.account("job", 1200 * 10**6, 10)])
    site.out("merge")
    found = {one["node"]: one["job_power_w"] for one in records(site)}
    assert found == {"n1": pytest.approx(60), "n2": pytest.approx(120)}
    text = site.out("report", "nodes", "--format", "markdown")
    assert "nodes that run as many jobs at once, not what nodes draw" in text


def test_a_record_without_times_is_no_run_of_its_own(site):
    """Of which day it is, nobody can tell: before jobs are pruned and after."""
    site.leave(1, "n1", accounts=[builders.account("job", 10**9)], restart=0)
    site.out("merge")
    site.leave(1, "n1", accounts=[], missing="dead")
    site.leave(2, "n2", accounts=[], missing="dead")
    site.leave(2, "n3")
    site.out("merge")
    found = {one["node"]: (one["jobs"], one["energy_jobs"]) for one in records(site)}
    assert found == {"n1": (1, 1), "n3": (1, 1)}
    everything = records(site)
    assert records(site, "--until", "2999-01-01") == everything
    with store.writing(config.load(site.yaml).store) as session:
        assert retention.prune(session, 100_000) == 2
    assert records(site) == records(site, "--since", "2000-01-01") == everything


def test_a_correction_is_no_nodes(site):
    site.leave(1, accounts=[builders.account("job", 10**9)])
    site.out("merge")
    site.out("store", "correct", "1", "--charge", "0%", "--why", "its node failed")
    assert [one["energy_j"] for one in records(site)] == [1000]


def test_days_are_those_of_the_jobs_ends_in_the_sites_zone(site):
    """Of two jobs one ends at midnight in Berlin, which is the day before, and one a second on."""
    site.configure("timezone: Europe/Berlin\n")
    midnight_s = 1_700_000_000 // 86_400 * 86_400 + 23 * 3600
    for job, end_s in ((1, midnight_s), (2, midnight_s + 1)):
        start_s = end_s - builders.START_NS // 10**9 - 10
        site.leave(job, f"n{job}", accounts=[builders.account("job", 1, 10, start_s)])
    site.out("merge")
    nodes = {
        name: [one["node"] for one in records(site, *words)]
        for name, words in {
            "before": ("--until", "2023-11-14"),
            "after": ("--since", "2023-11-15"),
            "both": ("--since", "2023-11-14", "--until", "2023-11-15"),
            "none": ("--since", "2999-01-01"),
        }.items()
    }
    assert nodes == {"before": ["n1"], "after": ["n2"], "both": ["n1", "n2"], "none": []}


@pytest.mark.parametrize("kind", ["nodes", "html"])
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "America/Los_Angeles"])
def test_days_far_away_are_no_bounds(site, kind, zone):
    site.configure(f"timezone: {zone}\n")
    site.leave(1, "n1")
    site.out("merge")
    everything = site.out("report", kind)
    for words in (
        ("--since", "0001-01-01", "--until", "9999-12-31"),
        ("--since", "1677-01-01", "--until", "2263-01-01"),
    ):
        found = site.out("report", kind, *words)
        assert "n1" in found and (kind == "html" or found == everything)
    assert "n1" not in site.out("report", kind, "--since", "9999-12-31")


def test_clusters_are_chosen_and_told_apart(site):
    builders.write(site.records, builders.record(1, "n1"))
    builders.write(site.records, builders.record(1, "n1", cluster="other"))
    site.out("merge")
    site.at("other", "merge")
    assert [one["cluster"] for one in records(site)] == ["demo", "other"]
    assert [one["cluster"] for one in records(site, "-M", "other")] == ["other"]
    text = site.out("report", "nodes")
    assert "Cluster" in text
    assert "Cluster" not in site.out("report", "nodes", "-M", "demo")
