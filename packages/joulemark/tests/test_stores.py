# The same merges in SQLite and in real servers of MariaDB and PostgreSQL; upgrades; crowds.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import contextlib
import importlib
import json
import random
import signal
import subprocess
import sys
import threading
import time

import builders
import databases
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joulemark import cli, config, store
from joulemark.errors import UserError
from joulemark.store import corrections, jobs, node_sums, nodes, place, schema, sums
from joulemark.store.session import LOCK_TIMEOUT_S
from joulemark.store.whose import Whose, runs


@pytest.fixture(scope="session", params=["sqlite", "mariadb", "postgresql"])
def server(request):
    """None for SQLite, else a server that runs as long as the tests."""
    if request.param == "sqlite":
        yield None
        return
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(databases.SERVERS[request.param]())
        except databases.Missing as missing:
            pytest.skip(str(missing))
        yield made


class Stores:
    """Makes sites with stores of one kind."""

    def __init__(self, server, tmp_path_factory):
        self.server = server
        self._folders = tmp_path_factory

    def site(self):
        """A folder with an empty record_dir and a configuration with an empty store."""
        folder = self._folders.mktemp("site")
        (folder / "records").mkdir()
        where = self.server.database() if self.server else folder / "store.sqlite"
        text = f"cluster: demo\nrecord_dir: {folder}/records\nstore: {where}\n"
        if self.server:
            text += f"store_password_file: {self.server.password_file}\n"
        (folder / "joulemark.yaml").write_text(text)
        return folder


@pytest.fixture(scope="module")
def stores(server, tmp_path_factory):
    return Stores(server, tmp_path_factory)


@pytest.fixture
def folder(stores, monkeypatch):
    """One site, and the command knows it."""
    made = stores.site()
    monkeypatch.setenv("JOULEMARK_CONFIG", str(made / "joulemark.yaml"))
    return made


def place_of(folder):
    return config.load(folder / "joulemark.yaml").store


def rows_of(folder, job=12):
    with store.reading(place_of(folder)) as session:
        return jobs.job_rows(session, "demo", job)


def everything(folder):
    """All that the store holds but the order of numbers that the database chose."""
    with store.reading(place_of(folder)) as session:
        payers = dict(session.rows("SELECT id, UserName FROM payer"))
        names = ", ".join(jobs.NAMES)
        job_rows = session.rows(f"SELECT {names} FROM job_run ORDER BY Cluster, Job, Run, Step")
        at = jobs.NAMES.index("Payer")
        return (
            [(*row[:at], payers.get(row[at]), *row[at + 1 :]) for row in job_rows],
            session.rows(
                "SELECT cluster, job, node, run_key, complete, end_ns, digest, body FROM node_run"
                " ORDER BY cluster, job, node, run_key"
            ),
            session.rows("SELECT * FROM slurm_run ORDER BY cluster, job, restart"),
        )


def test_a_job_goes_in_and_comes_out_exactly(folder, capsys):
    energy_uj = 123_456_789_012_345
    accounts = [
        builders.account(step, energy_uj, uncertainty_random_uj=1 / 3, gap_seconds=0.1)
        for step in ("job", "Ä ü 漢 🔋 '\"%s?\\")
    ]
    builders.write(folder / "records", builders.record(accounts=accounts, uid=2**32 - 1))
    assert cli.main(["merge"]) == 0
    assert capsys.readouterr().out.startswith("12\t\tEnergy: 123456789.0 J")
    job, step = rows_of(folder)
    assert job["ConsumedEnergy_uj"] == energy_uj and job["Uid"] == 2**32 - 1
    assert job["UncertaintyRandom_uj"] == 1 / 3 and job["GapSeconds"] == 0.1
    assert step["JobIDRaw"] == "12.Ä ü 漢 🔋 '\"%s?\\"


def test_many_jobs_come_out_as_each_alone(folder, monkeypatch):
    monkeypatch.setattr(jobs, "ASKED_AT_ONCE", 3)
    for job in range(1, 9):
        accounts = [builders.account(step, 10**6 * job) for step in ("job", "batch", "0")]
        builders.write(folder / "records", builders.record(job, accounts=accounts))
    assert cli.main(["merge"]) == 0
    with store.reading(place_of(folder)) as session:
        found = jobs.rows_of_jobs(session, "demo", range(1, 11))
        assert found == {job: jobs.job_rows(session, "demo", job) for job in range(1, 11)}
    assert [row["JobIDRaw"] for row in found[8]] == ["8", "8.0", "8.batch"] and found[9] == []


def test_merging_twice_changes_nothing(folder, capsys):
    for lines in (1, 0):
        for node in ("n1", "n2"):
            builders.write(folder / "records", builders.record(node=node))
        assert cli.main(["merge", "--job", "12", "--nodes", "n[1-3]", "--wait", "0"]) == 0
        state = everything(folder)
        assert capsys.readouterr().out.count("\n") == lines
        assert cli.main(["merge"]) == 0
        assert capsys.readouterr().out == ""
        assert everything(folder) == state


EXPLAIN = {"sqlite": "EXPLAIN QUERY PLAN", "mariadb": "EXPLAIN", "postgresql": "EXPLAIN"}
IN_BATCHES = {
    "sqlite": "SEARCH job_run USING PRIMARY KEY",
    "mariadb": "'range', 'PRIMARY",
    "postgresql": "Index Cond: (ROW(",
}
WITHOUT_ROWS = {
    "sqlite": "USING COVERING INDEX job_run_sums",
    "mariadb": "Using where; Using index",
}
WITHOUT_BODIES = {
    "sqlite": "USING COVERING INDEX node_run_use",
    "mariadb": "'Using where; Using index'",
    "postgresql": "Index Only Scan using node_run_use",
}


@contextlib.contextmanager
def asked(session, table):
    """How the database answers what it is asked of a table."""
    rows, plans = session.rows, []

    def explained(sql, values=()):
        if f" {table} " in sql:
            plans.append(str(rows(f"{EXPLAIN[session.place.kind]} {sql}", values)))
        return rows(sql, values)

    if session.place.kind == "postgresql":  # it would read so few rows at once
        session.run("SET enable_seqscan = off")
        session.run("SET enable_bitmapscan = off")
    session.rows = explained
    yield plans


def test_every_record_comes_once_and_by_the_index(folder, monkeypatch):
    """Without it each batch would read the store from its begin."""
    for job in range(1, 300):
        accounts = [builders.account(step) for step in ("job", "0")]
        builders.write(folder / "records", builders.record(job, accounts=accounts))
    assert cli.main(["merge"]) == 0
    monkeypatch.setattr(sums, "BATCH", 7)
    with store.reading(place_of(folder)) as session, asked(session, "job_run") as plans:
        found = [row for batch in sums.all_rows(session, sums.Chosen(), True) for row in batch]
        assert [row["Job"] for row in found] == [job for job in range(1, 300) for _ in range(2)]
        assert [row["Step"] for row in found] == ["0", "job"] * 299
        assert IN_BATCHES[session.place.kind] in plans[-1]


JOBS = {  # who was who changes from cluster to cluster, and with the years
    1: ("demo", 1, "ada", "red"),
    2: ("demo", 2, "bob", "red"),
    3: ("demo", 2, "bob", "blue"),
    4: ("demo", 1, "", ""),  # Slurm did not say whose
    5: ("other", 1, "bob", "blue"),
    6: ("other", 1, "", ""),
    7: ("other", 7, "ada", "blue"),
    8: ("demo", 1, "before", "blue"),
}
WHOSE = {
    Whose("demo", 1, "ada"): [1, 4, 7],
    Whose("demo", 1, "ada", ("red",)): [1, 2, 4, 7],
    Whose("demo", 2, "bob", ("red", "green")): [1, 2, 3, 5],
    Whose("other", 1, "bob"): [2, 3, 5, 6],
    Whose("demo", 1, None): [4],
    Whose("demo", 3, "carol"): [],
    Whose("demo", 3, "Ada"): [],
}


def test_jobs_of_a_user_and_of_accounts(folder, monkeypatch):
    """With their steps, whose rows do not say whose they are."""
    yaml = (folder / "joulemark.yaml").read_text()
    for job, (cluster, uid, user, account) in JOBS.items():
        (folder / "joulemark.yaml").write_text(yaml.replace("demo", cluster, 1))
        accounts = [builders.account(step) for step in ("job", "0")]
        record = builders.record(job, accounts=accounts, uid=uid, cluster=cluster)
        builders.write(folder / "records", record)
        for name, value in (("ID", job), ("USER", user), ("ACCOUNT", account)):
            monkeypatch.setenv(f"SLURM_JOB_{name}", str(value))
        assert cli.main(["merge", "--job", str(job)]) == 0
        assert cli.main(["store", "correct", str(job), "--charge", "50%", "--why", "ticket"]) == 0
    clusters = ("demo", "other")
    with store.reading(place_of(folder)) as session:
        for whose, expected in WHOSE.items():
            for chosen in (sums.Chosen(whose=whose), sums.Chosen(0, 10**6, clusters, whose)):
                batches = list(sums.all_rows(session, chosen, True))
                found = sorted(row["Job"] for batch in batches for row in batch)
                assert found == sorted(2 * expected)
                top = sums.top_jobs(session, 9, chosen)
                assert sorted(row["Job"] for row in top) == expected
            theirs = [job for job, (at, *_) in JOBS.items() if runs(session, whose, at, job)]
            assert theirs == expected
            assert [one.job for one in corrections.all_of(session, whose)] == expected
            uses = sums.uses(session, None, sums.Chosen(whose=whose))
            assert sum(use.jobs for use in uses) == len(expected)


# PostgreSQL knows how many jobs a day has.
@pytest.mark.parametrize("server", WITHOUT_ROWS, indirect=True)
def test_few_jobs_of_some_days_are_not_sought_among_all_rows(stores, folder):
    for job in range(1, 30):
        accounts = [builders.account(energy_uj=job, start_s=job * 86_400)]
        builders.write(folder / "records", builders.record(job, accounts=accounts))
    assert cli.main(["merge"]) == 0
    with store.reading(place_of(folder)) as session, asked(session, "job_run") as plans:
        first = builders.START_NS // 10**9 // 86_400
        days = sums.Chosen(first + 1, first + 10)
        assert [row["Job"] for row in sums.top_jobs(session, 2, days)] == [9, 8]
        for chosen in (days, sums.Chosen(whose=Whose("demo", 1000, None))):
            assert sums.unmeasured(session, chosen) == 0
        assert all(WITHOUT_ROWS[session.place.kind] in plan for plan in plans)
        assert len(plans) == 3


SEARCHED = {
    "sqlite": "SEARCH job_run USING COVERING INDEX job_run_sums (Payer=? AND Month=?)",
    "mariadb": "job_run_sums",
    "postgresql": "Index Only Scan using job_run_sums",
}


def test_jobs_of_which_no_node_told_are_counted_without_a_look_at_the_others(folder):
    for job in range(1, 30):
        lost = {} if job > 3 else {"accounts": [], "missing": "joulemarkd is dead"}
        builders.write(folder / "records", builders.record(job, **lost))
    assert cli.main(["merge"]) == 0
    with store.reading(place_of(folder)) as session, asked(session, "job_run") as plans:
        (use,) = sums.undated(session, sums.Chosen())
        assert (use.cluster, use.jobs, use.energy_uj, use.energy_jobs) == ("demo", 3, None, 0)
        assert SEARCHED[session.place.kind] in plans[-1]
        assert [sums.unmeasured(session, sums.Chosen(*days)) for days in ((), (0,))] == [3, 0]


def test_nodes_are_summed_from_the_index_that_has_no_bodies(folder):
    """Bodies are nearly all of a store."""
    for job in range(1, 30):
        builders.write(folder / "records", builders.record(job))
    assert cli.main(["merge"]) == 0
    with store.reading(place_of(folder)) as session, asked(session, "node_run") as plans:
        (found,) = node_sums.node_uses(session, sums.Chosen())
        assert found.jobs == 29
        assert WITHOUT_BODIES[session.place.kind] in plans[-1]


def test_a_crowd_of_merges_ends_as_one_merge_would(stores):
    """Processes with random subsets of the same files, in random order, all at once."""
    records = [
        builders.record(job, f"n{node}", [builders.account("job", job * node * 1_000_003)])
        for job in range(1, 5)
        for node in range(1, 6)
    ]
    alone, crowd = stores.site(), stores.site()
    for record in records:
        builders.write(alone / "records", record)
    merge(alone).wait()
    for seed in range(2):
        chosen = random.Random(seed).sample(records, len(records))
        for start in range(0, len(chosen), 7):
            for record in chosen[start : start + 7]:
                builders.write(crowd / "records", record)
            running = [merge(crowd) for _ in range(3)]
            for process in running:
                _, err = process.communicate(timeout=120)
                assert (process.returncode, err) == (0, "")
    assert everything(crowd) == everything(alone)


def merge(folder):
    return subprocess.Popen(
        [sys.executable, "-m", "joulemark", "merge"],
        env={"JOULEMARK_CONFIG": str(folder / "joulemark.yaml"), "PYTHONPATH": ":".join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


node_records = st.lists(
    st.builds(
        lambda node, restart, energy, later, missing: builders.record(
            node=node,
            restart=restart,
            missing="joulemarkd was dead" if missing else None,
            accounts=[builders.account("job", energy, seconds=10 + later)],
        ),
        st.sampled_from(["n1", "n2", "n3"]),
        st.sampled_from([0, 1]),
        st.integers(0, 10**15),
        st.integers(0, 2),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


# Hypothesis' first tries may be ten times the smallest example: six records are sometimes more.
@settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow],
)
@given(
    node_records.flatmap(lambda all_: st.tuples(st.just(all_), st.permutations(all_))),
    st.integers(0, 6),
)
def test_order_subsets_and_repetition_do_not_matter(stores, orders, cut):
    first, second = orders
    one, other = stores.site(), stores.site()
    for record in first:
        put(one, record)
    for part in (second[:cut], second[cut:], first[:cut]):
        for record in part:
            put(other, record)
    assert everything(one) == everything(other)


def put(folder, record):
    builders.write(folder / "records", record)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOULEMARK_CONFIG", str(folder / "joulemark.yaml"))
        assert cli.main(["merge"]) == 0


OLD_JOBS = [(1, "n1", None), (1, "n2", None), (2, "n1", "joulemarkd was dead")]


def make_old_store(folder):
    """A store of version 1 with two jobs, filled by that version's own statements."""
    old = importlib.import_module(f"joulemark.store.{place_of(folder).kind}")
    with contextlib.closing(old.writer(place_of(folder))) as session:
        schema.migrate(session, known=1)
        session.begin()
        for job, node, missing in OLD_JOBS:
            accounts = [] if missing else [builders.account("job"), builders.account("0")]
            record = builders.record(job, node, accounts, missing=missing)
            body = json.dumps(record, sort_keys=True)
            row = ("demo", job, node, 1 if missing else 2, builders.START_NS, body)
            session.run("INSERT INTO node_record VALUES (?, ?, ?, ?, ?, ?)", row)
        guess = ("demo", 1, "n3", 0, 0, json.dumps(builders.record(1, "n3", [], missing="?")))
        session.run("INSERT INTO node_record VALUES (?, ?, ?, ?, ?, ?)", guess)
        for node in ("n1", "n2", "n3"):
            session.run("INSERT INTO job_node VALUES (?, ?, ?)", ("demo", 1, node))
        columns = (
            "Cluster, Uid, NNodes, Nodes, Start_ns, ConsumedEnergy_uj, Estimated, Samples,"
            " GapSeconds, SplitPolicy, Missing, Regions, JobIDRaw, Job, Step"
        )
        same = ("demo", 1000, 3, "n1,n2,n3", builders.START_NS, 200_000_000, 0, 22, 0.0, "p")
        for step, raw in (("job", "1"), ("0", "1.0")):
            session.run(
                f"INSERT INTO job_record ({columns}) VALUES ({', '.join('?' * 15)})",
                (*same, "n3: ?", "[]", raw, 1, step),
            )
        session.commit()


def test_many_rows_replace_those_of_the_same_key(folder):
    key, texts = ("cluster", "job"), ["a\\b", "tab\tline\n", "ä'\""]
    with store.writing(config.load(folder / "joulemark.yaml").store) as session:
        for tries in (1, 2):
            rows = [(texts[job % 3], job, tries) for job in range(500)]
            session.upsert("pending", (*key, "tries"), key, rows)
        found = session.rows("SELECT cluster, job, tries FROM pending ORDER BY job")
    assert [tuple(row) for row in found] == rows


def test_a_store_of_version_1_is_upgraded_in_place(folder, capsys):
    make_old_store(folder)
    with pytest.raises(UserError, match="`joulemark merge` makes or upgrades it"):
        rows_of(folder)
    assert cli.main(["merge"]) == 0
    job, step = rows_of(folder, 1)
    assert (job["ConsumedEnergy_uj"], job["Missing"], job["Run"]) == (200_000_000, "n3: ?", 0)
    assert (step["JobIDRaw"], step["Payer"], job["Month"]) == ("1.0", None, 202609)
    with store.reading(place_of(folder)) as session:
        assert session.rows("SELECT Cluster, Uid FROM payer") == [("demo", 1000)]
        assert not session.has_table("job_record") and not session.has_table("node_record")
    builders.write(folder / "records", builders.record(1, "n3"))
    assert cli.main(["merge"]) == 0
    assert "\tEnergy: 300.0 J" in capsys.readouterr().out
    assert rows_of(folder, 1)[0]["Missing"] is None


@pytest.mark.parametrize(
    ("version", "broken_at"),
    [
        *((2, at) for at in (0, 3, 5, 7, 9, 11)),
        *((3, at) for at in range(7)),
        *((5, at) for at in (0, 3, 5, 6)),
        *((10, at) for at in (0, 6, 7, 8, 9, 16)),
    ],
)
def test_an_upgrade_that_was_cut_off_is_taken_up(folder, monkeypatch, version, broken_at):
    """Servers that cannot undo a schema's change are left half way; the next merge goes on."""
    make_old_store(folder)

    def cut(session):
        raise KeyboardInterrupt

    *before, steps = schema.VERSIONS[:version]
    broken = [*steps[:broken_at], cut, *steps[broken_at + 1 :]]
    with monkeypatch.context() as patch:
        patch.setattr(schema, "VERSIONS", [*before, broken])
        with pytest.raises(KeyboardInterrupt), store.writing(place_of(folder)):
            pass
    assert cli.main(["merge"]) == 0
    assert [row["ConsumedEnergy_uj"] for row in rows_of(folder, 1)] == [200_000_000, 200_000_000]
    with store.reading(place_of(folder)) as session:
        found = node_sums.node_uses(session, sums.Chosen())
        (used,) = sums.uses(session, None, sums.Chosen())
    assert [tuple(one[1:5]) for one in found] == [("n1", 1, 1, 10**8), ("n2", 1, 1, 10**8)]
    assert (used.energy_uj, used.storage_uj, used.storage_jobs) == (200_000_000, None, 0)


def call_older(session, version):
    """A store of this version, of which the next merge takes it for one."""
    for table in ("pruned_job", "pruned_zone", "correction"):
        session.run(f"DROP TABLE {table}")
    session.run(schema.FOURTH[0].format_map(session.types))  # which the ninth adds to
    session.run("DROP INDEX job_run_sums{of_job_run}".format_map(session.types))
    for name in schema.ADDED_BY_TENTH:
        session.run(f"ALTER TABLE job_run DROP COLUMN {name}")
    for name in schema.KEPT_ADDED_BY_TENTH:
        session.run(f"ALTER TABLE kept DROP COLUMN {name}")
    session.run(schema.SUMS_INDEX_OF_THIRD)
    for table in ("migration", "migration_step"):
        session.run(f"DELETE FROM {table} WHERE version > ?", (version,))


def test_what_a_store_of_version_5_took_for_an_account_is_none(folder):
    builders.write(folder / "records", builders.record(1, "n1"))
    with store.writing(place_of(folder)) as session:
        call_older(session, 5)
        for job, account in ((1, "(null)"), (2, "blue")):
            row = ("demo", job, 0, "n1", nodes.NO_RECORD, "ada", account, "main")
            session.upsert("slurm_run", nodes.RUN_COLUMNS, nodes.RUN_KEY, [row])
            nodes.payer(session, "demo", 1000, "ada", account, "main", "")
    assert cli.main(["merge"]) == 0
    with store.reading(place_of(folder)) as session:
        assert {account for (account,) in session.rows("SELECT Account FROM payer")} == {
            "",
            "blue",
        }
        assert {use.account for use in sums.uses(session, None, sums.Chosen())} == {""}


def test_a_correction_of_a_store_of_version_7_may_be_followed_by_another(folder):
    """What the job was charged before is not known: it is by today's factors."""
    yaml = folder / "joulemark.yaml"
    bare = yaml.read_text()
    builders.write(folder / "records", builders.record(12))
    correct = ["store", "correct", "12", "--why", "ticket", "--charge"]
    yaml.write_text(bare + "price_per_kwh: 3.6\ncurrency: EUR\n")
    assert cli.main(["merge"]) == 0 and cli.main([*correct, "50%"]) == 0
    with store.writing(place_of(folder)) as session:
        (made,) = corrections.all_of(session)
        call_older(session, 7)
        corrections.add(session, made)
    for price, share, cost in ((7.2, "100%", 2e-4), (1, "50%", 1e-4)):
        yaml.write_text(f"{bare}price_per_kwh: {price}\ncurrency: EUR\n")
        assert cli.main([*correct, share]) == 0
        assert rows_of(folder)[0]["Cost"] == pytest.approx(cost)


def test_records_of_a_store_of_version_6_are_packed_once(folder, capsys):
    """An upgrade that was cut off left one of two as it was."""
    for node in ("n1", "n2"):
        builders.write(folder / "records", builders.record(node=node))
    assert cli.main(["merge"]) == 0
    with store.writing(place_of(folder)) as session:
        plain = json.dumps(builders.record(node="n2"))
        session.run("UPDATE node_run SET body = ? WHERE node = ?", (plain, "n2"))
        call_older(session, 6)
    builders.write(folder / "records", builders.record(node="n3"))
    assert cli.main(["merge"]) == 0
    assert "\tEnergy: 300.0 J" in capsys.readouterr().out
    bodies = [row[-1] for row in everything(folder)[1]]
    assert len(bodies) == 3 and not any("{" in body for body in bodies)


def test_jobs_of_several_days_are_found_in_a_store_of_version_2(folder, capsys):
    """In UTC, until a merge says another zone; a job that ends at midnight saw one day."""
    day_ns = 86_400 * 10**9
    old = importlib.import_module(f"joulemark.store.{place_of(folder).kind}")
    later = (*schema.ADDED_BY_THIRD, *schema.ADDED_BY_TENTH)
    known = [name for name in jobs.NAMES if name not in later]
    with contextlib.closing(old.writer(place_of(folder))) as session:
        schema.migrate(session, known=2)
        session.begin()
        payer = nodes.payer(session, "demo", 1000, "alice", "blue", "main", "")
        for job, end_ns in enumerate((21_000 * day_ns, 21_000 * day_ns + 1, 21_003 * day_ns)):
            start_ns = 21_000 * day_ns - day_ns // 4
            row = {**dict.fromkeys(known), **dict.fromkeys(schema.JOB_RUN_NEEDED, 0)}
            row |= {"Nodes": "n1", "SplitPolicy": "", "Faults": "[]", "Regions": "[]"}
            row |= {"Cluster": "demo", "Job": job, "Run": 0, "Step": "job", "Payer": payer}
            row |= {"Day": 20_999, "Month": 202706, "Start_ns": start_ns, "End_ns": end_ns}
            row |= {"ConsumedEnergy_uj": 13 * 10**9}
            session.insert("job_run", known, [tuple(row.values())])
        session.commit()
    assert cli.main(["merge"]) == 0
    assert [rows_of(folder, job)[0]["LastDay"] for job in range(3)] == [None, 21_000, 21_002]
    assert [rows_of(folder, job)[0]["LastMonth"] for job in range(3)] == [None, 202707, 202707]
    capsys.readouterr()
    assert cli.main(["report", "usage", "--by", "day", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["jobs"] for one in found] == [3, 2, 1, 1]
    assert [one["energy_uj"] // 10**9 for one in found] == [26, 4, 4, 4]
    assert sum(one["energy_uj"] for one in found) == 39 * 10**9
    assert cli.main(["report", "usage", "--until", "2027-06-30", "--format", "json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["user"], one["jobs"]) == ("alice", 3)


def test_a_charge_is_corrected_and_an_old_job_pruned(folder, capsys):
    """A corrected charge stays in the sums when its job goes; one of more than 63 bits, too."""
    energy_uj, old = 4 * 10**18, {"start_ns": 10**18, "end_ns": 10**18 + 2 * 86_400 * 10**9}
    for job, times in ((11, old), (12, old), (13, {})):
        account = builders.account(energy_uj=energy_uj, **times)
        builders.write(folder / "records", builders.record(job=job, accounts=[account]))
    assert cli.main(["merge"]) == 0
    assert cli.main(["store", "correct", "12", "--charge", "50%", "--why", "ticket 'é%s'"]) == 0
    assert cli.main(["store", "prune", "--keep", "5y"]) == 0
    assert "pruned 2 jobs" in capsys.readouterr().out
    assert cli.main(["report", "usage", "--format", "json"]) == 0
    (group,) = json.loads(capsys.readouterr().out)
    assert (group["energy_uj"], group["jobs"]) == (10 * 10**18, 3)
    builders.write(folder / "records", builders.record(11, accounts=[], missing="late"))
    assert cli.main(["merge"]) == 0
    assert "of a job that was pruned: left out" in capsys.readouterr().err
    assert [len(rows_of(folder, job)) for job in (11, 12, 13)] == [0, 0, 1]
    assert cli.main(["store", "corrections", "--format", "json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["job_id_raw"], one["share"], one["why"]) == (12, 0.5, "ticket 'é%s'")


def test_a_store_of_a_newer_version_is_refused(folder, capsys):
    cli.main(["merge"])
    with store.writing(place_of(folder)) as session:
        session.run("INSERT INTO migration VALUES (?, ?)", (99, "later"))
    builders.write(folder / "records", builders.record())
    assert cli.main(["merge"]) == 1
    assert "written by a newer joulemark (store version 99" in capsys.readouterr().err
    assert (folder / "records" / "demo.12.n1.json").exists()


def test_a_store_that_another_merge_holds_is_not_called_damaged(folder, monkeypatch, capsys):
    place = place_of(folder)
    kind = importlib.import_module(f"joulemark.store.{place.kind}")
    monkeypatch.setattr(kind, "LOCK_TIMEOUT_S", 1)
    assert cli.main(["merge"]) == 0
    said = f"{place}: another merge holds the store: try again"
    with store.writing(place):
        assert cli.main(["merge"]) == 1
    assert capsys.readouterr().err == f"joulemark: {said}\n"
    with pytest.raises(UserError) as error, store.writing(place) as session:
        session.commit()  # what a merge does between its transactions
        with store.writing(place):
            session.begin()
    assert str(error.value) == said


@pytest.mark.parametrize("server", ["mariadb", "postgresql"], indirect=True)  # SQLite is deaf
def test_who_waits_for_a_store_can_leave(folder):
    place = place_of(folder)
    assert cli.main(["merge"]) == 0
    interrupts = threading.Timer(0.5, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    began_s = time.monotonic()
    with store.writing(place), pytest.raises(KeyboardInterrupt):  # wherever it comes
        interrupts.start()
        with store.writing(place):
            pass
    assert time.monotonic() - began_s < LOCK_TIMEOUT_S / 2
    assert cli.main(["merge"]) == 0


@pytest.mark.parametrize("rows", [1, 300])  # PostgreSQL takes many another way
@pytest.mark.parametrize("way", ["insert", "upsert"])
def test_texts_are_kept_letter_for_letter(folder, rows, way):
    """Also what means something in databases' own notations of rows."""
    marks = [
        "",
        "\\",
        "\\N",
        "\\.",
        "a\tb",
        "a\nb",
        "a\rb",
        "%s %%",
        "'\"",
        "NULL",
        "é→\U0001f600",
    ]
    names = sorted((f"{mark}{number}", mark) for mark in marks for number in range(rows))
    columns = ("Cluster", "Name")
    cli.main(["merge"])
    with store.writing(place_of(folder)) as session:
        session.run("DELETE FROM time_zone")
        if way == "insert":
            session.insert("time_zone", columns, names)
        else:
            session.upsert("time_zone", columns, ["Cluster"], names)
        assert sorted(session.rows("SELECT Cluster, Name FROM time_zone")) == names


@pytest.mark.parametrize("server", ["mariadb", "postgresql"], indirect=True)  # SQLite has none
def test_password_never_shows(stores, folder, capsys):
    stores.server.password_file.write_text("wrong-secret\n")
    try:
        assert cli.main(["merge"]) == 1
        err = capsys.readouterr().err
        assert "the store cannot be used" in err and "wrong-secret" not in err
        stores.server.password_file.chmod(0o644)
        assert cli.main(["merge"]) == 2
        assert "holds a password, but others may read it" in capsys.readouterr().err
    finally:
        stores.server.password_file.write_text(databases.PASSWORD + "\n")
        stores.server.password_file.chmod(0o600)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("store.sqlite", "neither an absolute path nor a URL"),
        ("oracle://host/db", "must be one of"),
        ("postgresql://joe:hush@host/db", "move it to a file"),
        ("postgresql://joe@host", "names no database"),
        ("mysql://joe@host/db?charset=latin1", "'charset' is not one of"),
    ],
)
def test_wrong_places_are_explained(url, problem):
    with pytest.raises(ValueError, match=problem) as caught:
        place.Place.parse(url)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "module"),
    [("mysql://joe@host/db", "pymysql"), ("postgresql://joe@host/db", "psycopg2")],
)
def test_a_missing_driver_is_no_server_that_does_not_run(monkeypatch, url, module):
    there = place.Place.parse(url)
    backend = importlib.import_module(f"joulemark.store.{there.kind}")  # comes back afterwards
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, backend.__name__)
    for use in (store.reading, store.writing):
        with pytest.raises(UserError) as caught, use(there):
            pass
        said = f"the Python module {module} is missing: pip install 'joulemark[{there.kind}]'"
        assert said in str(caught.value) and "cannot be used" not in str(caught.value)


def test_places():
    assert place.Place.parse("/a/b.sqlite").path.as_posix() == "/a/b.sqlite"
    assert place.Place.parse("sqlite:////a/b.sqlite").path.as_posix() == "/a/b.sqlite"
    url = "postgresql+psycopg2://joe%40x@db.site:5433/energy?sslmode=verify-full"
    there = place.Place.parse(url)
    assert (there.kind, there.user) == ("postgresql", "joe@x")
    assert (there.host, there.port) == ("db.site", 5433)
    assert there.parameters == {"sslmode": "verify-full"}
