# Jobs' charges that somebody corrected: the row, its sums, its history.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import dataclasses
import json
import os

import builders
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joulemark import cli, config, store
from joulemark.accounting import correction
from joulemark.errors import UserError
from joulemark.store import corrections, sqlite
from joulemark.store.corrections import Correction
from joulemark.store.whose import Whose

WHY = ("--why", "its node failed")


@pytest.fixture
def measured(site):
    """Job 12 of 100 J, and job 13."""
    for job in (12, 13):
        site.leave(job)
    site.out("merge")
    return site


@pytest.fixture
def tasks(site, sacct_jobs):
    """Those of array 30, of which one has its raw id; two of no array, one unknown to sacct."""
    for raw in (20, 30, 31, 32, 40, 99):
        site.leave(raw)
    site.out("merge")
    return site


def usage(site) -> dict:
    (group,) = json.loads(site.out("report", "usage", "--format", "json"))
    return group


def trail(site) -> list[dict]:
    return json.loads(site.out("store", "corrections", "--format", "json"))


def correct(site, *words: str) -> str:
    return site.out("store", "correct", *words, *WHY)


def test_a_refund_takes_the_charge_from_all_sums(measured):
    said = correct(measured, "12", "--charge", "25%")
    assert said == "job 12: 100.0 J +- 2.0 J -> 25.0 J +- 0.5 J\n"
    row = measured.job(12)["12"]
    parts = [row[f"Energy{part}_uj"] for part in ("CPU", "DRAM", "GPU", "Rest")]
    assert row["ConsumedEnergy_uj"] == sum(parts) == 25_000_000
    assert row["AveWatts"] == 10
    assert row["Notes"].startswith("charged 25 % of 100.0 J: its node failed (")
    group = usage(measured)
    assert (group["energy_uj"], group["jobs"]) == (125_000_000, 2)


@pytest.mark.parametrize(
    ("charge", "share"), [(("--charge", "25%"), 0.25), (("--energy", "25"), 1)]
)
def test_storage_is_refunded_and_stays_by_another_energy_of_the_nodes(measured, charge, share):
    worked = {"EnergyStorage_uj": 8_000_000, "StorageSystematic_uj": 80_000.0}
    worked |= {"StorageRandom_uj": 40_000.0, "StorageJoules": 0.2}
    with store.writing(config.load(measured.yaml).store) as session:
        names = ", ".join(f"{name} = ?" for name in worked)
        where = "WHERE Job = 12 AND Step = 'job'"
        session.run(f"UPDATE job_run SET {names}, BytesRead = 4096 {where}", [*worked.values()])
    correct(measured, "12", *charge)
    row = measured.job(12)["12"]
    assert {name: row[name] for name in worked} == {n: share * v for n, v in worked.items()}
    assert row["BytesRead"] == 4096 and row["ConsumedEnergy_uj"] == 25_000_000


def test_a_run_whose_nodes_were_silent_is_refunded_its_storage():
    other = dict.fromkeys((*correction.PARTS, *correction.WHOLE, *correction.REAL))
    rows = [
        {**other, **dict.fromkeys(correction.STORAGE, 8), "Notes": None, "ConsumedEnergy_uj": uj}
        for uj in (10**8, None)
    ]
    correction.apply(rows, [Correction("demo", 1, 1, 0, "root", 0.25, None, "why")])
    assert [row["EnergyStorage_uj"] for row in rows] == [2, 2]
    told = [row["Notes"].partition(": ")[0] for row in rows]
    assert told == ["charged 25 % of 100.0 J", "charged 25 % of its storage's energy"]


def test_an_estimate_stays_marked(site):
    site.leave(12, accounts=[builders.account(method="model", estimated=True)])
    site.out("merge")
    said = correct(site, "12", "--charge", "25%")
    assert said == "job 12: ~100.0 J +- 2.0 J -> ~25.0 J +- 0.5 J\n"


def test_an_estimate_has_no_digit_that_its_error_leaves_unknown(site):
    about = {"uncertainty_systematic_uj": 65.85e6, "estimated": True}
    site.leave(12, accounts=[builders.account("job", 380_300_000, **about)])
    site.out("merge")
    said = correct(site, "12", "--charge", "50%")
    assert said == "job 12: ~380 J +- 130 J -> ~190 J +- 66 J\n"


def test_an_energy_stands_for_the_measured_one(measured):
    correct(measured, "12", "--energy", "1e3")
    assert usage(measured)["energy_uj"] == 1_100_000_000


def test_an_energy_is_that_of_all_runs_together(site):
    for restart, energy_uj in enumerate((100_000_000, 200_000_000, 100_000_000)):
        account = builders.account(energy_uj=energy_uj, start_s=1000 * restart)
        site.leave(12, accounts=[account], restart=restart)
        site.out("merge")
    said = correct(site, "12", "--energy", "100")
    assert said == "job 12: 400.0 J +- 8.0 J -> 100.0 J +- 2.0 J\n"
    rows = site.rows(12)
    assert [row["ConsumedEnergy_uj"] for row in rows] == [25_000_000, 50_000_000, 25_000_000]
    assert rows[1]["Notes"].startswith("charged 50 J of 200.0 J: its node failed (")
    assert usage(site)["energy_uj"] == 100_000_000


@pytest.mark.parametrize("energy_uj", [0, 1000])
def test_what_is_within_its_error_has_no_share_that_is_an_energy(site, energy_uj):
    """5000 J of 0 J would be 0 J, and of 1 mJ +- 100 mJ 5000 J +- 500 kJ."""
    site.leave(accounts=[builders.account(energy_uj=energy_uj, uncertainty_random_uj=50_000.0)])
    site.out("merge")
    before = site.rows(12)
    said = site.fails("store", "correct", "12", "--energy", "5000", *WHY)
    assert "job 12 of demo: what was measured is within its error of 0 J" in said
    assert site.rows(12) == before and trail(site) == []
    correct(site, "12", "--energy", "0")


def test_a_charge_that_no_store_holds_is_refused_and_not_kept(site):
    site.leave(12, accounts=[builders.account(energy_uj=2**61)])
    site.out("merge")
    said = site.fails("store", "correct", "12", "--charge", "1000%", *WHY)
    assert f"job 12: ConsumedEnergy_uj: {10 * 2**61}: must be below 2^63" in said
    assert trail(site) == [] and site.job(12)["12"]["ConsumedEnergy_uj"] == 2**61


def test_the_last_correction_holds_and_the_others_are_kept(measured):
    for share in ("0%", "50%", "100%"):
        correct(measured, "12", "--charge", share)
    assert usage(measured)["energy_uj"] == 200_000_000
    assert [(one["number"], one["share"]) for one in trail(measured)] == [(1, 0), (2, 0.5), (3, 1)]
    assert {one["why"] for one in trail(measured)} == {"its node failed"}
    assert measured.out("store", "corrections").count("its node failed") == 3


def test_a_correction_outlives_merges_of_the_same_records(measured):
    correct(measured, "12", "--charge", "0%")
    measured.out("merge", "--rebuild")
    measured.leave(12, "n2")
    measured.out("merge")
    row = measured.job(12)["12"]
    assert (row["ConsumedEnergy_uj"], row["NNodes"]) == (0, 2)
    assert "charged 0 % of 200.0 J" in row["Notes"]


def test_slurm_is_told_where_merges_tell_it(measured):
    comments = measured.records / "comments"
    comments.mkdir()
    correct(measured, "12", "--charge", "50%")
    assert "Energy: 50.0 J +- 1.0 J" in (comments / "12").read_text()


def test_a_comment_that_cannot_be_left_does_not_hide_that_the_correction_is_kept(measured):
    comments = measured.records / "comments"
    (comments / "12").mkdir(parents=True)
    code, out, err = measured.run("store", "correct", "12", "--charge", "25%", *WHY)
    assert (code, out) == (0, "job 12: 100.0 J +- 2.0 J -> 25.0 J +- 0.5 J\n")
    assert f"{comments}: Is a directory: the correction is kept, but Slurm is not told" in err
    assert len(trail(measured)) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["14", "--charge", "0%", *WHY], "job 14 of demo: the store has no record of it"),
        (["12", "--charge", "1001%", *WHY], "'1001%' is not a charge from 0% to 1000%"),
        (["12", "--charge", "0.8", *WHY], "'0.8' is not a charge from 0% to 1000%: write 80% or"),
        (["12", "--charge", "80", *WHY], "'80' is not a charge from 0% to 1000%: write 80% or"),
        (["12", "--energy", "nan", *WHY], "'nan' is not an energy in joules"),
        (["12", "--charge", "0%", "--why", " "], "it takes a reason on one line"),
        (["12", "--charge", "0%"], "--why"),
        (["12", *WHY], "one of the arguments --charge --energy is required"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(measured, capsys, words, said):
    try:
        assert cli.main(["store", "correct", *words]) == 1
    except SystemExit as end:
        assert end.code == 2
    assert said in capsys.readouterr().err
    assert trail(measured) == [] and usage(measured)["energy_uj"] == 200_000_000


def test_a_pruned_job_is_not_to_be_merged_first(site):
    site.leave(12, accounts=[builders.account(start_s=-1e8)])
    site.out("merge")
    site.out("store", "prune", "--keep", "30d")
    said = site.fails("store", "correct", "12", "--charge", "0%", *WHY)
    assert said.endswith("job 12 of demo: it was pruned, and only sums of it are left\n")


def test_a_pruned_job_s_correction_is_not_of_the_next_of_its_number(site, monkeypatch):
    """Nor is it shown to whose that one is."""
    old = [builders.account(start_s=-1e8)]
    site.leave(12, accounts=old)
    site.out("merge")
    with monkeypatch.context() as before:
        before.setattr("time.time_ns", lambda: builders.START_NS - 1)
        correct(site, "12", "--charge", "0%")
    site.out("store", "prune", "--keep", builders.kept_days())
    for node in ("n1", "n2"):
        site.leave(12, node, uid=1001)
        site.out("merge")
    assert site.rows(12)[0]["ConsumedEnergy_uj"] == 200_000_000
    assert len(trail(site)) == 1 and shown(site, 1001) == []
    said = correct(site, "12", "--charge", "50%")
    assert said == "job 12: 200.0 J +- 4.0 J -> 100.0 J +- 2.0 J\n"
    assert [one["number"] for one in trail(site)] == [1, 2] and shown(site, 1001) == [2]


def shown(site, uid: int) -> list[int]:
    """The corrections' numbers that a user sees who sees his own jobs alone."""
    with store.reading(config.load(site.yaml).store) as session:
        return [one.number for one in corrections.all_of(session, Whose("demo", uid, None))]


@pytest.mark.parametrize(
    ("asked", "raw"), [("30_2", 32), ("32", 32), ("30_1", 31), ("20", 20), ("99", 99)]
)
def test_one_task_of_an_array_is_corrected(tasks, asked, raw):
    said = correct(tasks, asked, "--charge", "25%")
    assert said == f"job {asked}: 100.0 J +- 2.0 J -> 25.0 J +- 0.5 J\n"
    assert [one["job_id_raw"] for one in trail(tasks)] == [raw]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("30", "job 30: several for Slurm, 30_1, 30_2, 30_3, 30_[4-9%2]: correct each by itself"),
        ("40", "job 40: several for Slurm, 40+0, 40+1: correct each by itself"),
        ("30_[1-2]", "job 30_[1-2]: several for Slurm, 30_1, 30_2: correct"),
        ("20_7", "job 20 has no such task"),
    ],
)
def test_no_task_is_taken_for_its_whole_array(tasks, asked, said):
    """The last task's raw id is the array's."""
    assert said in tasks.fails("store", "correct", asked, "--charge", "0%", *WHY)
    assert trail(tasks) == []


def test_without_sacct_a_raw_id_is_corrected(tasks, monkeypatch):
    monkeypatch.setenv("PATH", str(tasks.folder))
    code, _, err = tasks.run("store", "correct", "30", "--charge", "25%", *WHY)
    assert code == 0 and "sacct" in err
    assert err.endswith("taken for a raw id, not for an array's\n")
    said = tasks.fails("store", "correct", "30_1", "--charge", "0%", *WHY)
    assert "only sacct knows its raw id" in said


def test_corrections_of_a_cluster_are_chosen(measured):
    measured.leave(12, cluster="other")
    measured.at("other", "merge")
    correct(measured, "12", "--charge", "50%")
    measured.at("other", "store", "correct", "12", "--charge", "25%", *WHY)
    assert [one["share"] for one in trail(measured)] == [0.5, 0.25]
    found = json.loads(measured.out("store", "corrections", "-M", "other", "--format", "json"))
    assert [(one["cluster"], one["job_id_raw"], one["share"]) for one in found] == [
        ("other", 12, 0.25)
    ]
    assert "no jobs of 'others'" in measured.refuses("store", "corrections", "-M", "others")


def test_csv_of_no_corrections_has_its_columns(measured):
    none = measured.out("store", "corrections", "--format", "csv")
    correct(measured, "12", "--charge", "50%")
    some = measured.out("store", "corrections", "--format", "csv")
    assert none.splitlines() == some.splitlines()[:1]


@pytest.mark.parametrize("closed", ["store.sqlite", "."])
@pytest.mark.parametrize(
    "words", [["correct", "12", "--charge", "0%", *WHY], ["prune", "--keep", "5y"]]
)
def test_who_may_only_read_the_store_is_told_so(measured, monkeypatch, closed, words):
    """Root may all."""
    place, access = (measured.folder / closed).resolve(), os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: (path, mode) != (place, os.W_OK) and access(path, mode)
    )
    said = measured.fails("store", *words)
    assert said.endswith(f"{measured.store}: you may not write the store: its owner may\n")
    assert trail(measured) == []


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize(
    "words", [["correct", "12", "--charge", "0%", *WHY], ["prune", "--keep", "5y"]]
)
def test_only_merges_make_a_store(measured, is_there, words):
    """Of a mistyped path, or of a file without a store."""
    wrong = measured.folder / "stoer.sqlite"
    measured.yaml.write_text(measured.yaml.read_text().replace("store.sqlite", wrong.name))
    if is_there:
        wrong.touch()
    said = measured.fails("store", *words)
    assert f"{wrong}: no store yet: it is made by the first `joulemark merge`" in said
    assert is_there == wrong.exists() and (not is_there or not wrong.read_bytes())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")
def test_a_store_in_a_folder_that_is_closed_to_us_is_not_called_missing(measured):
    closed = measured.folder / "closed"
    closed.mkdir(mode=0o700)
    place = dataclasses.replace(config.load(measured.yaml).store, path=closed / "a/store.sqlite")
    os.seteuid(65534)
    try:
        with pytest.raises(UserError, match="you may not write the store"):
            sqlite.writer(place)
    finally:
        os.seteuid(0)


@given(
    runs=st.lists(
        st.lists(st.integers(0, 10**14), min_size=4, max_size=4), min_size=1, max_size=4
    ),
    share=st.floats(0, 10, allow_nan=False),
)
def test_parts_and_runs_add_up_whatever_the_share(runs, share):
    rows = [
        {
            **dict.fromkeys((*correction.WHOLE, *correction.REAL, *correction.STORAGE), None),
            **dict(zip(correction.PARTS, parts)),
            "ConsumedEnergy_uj": sum(parts),
            "Notes": None,
        }
        for parts in runs
    ]
    correction.apply(rows, [Correction("demo", 1, 1, 0, "root", share, None, "why")])
    for row in rows:
        assert sum(row[name] for name in correction.PARTS) == row["ConsumedEnergy_uj"]
    charged_uj = sum(row["ConsumedEnergy_uj"] for row in rows)
    assert charged_uj == round(sum(map(sum, runs)) * share)
