# `joulemark report jobs --all --anonymous`: who has all that sacct tells finds nobody in it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import math
import random
from collections import Counter, defaultdict

import builders
import pytest
from joulemark.accounting import anonymous, joblist
from joulemark.store.sums import COLUMNS

USERS, JOBS, DAYS = 60, 4000, 91
NOTHING = joblist.as_records([{**dict.fromkeys(COLUMNS), "Regions": "[]"}])[0]


@pytest.fixture(scope="module")
def jobs():
    """A quarter of a year: some users have most jobs, each has sizes of his own."""
    chance = random.Random(1)
    users = [
        {
            **{"uid": 1000 + user, "nodes": chance.choice((1, 1, 1, 2, 4, 8))},
            **{
                "partition": chance.choice(("long", "short")),
                "time_s": chance.lognormvariate(8, 1),
            },
            "mean_w": chance.uniform(150, 450),
        }
        for user in range(USERS)
    ]
    weights = [1 / (1 + user) ** 0.8 for user in range(USERS)]
    return [made(chance, **one) for one in chance.choices(users, weights, k=JOBS)]


def made(chance, time_s, mean_w, **whose):
    """A job of a user."""
    time_s = round(min(time_s * chance.lognormvariate(0, 0.7), 86_400.0), 3)
    energy_uj = int(whose["nodes"] * mean_w * chance.uniform(0.8, 1.2) * time_s * 1e6)
    month, day = divmod(chance.randrange(DAYS), 31)
    return {
        **NOTHING,
        **{"cluster": "demo", "day": f"2026-{9 + month:02}-{1 + day:02}", "time_s": time_s},
        **{"energy_uj": energy_uj, "energy_j": energy_uj / 1e6},
        **{"energy_systematic_uj": 0.01 * energy_uj, "energy_random_uj": 0.001 * energy_uj},
        **whose,
    }


def joined(rows, jobs):
    """Rows whose time and energy are those of one job of that month, to their digits."""
    known = Counter(
        (job["day"][:7], *(float(f"{job[name]:.3g}") for name in ("time_s", "energy_j")))
        for job in jobs
    )
    return [row for row in rows if known[row["month"], row["time_s"], row["energy_j"]] == 1]


def test_no_row_is_a_job(jobs, monkeypatch):
    rows, _ = anonymous.rows([jobs])
    assert len(rows) > 100 and not joined(rows, jobs)
    monkeypatch.setattr(anonymous, "LEAST_USERS", 1)
    rows, _ = anonymous.rows([jobs])
    assert len(joined(rows, jobs)) > 50  # so would they be found


def test_each_job_is_among_those_of_enough_users(jobs):
    """By who knows how groups are made, and has all jobs."""
    groups = defaultdict(anonymous.Group)
    for job in jobs:
        groups[anonymous.key_of(job)].add({job["uid"]}, {"jobs": 1})
    left_out = anonymous.widen(groups)
    users, count = defaultdict(set), Counter()
    for job in jobs:
        key = anonymous.key_of(job)
        while key not in groups:
            key = key[:-1]
        users[key].add(job["uid"])
        count[key] += 1
    assert left_out == 0 and {len(key) for key in groups} > {4, 7}
    assert min(map(len, users.values())) >= 5
    assert count == {key: group.sums["jobs"] for key, group in groups.items()}


def test_sums_are_those_of_all_jobs(jobs):
    rows, _ = anonymous.rows([jobs[:1500], jobs[1500:]])
    for month in ("2026-09", "2026-10", "2026-11"):
        of_jobs = [job for job in jobs if job["day"].startswith(month)]
        of_rows = [row for row in rows if row["month"] == month]
        assert sum(row["jobs"] for row in of_rows) == len(of_jobs)
        for name in ("time_s", "energy_j", "nodes"):
            whole = sum(job[name] for job in of_jobs)
            assert sum(row[name] for row in of_rows) == pytest.approx(whole, rel=2e-3)


def alike(*whose):
    """Jobs alike of cluster, uid and user: the rows of all of them, where they are in none."""
    jobs = [
        {
            **{**NOTHING, "day": "2026-11-21", "time_s": 10.0, "nodes": 1, "cluster": cluster},
            **{"energy_uj": 10**8, "energy_j": 100.0, "uid": uid, "user": user},
            **{"energy_systematic_uj": 1e6, "energy_random_uj": 1e5},
        }
        for cluster, uid, user in whose
    ]
    rows, left_out = anonymous.rows([jobs[:3], jobs[3:]])
    assert sum(row["jobs"] for row in rows) + left_out == len(jobs)
    return rows


def test_a_user_of_many_clusters_is_one():
    """His uid may be another one on each."""
    assert not alike(*((f"c{at}", 1000 + at, "ann") for at in range(5)))
    assert alike(*((f"c{at}", 1000, f"user{at}") for at in range(5)))


def test_who_may_be_one_is_one():
    """Whom Slurm did not name beside a job it may have named beside another, or elsewhere."""
    nameless = [("c0", 1000 + at, None) for at in range(4)]
    assert alike(*nameless, ("c0", 1004, ""))
    assert alike(*nameless, ("c0", 1004, "ann"))
    assert not alike(*nameless, ("c0", 1003, "ann"))
    assert not alike(*nameless, ("c1", 1003, "ann"))
    assert not alike(*nameless, ("c1", 1003, None))
    named = [(f"c{at}", 1000 + at, "ann") for at in range(2)]
    assert not alike(*nameless, *named, ("c1", 1000, "bob"))


def test_a_nameless_one_may_be_any_of_his_uid():
    """He may be bob, who is there by name, as well as eve."""
    four = [("a", uid, name) for uid, name in enumerate(("ann", "bob", "cat", "dan"))]
    rows = alike(*four, ("a", 1000, None), ("b", 1000, "bob"), ("c", 1000, "eve"))
    assert [row["cluster"] for row in rows] == [None]


@pytest.fixture
def shared(site):
    """Six users' jobs of 100 J; the last one has a larger one, too, and one without energy."""
    for user in range(6):
        site.leave(1 + user, f"n{user}", uid=1000 + user)
    site.leave(7, "n7", accounts=[builders.account(energy_uj=10**9)], uid=1005)
    site.leave(8, "n7", accounts=[], missing="dead", uid=1005)
    site.out("merge")
    return site


WORDS = ("report", "jobs", "--all", "--anonymous", "--format", "json")


def test_who_is_alone_with_a_job_is_in_no_row(shared):
    code, out, err = shared.run(*WORDS)
    (row,) = json.loads(out)
    assert code == 0 and "2 runs of jobs are left out" in err
    assert list(row) == list(anonymous.COLUMNS)
    assert (row["cluster"], row["month"], row["estimated"]) == ("demo", "2026-09", False)
    assert (row["jobs"], row["nodes"], row["energy_j"], row["time_s"]) == (6, 6, 600, 60)
    error_j = 2 * math.hypot(6 * 1, math.sqrt(6) * 0.1)
    assert row["energy_error_j"] == pytest.approx(error_j, rel=5e-3)


def test_a_parquet_file_of_no_rows_has_the_types_of_others(shared):
    parquet = pytest.importorskip("pyarrow.parquet")
    whole, none = (shared.folder / name for name in ("whole.parquet", "none.parquet"))
    words = ("report", "jobs", "--all", "--anonymous", "--out")
    shared.out(*words, str(whole))
    shared.out(*words, str(none), "--since", "2999-01-01")
    assert parquet.read_schema(none) == parquet.read_schema(whole)


def test_steps_are_not_told(shared):
    assert "--steps: goes without --anonymous" in shared.refuses(*WORDS, "--steps")
    said = shared.refuses("report", "jobs", "--anonymous")
    assert "--anonymous: goes with --all" in said
