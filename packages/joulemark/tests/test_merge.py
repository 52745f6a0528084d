# `joulemark merge`, as EpilogSlurmctld and an administrator use it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import errno
import json
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import datetime

import builders
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joulemark import store
from joulemark.accounting import columns, jobrecord, merge, runs
from joulemark.store import nodes


def test_merge_stores_the_job_and_prints_its_comment(site):
    site.leave()
    code, out, _ = site.run("merge", "--job", "12", "--nodes", "n1")
    assert code == 0
    line = "Energy: 100.0 J +- 2.0 J (k=2), 10.0 W mean, 1 node, counter, CPU 60 J, DRAM 0 J, "
    line += "GPU 0 J, rest 40 J, idle 25 J, systematic 1 J (k=1), random 0.1 J (k=1), peak 10 W"
    assert out == f"12\t100\t{line}\n"
    row = site.job(12)["12"]
    assert row["ConsumedEnergy_uj"] == 100_000_000
    assert row["ConsumedEnergyRaw"] == 100
    assert row["ElapsedRaw"] == 10
    assert row["EnergyCPU_uj"] + row["EnergyRest_uj"] == 100_000_000
    assert (site.records / "merged" / "demo.12.n1.json").exists()
    assert not list(site.records.glob("*.json"))


def test_merging_twice_changes_nothing(site):
    record = builders.record()
    builders.write(site.records, record)
    site.run("merge")
    before = site.job(12)
    builders.write(site.records, record)
    assert site.run("merge") == (0, "", "")
    assert site.job(12) == before
    assert [path.name for path in (site.records / "merged").iterdir()] == ["demo.12.n1.json"]


def test_comment_can_be_asked_for_again(site):
    site.leave()
    first = site.run("merge", "--job", "12", "--nodes", "n1")
    assert site.run("merge", "--job", "12", "--nodes", "n1")[1] == ""
    assert site.run("merge", "--job", "12", "--nodes", "n1", "--print-comment") == first


def test_microjoules_round_half_up(site):
    for job, energy_uj in ((1, 499_999), (2, 500_000), (3, 1_500_000), (4, 2_499_999)):
        site.leave(job, accounts=[builders.account("job", energy_uj)])
    site.run("merge")
    assert [site.job(job)[str(job)]["ConsumedEnergyRaw"] for job in (1, 2, 3, 4)] == [0, 1, 2, 2]


def test_steps_have_rows_of_their_own(site):
    steps = ["job", "extern", "batch", "0", "1"]
    accounts = [builders.account(step, 10_000_000 * n) for n, step in enumerate(steps, 1)]
    site.leave(accounts=accounts)
    site.run("merge")
    rows = site.job(12)
    assert set(rows) == {"12", "12.extern", "12.batch", "12.0", "12.1"}
    assert rows["12.1"]["ConsumedEnergy_uj"] == 50_000_000


def test_nodes_add_up_by_the_rules(site):
    one = builders.account(
        peak_w=30.0, gap_seconds=0.5, uncertainty_systematic_uj=3e6, uncertainty_random_uj=3e6
    )
    two = builders.account(
        peak_w=12.0, gap_seconds=2.5, uncertainty_systematic_uj=1e6, uncertainty_random_uj=4e6
    )
    site.leave(accounts=[one])
    site.leave(node="n2", accounts=[two])
    _, out, _ = site.run("merge")
    row = site.job(12)["12"]
    assert (row["NNodes"], row["Nodes"]) == (2, "n1,n2")
    assert row["ConsumedEnergy_uj"] == 200_000_000
    assert row["AveWatts"] == pytest.approx(20.0)
    assert row["PeakWatts"] == pytest.approx(42.0)
    assert row["GapSeconds"] == 2.5
    assert row["UncertaintySystematic_uj"] == pytest.approx(4e6)
    assert row["UncertaintyRandom_uj"] == pytest.approx(5e6)
    assert row["UncertaintyJoules"] == pytest.approx(2 * math.hypot(4, 5))
    assert ", 2 nodes, counter, gap 2.5 s, CPU 120.0 J, " in out


@pytest.mark.parametrize("tells", [True, False])
def test_what_nodes_err_by_alike_adds_linearly(site, tells):
    """An earlier joulemarkd's record does not tell: then all of it may be alike."""
    for n in range(16):
        one = builders.account(
            uncertainty_systematic_uj=0.0, uncertainty_common_uj=3e6, uncertainty_random_uj=5e6
        )
        if not tells:
            del one["uncertainty_common_uj"]
        site.leave(node=f"n{n}", accounts=[one])
    site.run("merge")
    expected_uj = math.hypot(16 * 3e6, 4 * 4e6) if tells else 16 * 5e6
    assert site.job(12)["12"]["UncertaintyRandom_uj"] == pytest.approx(expected_uj)
    assert site.job(12)["12"]["UncertaintyJoules"] == pytest.approx(2e-6 * expected_uj)


def test_estimate_is_said_in_the_comment(site):
    site.leave(accounts=[builders.account(method="model", estimated=True)])
    assert "\tEnergy (estimated by model): 100.0 J" in site.run("merge")[1]


def test_one_estimated_node_makes_the_job_an_estimate(site):
    site.leave()
    model = builders.account(method="model", estimated=True)
    site.leave(node="n2", accounts=[model])
    site.run("merge")
    row = site.job(12)["12"]
    assert (row["Method"], row["Estimated"]) == ("mixed", 1)


def test_node_that_never_came_is_missing_until_its_record_comes(site):
    site.leave()
    _, out, _ = site.run("merge", "--job", "12", "--nodes", "n[1-2]", "--wait", "0.05")
    assert ", 2 nodes, counter, " in out and out.endswith("; missing: n2\n")
    assert site.job(12)["12"]["Missing"].startswith("n2: no record came within 0.05 s")
    site.leave(node="n2")
    _, out, _ = site.run("merge")
    line = "Energy: 200.0 J +- 4.0 J (k=2), 20.0 W mean, 2 nodes, counter, "
    assert out.startswith(f"12\t200\t{line}") and "missing" not in out
    assert site.job(12)["12"]["Missing"] is None


def test_joules_are_told_only_when_all_nodes_are_known(site):
    """sacct may have more than the nodes that we know of."""
    site.leave()
    assert site.run("merge")[1].startswith("12\t\tEnergy: 100.0 J")
    asked = ("merge", "--job", "12", "--print-comment", "--wait", "0.05")
    assert site.run(*asked, "--nodes", "n[1-2]")[1].startswith("12\t\tEnergy: 100.0 J")
    site.leave(node="n2")
    assert site.run(*asked)[1].startswith("12\t200\tEnergy: 200.0 J")


def test_nodes_whose_clocks_differ_have_one_run(site):
    """No record tells of which start of a requeued job it is."""
    for apart_s in (0, 12, 45, 200, 400):
        job = 100 + apart_s
        late = builders.account("job")
        for key in ("start_ns", "end_ns"):
            late[key] += apart_s * 10**9
        site.leave(job)
        site.leave(job, node="n2", accounts=[late])
        site.run("merge", "--job", str(job), "--nodes", "n[1-2]", "--wait", "0.05")
        row = site.job(job)[str(job)]
        as_one = apart_s < 310  # beyond what Slurm runs with
        assert row["ConsumedEnergy_uj"] == (2 if as_one else 1) * 100_000_000, apart_s
        assert (row["Missing"] is None) == as_one
        assert row["AveWatts"] == (20 if as_one else 10), apart_s
    told = json.loads(site.run("report", "jobs", "--format", "json")[1])
    assert {one["time_s"] for one in told} == {10}


def test_a_step_that_its_nodes_had_one_after_the_other_lasts_for_both(site):
    """Their clocks agree: the job was on both all the time."""
    for number in (0, 1):
        step = builders.account("0", seconds=4, start_s=6 * number)
        site.leave(node=f"n{number}", accounts=[builders.account("job"), step])
    site.run("merge")
    assert site.job(12)["12"]["AveWatts"] == 20
    assert site.job(12)["12.0"]["AveWatts"] == 20


def test_another_cluster_s_job_waits_for_its_own_merge(site):
    site.leave(cluster="other")
    assert site.run("merge") == (0, "", "")
    assert site.rows(12, "other") == []
    site.leave()
    assert site.run("merge")[1].startswith("12\t")
    assert site.at("other", "merge").startswith("12\t") and site.rows(12, "other")


def test_late_missing_record_does_not_replace_a_complete_one(site):
    site.leave()
    site.run("merge")
    before = site.job(12)
    site.leave(accounts=[], missing="joulemarkd was dead")
    site.run("merge")
    assert site.job(12) == before
    assert len(list((site.records / "merged").iterdir())) == 2


def test_a_nodes_own_reason_outlives_the_guess_of_the_merge(site):
    """In either order: `zzz` sorts after and `aaa` before the merge's own words."""
    for job, why in ((12, "zzz"), (13, "aaa")):
        site.run("merge", "--job", str(job), "--nodes", "n1", "--wait", "0")
        site.leave(job=job, accounts=[], missing=why)
        for _ in range(2):
            site.run("merge", "--job", str(job), "--nodes", "n1", "--wait", "0")
            assert site.job(job)[str(job)]["Missing"] == f"n1: {why}"


def test_runs_that_wait_side_by_side_are_both_merged(site):
    """A requeued job's records of one node: NAME and NAME.2; a rebuild finds both again."""
    for run in (0, 1):
        site.leave(accounts=[builders.account("job", 10**6 * (run + 1), start_s=200 * run)])
        if run == 0:
            (site.records / "demo.12.n1.json").rename(site.records / "demo.12.n1.json.2")
    for words in (["merge"], ["merge", "--rebuild"]):
        assert site.run(*words)[0] == 0
        rows = site.rows(12)
        assert [(row["Run"], row["ConsumedEnergy_uj"]) for row in rows] == [
            (0, 10**6),
            (1, 2 * 10**6),
        ]
        merged = sorted(path.name for path in (site.records / "merged").iterdir())
        assert merged == ["demo.12.n1.json", "demo.12.n1.json.2"]


def test_a_rebuild_takes_what_was_merged_since_a_time(site):
    """By when the file came to merged/, not by when its node wrote it."""
    for job in (12, 13):
        written = site.leave(job)
        os.utime(written, (10**9, 10**9))
        since = datetime.now()
        site.out("merge")
        time.sleep(0.02)  # a kernel's clock of files ticks
    site.store.unlink()
    site.out("merge", "--rebuild", "--since", since.isoformat())
    assert not site.rows(12) and site.rows(13)
    site.out("merge", "--rebuild")
    assert site.rows(12)
    assert "--since: goes with --rebuild" in site.refuses("merge", "--since", "2026-11-26")


def test_a_node_on_which_nothing_was_read_is_missing_and_its_time_a_gap(site):
    why = jobrecord.UNREAD
    site.leave(1, accounts=[builders.unread(), builders.unread("0")])
    region = {"name": "b", "count": 1, "seconds": 1.0}
    inner = {
        **region,
        "energy_uj": 9,
        "uncertainty_uj": 1.0,
        "parent": "a",
        "exclusive_seconds": 1.0,
        "exclusive_uj": 5,
    }
    inner |= {"exclusive_uncertainty_uj": 1.0}
    unread = builders.unread("0") | {
        "regions": [{**region, "energy_uj": None, "uncertainty_uj": None}]
    }
    site.leave(2, node="n1", accounts=[builders.unread(), unread])
    site.leave(2, node="n2", accounts=[builders.account(), builders.account("0", regions=[inner])])
    site.leave(3, accounts=[], missing="joulemarkd did not answer")
    site.out("merge")
    one, both, untold = (site.job(job)[str(job)] for job in (1, 2, 3))
    assert (one["ConsumedEnergy_uj"], one["GapSeconds"]) == (None, 10.0)
    assert (both["ConsumedEnergy_uj"], both["Missing"]) == (100_000_000, f"n1: {why}")
    gap, samples = columns.BY_NAME["gapseconds"].cell, columns.BY_NAME["energysamples"].cell
    assert [gap(row, False) for row in (one, both, untold)] == ["10.0", "10.0", ""]
    assert one["Missing"] == f"n1: {why}" == site.job(2)["2.0"]["Missing"]
    (found,) = json.loads(site.job(2)["2.0"]["Regions"])
    assert (found["parent"], found["exclusive_uj"], found["energy_uj"]) == ("a", 5, 9)
    assert [samples(row, False) for row in (one, both, untold)] == ["11", "22", ""]
    _, out, _ = site.run("report", "jobs", "--all", "--format", "json")
    rows = {row["job_id_raw"]: row for row in json.loads(out) if row["step"] == "job"}
    assert [rows[job]["gap_s"] for job in (1, 2, 3)] == [10.0, 10.0, None]


def test_job_without_any_energy_is_not_zero_joules(site):
    site.leave(accounts=[], missing="joulemarkd was dead")
    assert site.out("merge") == "12\t\tEnergy: not measured; missing: n1\n"
    assert site.job(12)["12"]["ConsumedEnergyRaw"] is None


@pytest.mark.parametrize("counted", [True, False], ids=["counted by Slurm", "told by times"])
def test_runs_of_a_requeued_job_are_kept_apart(site, monkeypatch, counted):
    """The second run is on other nodes; a record of the first comes when all is over."""
    monkeypatch.setenv("SLURM_JOB_ID", "12")

    def record(run, node, energy_uj):
        account = builders.account("job", energy_uj, start_s=200 * run)
        more = {"restart": run} if counted else {}
        site.leave(node=node, accounts=[account], **more)

    def merge(run, node_list):
        monkeypatch.setenv("SLURM_JOB_RESTART_COUNT", str(run))
        return site.run("merge", "--job", "12", "--nodes", node_list, "--wait", "0")

    record(0, "n1", 1_000_000)
    merge(0, "n[1-2]")
    record(1, "n1", 10_000_000)
    record(1, "n3", 20_000_000)
    assert "30.0 J" in merge(1, "n[1,3]")[1]
    record(0, "n2", 2_000_000)
    site.run("merge")
    keys = ("Run", "Nodes", "ConsumedEnergyRaw", "Missing")
    found = [tuple(row[key] for key in keys) for row in site.rows(12)]
    assert found == [(0, "n1,n2", 3, None), (1, "n1,n3", 30, None)]


def test_merge_waits_for_the_last_node(site):
    site.leave()
    late = threading.Timer(0.2, builders.write, (site.records, builders.record(node="n2")))
    late.start()
    # and no longer: this test has a limit of its own
    _, out, _ = site.run("merge", "--job", "12", "--nodes", "n1,n2", "--wait", "3600")
    late.join()
    assert "missing" not in out and "2 nodes" in out


def test_job_merge_leaves_other_jobs_alone_unless_left_behind(site):
    site.leave(12)
    fresh = site.leave(13)
    old = site.leave(14)
    os.utime(old, (time.time() - 3600,) * 2)
    _, out, _ = site.run("merge", "--job", "12", "--nodes", "n1")
    assert [line.split("\t")[0] for line in out.splitlines()] == ["12", "14"]
    assert fresh.exists() and not old.exists()


def test_regions_of_nodes_add_up(site):
    for node, seconds in (("n1", 1.0), ("n2", 1.5)):
        region = {"name": "solve", "count": 3, "energy_uj": 5, "uncertainty_uj": 2.0}
        account = builders.account(regions=[{**region, "seconds": seconds}])
        site.leave(node=node, accounts=[account])
    site.run("merge")
    assert json.loads(site.job(12)["12"]["Regions"]) == [
        {"name": "solve", "count": 3, "seconds": 1.5, "energy_uj": 10, "uncertainty_uj": 4.0}
    ]


def test_bad_file_is_kept_and_logged_and_the_good_ones_count(site):
    site.leave()
    bad = site.leave(13, uid=-1)
    content = bad.read_bytes()
    code, out, err = site.run("merge")
    assert code == 1 and out.startswith("12\t")
    assert f"{bad}: uid: -1: must be a whole number" in err
    assert (site.records / "rejected" / bad.name).read_bytes() == content
    assert "uid: -1" in (site.records / "rejected" / "rejected.log").read_text()


def test_a_record_that_takes_another_s_place_meanwhile_is_merged_next(site, monkeypatch):
    """The node's excuse is at hand, its record comes, the excuse's file is moved."""
    site.leave(accounts=[], missing="joulemarkd was dead")
    keep = merge._keep

    def record_comes(*words):
        kept = keep(*words)
        builders.write(site.folder / "sent", builders.record()).replace(
            site.records / "demo.12.n1.json"
        )
        return kept

    with monkeypatch.context() as patch:
        patch.setattr(merge, "_keep", record_comes)
        assert "not measured" in site.run("merge")[1]
    assert "12\t\tEnergy: 100.0 J" in site.run("merge")[1]
    assert (site.records / "merged" / "demo.12.n1.json").exists()


def test_a_record_that_cannot_be_read_now_waits(site, monkeypatch):
    """A network folder's fault of a moment says nothing of the record."""
    path = site.leave()
    site.leave(13)
    real_open = os.open

    def failing_open(name, *words, **more):
        if name == str(path):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return real_open(name, *words, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing_open)
        code, out, err = site.run("merge")
    assert code == 0 and out.startswith("13\t") and "left to the next merge" in err
    assert path.exists() and not (site.records / "rejected").exists()
    assert site.run("merge")[1].startswith("12\t")


def test_second_bad_file_of_the_same_name_does_not_replace_the_first(site):
    for uid in (-1, -2):
        site.leave(uid=uid)
        site.run("merge")
    names = sorted(path.name for path in (site.records / "rejected").glob("demo*"))
    assert names == ["demo.12.n1.json", "demo.12.n1.json.2"]


@pytest.mark.parametrize("folder", ["rejected", "merged"])
@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)], ids=lambda _: ""
)
def test_what_is_no_file_is_not_read_where_a_name_is_taken(site, folder, make):
    """A pipe's reader waits for ever, and a link's may never see an end."""
    (site.records / folder).mkdir()
    make(site.records / folder / "demo.12.n1.json")
    site.leave(**({"uid": -1} if folder == "rejected" else {}))
    site.run("merge")
    make(site.records / "demo.12.n1.json")
    assert site.run("merge")[0] == 1
    moved = {"rejected": [2, 3], "merged": [2]}[folder]
    for number in moved:
        assert os.path.lexists(site.records / folder / f"demo.12.n1.json.{number}")
    assert not os.path.lexists(site.records / "demo.12.n1.json")


def test_half_written_file_of_the_daemon_is_not_touched(site):
    half = site.records / ".demo.12.n1.json"
    half.write_text("{")
    assert site.run("merge") == (0, "", "")
    assert half.exists()


@pytest.mark.parametrize(
    "content", [b"not a database at all" * 300, b"SQLite format 3\0" + b"\1" * 5000]
)
def test_corrupt_store_is_an_error_and_loses_no_record(site, content):
    path = site.leave()
    site.store.write_bytes(content)
    code, out, err = site.run("merge", "--job", "12", "--nodes", "n1", "--wait", "0")
    assert (code, out) == (1, "")
    assert err.startswith(f"joulemark: {site.store}: the store cannot be used: ")
    assert "bring a backup back" in err and "are in the store alone" in err
    assert path.exists() and site.store.read_bytes() == content


@pytest.mark.parametrize("at_once", [1, merge.FILES_AT_ONCE])
def test_lost_store_is_rebuilt_from_merged_records(site, monkeypatch, at_once):
    """A node's two records are read together, or one after the other."""
    monkeypatch.setattr(merge, "FILES_AT_ONCE", at_once)
    site.leave()
    site.run("merge")
    later = builders.account("job", 7_000_000)
    later["end_ns"] += 1
    site.leave(accounts=[later])
    site.run("merge")
    before = site.job(12)
    for side in ("", "-wal", "-shm"):
        (site.folder / f"store.sqlite{side}").unlink(missing_ok=True)
    assert site.run("merge", "--rebuild")[0] == 0
    assert site.job(12) == before
    assert len(list((site.records / "merged").iterdir())) == 2


def test_a_rebuild_of_many_holds_few_records(site, monkeypatch):
    """Of a site's years there are more than memory has room for; two nodes' of a job are asked."""
    for job in range(1, 11):
        for node in ("n1", "n2"):
            site.leave(job, node)
    site.out("merge")
    before, held, keepers = [site.rows(job) for job in range(1, 11)], [], []
    site.store.unlink()
    monkeypatch.setattr(merge, "FILES_AT_ONCE", 2)
    monkeypatch.setattr(merge, "AT_HAND", 4)
    monkeypatch.setattr(nodes, "JOBS_KNOWN", 3)
    node_records, put = nodes.node_records, nodes.Keeper.put
    monkeypatch.setattr(
        nodes, "node_records", lambda *args: held.append(len(args[-1])) or node_records(*args)
    )

    def count(keeper, found):
        put(keeper, found)
        keepers.append(len(keeper._ranks))

    monkeypatch.setattr(nodes.Keeper, "put", count)
    site.out("merge", "--rebuild")
    assert [site.rows(job) for job in range(1, 11)] == before
    assert max(held) == 4 and max(keepers) == 4


def test_merge_that_ends_between_its_transactions_is_finished_by_the_next(site, monkeypatch):
    site.leave()
    with monkeypatch.context() as patch:
        patch.setattr(jobrecord, "summarise", lambda run: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            site.run("merge", "--job", "12", "--nodes", "n1")
    for path in site.records.glob("*.json"):  # as if its helper had moved them already
        (site.records / "merged").mkdir(exist_ok=True)
        path.rename(site.records / "merged" / path.name)
    code, out, _ = site.run("merge", "--job", "13")
    assert (code, out[:23]) == (0, "12\t100\tEnergy: 100.0 J ")
    assert site.job(12)["12"]["ConsumedEnergy_uj"] == 100_000_000


@pytest.mark.parametrize("fault", [None, "dies while it reads", "dies while it moves", "never"])
def test_big_merge_with_a_helper_is_as_one_without(site, monkeypatch, fault):
    nodes_of_job = [f"n{number}" for number in range(1, 21)]
    for node in nodes_of_job:
        site.leave(node=node)
    (site.records / "demo.12.n99.json").write_text("{")
    monkeypatch.setattr(merge, "WORTH_A_HELPER", 10 if fault != "never" else 1000)
    monkeypatch.setattr(merge, "FILES_AT_ONCE", 2)  # ten parts and a half: some for each process
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    name = {"dies while it reads": "_read_some", "dies while it moves": "_move_merged"}.get(fault)
    if name:
        monkeypatch.setattr(merge, name, only_here(getattr(merge, name)))
    assert site.run("merge")[0] == 1
    assert len(list((site.records / "merged").iterdir())) == 20
    rejected = [path.name for path in (site.records / "rejected").glob("*.json")]
    assert rejected == ["demo.12.n99.json"]
    row = site.job(12)["12"]
    assert (row["ConsumedEnergy_uj"], row["NNodes"]) == (2_000_000_000, 20)


def only_here(work):
    """Work that kills every other process that is to do it."""
    own = os.getpid()

    def done(items):
        if os.getpid() != own:
            os.kill(os.getpid(), signal.SIGKILL)
        return work(items)

    return done


def test_a_number_may_be_written_without_its_point(site):
    """JSON has one kind of number; a square of ten digits is more than a database's 63 bits."""
    account = builders.account(
        uncertainty_systematic_uj=5_000_000_000, uncertainty_random_uj=5_000_000_000
    )
    site.leave(accounts=[account])
    site.out("merge")
    assert site.job(12)["12"]["UncertaintyRandom_uj"] == pytest.approx(5e9)


@pytest.mark.parametrize("key", ["energy_uj", "idle_uj", "samples"])
def test_a_job_whose_sum_no_database_holds_is_left_out_alone(site, key):
    most = 2**62 - 1
    more = {"energy_uj": most, "domains_uj": {"rest": most}} if key == "energy_uj" else {key: most}
    for node in ("n1", "n2", "n3"):
        site.leave(node=node, accounts=[builders.account(**more)])
    site.leave(13)
    code, out, err = site.run("merge")
    assert (code, out[:3]) == (0, "13\t")
    column = {"energy_uj": "ConsumedEnergy_uj", "idle_uj": "EnergyIdle_uj", "samples": "Samples"}
    assert err == (
        f"joulemark: job 12: {column[key]}: {3 * most}: must be below 2^63 for the store: see "
        "what is wrong with the records of n1, n2, n3, or with its correction: left out\n"
    )
    assert site.rows(12) == []
    site.leave(14)
    assert site.run("merge", "--job", "14", "--nodes", "n1")[2] == ""


def test_records_nested_as_deep_as_one_can_read_stop_no_merge(site):
    """It is deeper in the program that they are read again, or told of."""
    for depth in range(900, 1000):
        for job, key in ((depth, "uid"), (1000 + depth, "unknown")):
            text = json.dumps(builders.record(job, **{key: "@"}))
            nested = text.replace('"@"', "[" * depth + "]" * depth)
            (site.records / f"demo.{job}.n1.json").write_text(nested)
    assert site.run("merge")[0] == 1
    for depth in range(900, 1000):
        site.leave(1000 + depth, "n2")
    site.leave(12)
    assert site.run("merge")[1].startswith("12\t")
    assert not list(site.records.glob("*.json"))


def test_a_reason_that_is_no_unicode_is_logged(site):
    site.leave(accounts=[builders.account(domains_uj={"\ud800": 100_000_000})])
    (site.records / os.fsdecode(b"demo.13.\xff.json")).write_text("{")
    assert site.run("merge")[0] == 1
    log = (site.records / "rejected" / "rejected.log").read_text()
    assert "domains_uj.\\ud800: must be" in log and "demo.13.\\udcff.json: not JSON" in log


def test_store_of_a_newer_version_is_refused(site):
    site.leave()
    site.run("merge")
    with sqlite3.connect(site.store) as connection:
        connection.execute("INSERT INTO migration VALUES (99, 'later')")
    assert "written by a newer joulemark" in site.fails("merge")


def test_a_mistyped_folder_of_the_store_is_not_made(site):
    folder = site.folder / "stoer"
    site.yaml.write_text(site.yaml.read_text().replace("store.sqlite", "stoer/store.sqlite"))
    record = site.leave()
    said = site.refuses("merge")
    assert said == (
        f"joulemark: {folder}/store.sqlite: no such folder: make {folder} for who merges, or "
        "correct `store`\n"
    )
    assert record.exists() and not folder.exists()
    folder.mkdir()
    site.out("merge")
    assert site.out("report", "usage") and not record.exists()


def test_missing_record_folder_is_an_error(site):
    shutil.rmtree(site.records)
    assert f"{site.records}: no such folder" in site.refuses("merge")


def test_many_merges_at_once_do_not_clash(site):
    jobs = range(1, 9)
    for job in jobs:
        site.leave(job)
    merge, pipe = [sys.executable, "-m", "joulemark", "merge"], subprocess.PIPE
    commands = [*([*merge, "--job", str(job), "--nodes", "n1"] for job in jobs), merge]
    running = [subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True) for words in commands]
    for process in running:
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
    for job in jobs:
        assert site.job(job)[str(job)]["ConsumedEnergy_uj"] == 100_000_000
    assert len(list((site.records / "merged").iterdir())) == len(jobs)


energies = st.integers(0, 10**15)
accounts = st.builds(
    lambda step, energy, random, gap: builders.account(
        step, energy, uncertainty_random_uj=random, gap_seconds=gap
    ),
    st.just("job"),
    energies,
    st.floats(0, 1e12),
    st.floats(0, 100),
)
node_records = st.builds(
    lambda node, account, missing: builders.record(
        node=node, accounts=[account], missing="joulemarkd was dead" if missing else None
    ),
    st.sampled_from(["n1", "n2", "n3"]),
    accounts,
    st.booleans(),
)


def stored(records):
    """The job's rows after merging records in this order."""
    found = {}
    for record in records:
        text = json.dumps(record)
        one = nodes.Found.of(text, record, nodes.digest_of(text))
        if one.place not in found or one.rank > found[one.place].rank:
            found[one.place] = one
    kept = [(run_key, found[node, run_key].record) for node, run_key in sorted(found)]
    return [row for run in runs.runs_of(kept, {}) for row in jobrecord.summarise(run)]


@settings(max_examples=200)
@given(
    st.lists(node_records, min_size=1, max_size=6).flatmap(
        lambda found: st.tuples(st.just(found), st.permutations(found))
    )
)
def test_order_and_repetition_do_not_matter(orders):
    first, second = orders
    assert stored(first) == stored(second) == stored(first + second)


@settings(max_examples=200)
@given(st.lists(accounts, min_size=1, max_size=8))
def test_energy_is_the_exact_sum_and_errors_stay_within_linear_bounds(found):
    records = [builders.record(node=f"n{n}", accounts=[one]) for n, one in enumerate(found)]
    row = stored(records)[0]
    assert row["ConsumedEnergy_uj"] == sum(account["energy_uj"] for account in found)
    parts = [row[f"Energy{domain}_uj"] for domain in ("CPU", "DRAM", "GPU", "Rest")]
    assert sum(parts) == row["ConsumedEnergy_uj"]
    random = [account["uncertainty_random_uj"] for account in found]
    assert max(random) * (1 - 1e-9) <= row["UncertaintyRandom_uj"] <= sum(random) * (1 + 1e-9)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_merge_by_root_leaves_folders_to_the_owner_of_records(site):
    """An administrator's merge by hand must not shut SlurmUser's out."""
    os.chown(site.records, 65534, 65534)
    site.leave(12, "n1", [builders.account("job")])
    (site.records / "demo.13.n1.json").write_text("garbage")
    site.run("merge")
    for name in ("merged", "rejected", "rejected/rejected.log"):
        assert (site.records / name).stat().st_uid == 65534, name


def test_folder_that_cannot_be_made_is_said_and_the_rest_is_merged(site):
    (site.records / "rejected").write_text("in the way")
    (site.records / "demo.13.n1.json").write_text("garbage")
    site.leave(12, "n1", [builders.account("job")])
    status, _, errors = site.run("merge")
    assert status == 1 and "give it to record_dir's owner" in errors
    assert site.job(12)


def test_a_slow_record_dir_is_read_before_the_store_is_locked(site, monkeypatch):
    """A few records have no helper that reads them meanwhile."""
    site.leave(12)
    did, read, writing = [], merge._read_some, store.writing
    monkeypatch.setattr(merge, "_read_some", lambda paths: did.append("read") or read(paths))
    monkeypatch.setattr(store, "writing", lambda place: did.append("lock") or writing(place))
    site.out("merge")
    assert did == ["read", "lock"]
