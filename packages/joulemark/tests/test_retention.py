# `joulemark store prune`: jobs go, what they add to sums stays.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import os
import random
import re
from datetime import date, timedelta

import builders
import pytest
from joulemark import config, store
from joulemark.accounting import prune
from joulemark.errors import UserError
from joulemark.store import schema, sums

DAY_S = 86_400
FIRST = date.fromtimestamp(builders.START_NS // 10**9)
PRUNED_DAYS = 20


def keep(days: int = PRUNED_DAYS) -> str:
    """So that jobs of the first days go."""
    return f"{(date.today() - FIRST).days - days}d"


@pytest.fixture
def filled(site):
    """200 jobs of three users in 40 days, some of several days, and one that nobody measured."""
    choose = random.Random(4)
    for job in range(1, 201):
        seconds = choose.choice((60, 3600, 30_000, 200_000))
        start_s = choose.randrange(30 * DAY_S)
        account = builders.account("job", choose.randrange(1, 10**12), seconds, start_s)
        step = builders.account("0", 5, seconds, start_s)
        path = site.leave(job, f"n{job % 5}", accounts=[account, step], uid=1000 + job % 3)
        os.utime(path, ns=(account["end_ns"],) * 2)
    site.leave(201, accounts=[], missing="the daemon was not there")
    site.configure("carbon_g_per_kwh: 300\nprice_per_kwh: 0.3\ncurrency: EUR\n")
    site.out("merge")
    put_work(site)
    return site


def put_work(site) -> None:
    """Most jobs' at storage servers, of which there are no lines."""
    with store.writing(config.load(site.yaml).store) as session:
        session.run(
            "UPDATE job_run SET EnergyStorage_uj = 1000003 * Job, StorageSystematic_uj = Job,"
            " StorageRandom_uj = 2 * Job, BytesRead = 1000000007 * Job, BytesWritten = 99 * Job,"
            " MetadataOps = Job WHERE Step = 'job' AND Day IS NOT NULL AND Job % 4 > 0"
        )


def answers(site) -> dict[tuple, list[dict]]:
    """Of usage by several keys and of nodes, of several times, inside and across the border."""
    dates = [None, *((FIRST + timedelta(day)).isoformat() for day in (5, 19, 20, 21, 25))]
    found = {}
    asked = [f"usage --by {by}" for by in ("user", "user,day", "month", "day,account")]
    for what in (*asked, "nodes"):
        for since in dates:
            for until in (one for one in dates if not since or not one or since <= one):
                words = [*(("--since", since) if since else ())]
                words += [*(("--until", until) if until else ())]
                text = site.out("report", *what.split(), *words, "--format", "json")
                found[what, since, until] = json.loads(text)
    return found


def expect_same(before: dict, after: dict) -> None:
    for key, groups in before.items():
        assert len(groups) == len(after[key]), key
        for one, other in zip(groups, after[key]):
            assert other == {name: alike(value) for name, value in one.items()}, key


def alike(value):
    """Reals are summed in another order."""
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value


def test_sums_are_the_same_before_and_after(filled):
    before, jobs = answers(filled), filled.out("report", "jobs", "--all", "--format", "csv")
    said = filled.out("store", "prune", "--keep", keep())
    left = filled.out("report", "jobs", "--all", "--format", "csv")
    assert 20 < len(left.splitlines()) < len(jobs.splitlines()) - 20, said
    expect_same(before, answers(filled))
    assert len(filled.rows(201)) == 1


def test_no_sum_that_prometheus_reads_changes(filled):
    """Reals but in their last digits, for they are summed in another order."""
    before, _, after = (
        {name: float(value) for name, value in re.findall(r"^(\w+\{.*\}) (\S+)$", text, re.M)}
        for text in (
            filled.out(*words.split())
            for words in ("export prometheus", f"store prune --keep {keep()}", "export prometheus")
        )
    )
    assert any("carbon" in name for name in before)
    assert any("storage_bytes" in name for name in before)
    assert after == pytest.approx(before, rel=1e-9)


def test_pruning_twice_changes_nothing_more(filled):
    filled.out("store", "prune", "--keep", keep())
    before = answers(filled)
    said = filled.out("store", "prune", "--keep", keep())
    assert said.startswith("pruned 0 jobs") and "and 0 files" in said
    assert answers(filled) == before


def test_a_second_time_adds_to_what_was_kept(filled):
    before = answers(filled)
    for days in (10, PRUNED_DAYS, 25):
        filled.out("store", "prune", "--keep", keep(days))
    expect_same(before, answers(filled))


def test_their_records_do_not_come_back(filled):
    merged = filled.records / "merged"
    files = {path.name: path.read_text() for path in merged.iterdir()}
    filled.out("store", "prune", "--keep", keep())
    before = answers(filled)
    gone = files.keys() - {path.name for path in merged.iterdir()}
    assert gone
    name = min(gone)
    (filled.records / name).write_text(files[name])
    code, _, said = filled.run("merge", "--rebuild")
    assert code == 0 and "of a job that was pruned: left out" in said
    put_work(filled)
    assert answers(filled) == before


def test_of_a_pruned_job_nothing_that_comes_late_is_counted(filled):
    """Neither a node's excuse, which knows no time, nor what Slurm says once more."""
    jobs = {int(path.name.split(".")[1]) for path in (filled.records / "merged").iterdir()}
    filled.out("store", "prune", "--keep", keep())
    pruned = min(job for job in jobs if not filled.rows(job))
    before = answers(filled)
    filled.leave(pruned, "n9", accounts=[], missing="the daemon was away")
    code, out, said = filled.run("merge")
    assert (code, out) == (0, "") and "of a job that was pruned: left out" in said
    code, out, said = filled.run("merge", "--job", str(pruned), "--nodes", "n8", "--wait", "0")
    assert (code, out) == (0, "") and f"job {pruned}: it was pruned: left out" in said
    assert answers(filled) == before


def test_what_ended_at_the_midnight_of_the_first_kept_day_is_pruned_once(site):
    midnight_s = -(builders.START_NS // 10**9 % DAY_S) + 5 * DAY_S
    account = builders.account(start_s=midnight_s - 10)
    site.leave(12, accounts=[account])
    site.out("merge")
    assert "pruned 1 jobs" in site.out("store", "prune", "--keep", keep(5))
    site.leave(12, accounts=[account])
    assert "of a job that was pruned: left out" in site.run("merge")[2]
    assert site.rows(12) == []


def test_a_pruned_job_s_number_may_be_another_s_later(filled):
    filled.out("store", "prune", "--keep", keep())
    pruned = min(job for job in range(1, 201) if not filled.rows(job))
    filled.leave(pruned, accounts=[builders.account(start_s=35 * DAY_S)])
    words = ("merge", "--job", str(pruned), "--nodes", "n[1,9]", "--wait", "0")
    assert filled.out(*words).startswith(f"{pruned}\t")
    assert filled.rows(pruned)[0]["NNodes"] == 2


def test_records_that_the_store_never_had_stay(site):
    """A new store in the place of one that was moved away knows none, until it is rebuilt."""
    path = site.leave(12)
    os.utime(path, ns=(builders.START_NS,) * 2)
    site.out("merge")
    site.store.rename(site.folder / "damaged.sqlite")
    site.leave(99, accounts=[builders.account(start_s=30 * DAY_S)])
    site.out("merge")
    for _ in range(2):
        assert "pruned 0 jobs" in site.out("store", "prune", "--keep", keep())
    site.out("merge", "--rebuild")
    assert site.rows(12)[0]["ConsumedEnergy_uj"] == 100_000_000


def test_pruning_is_of_all_clusters_and_its_files_of_one(site):
    """Which is said; the other's own prune takes its files."""
    for cluster in ("demo", "other"):
        path = site.leave(12, cluster=cluster)
        os.utime(path, ns=(builders.START_NS,) * 2)
        site.at(cluster, "merge")
    words = ("store", "prune", "--keep", keep())
    assert site.out(*words, "--dry-run").startswith("2 jobs of all clusters ended before")
    said = site.out(*words)
    assert said.startswith("pruned 2 jobs of all clusters that ended before")
    assert "and 1 files of cluster demo;" in said
    assert "and 1 files of cluster other;" in site.at("other", *words)


def test_what_is_pruned_between_two_questions_is_counted_once(filled):
    place, asked = config.load(filled.yaml).store, []

    def ask() -> int:
        asked.append(session.value("SELECT COUNT(*) FROM job_run"))
        if len(asked) == 1:
            filled.out("store", "prune", "--keep", keep())
        return session.value("SELECT COUNT(*) FROM kept")

    with store.reading(place) as session:
        assert sums.unpruned(session, ask) > 0
    assert len(asked) == 2 and asked[1] < asked[0]


def test_a_dry_run_only_counts(filled):
    before = answers(filled)
    said = filled.out("store", "prune", "--keep", keep(), "--dry-run")
    assert answers(filled) == before
    assert filled.out("store", "prune", "--keep", keep()).split()[1] == said.split()[0]


def test_what_is_kept_is_what_is_summed():
    assert set(schema.KEPT) == {*sums.FIELDS, *schema.KEPT_KEY}


@pytest.mark.parametrize(
    ("text", "day"),
    [("5y", "2019-02-28"), ("12m", "2023-02-28"), ("400d", "2023-01-25"), ("60m", "2019-02-28")],
)
def test_times_are_those_of_the_calendar(text, day):
    assert prune.first_kept(text, date(2024, 2, 29)).isoformat() == day


@pytest.mark.parametrize("text", ["5", "y", "0y", "-1y", "5w", "29d", "99999y", ""])
def test_a_time_that_is_none_is_refused(text):
    with pytest.raises(UserError, match=f"--keep {text}: "):
        prune.first_kept(text, date(2026, 11, 26))


def test_the_file_becomes_smaller(filled):
    place = config.load(filled.yaml).store
    store.compact(place)
    before = place.path.stat().st_size
    filled.out("store", "prune", "--keep", keep(25))
    assert place.path.stat().st_size < before
