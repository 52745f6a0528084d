# Whose jobs and sums a caller is shown, by what the real sacctmgr says of slurmdbd and of him.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import os
import pwd
import re
from pathlib import Path

import builders
import pytest

DATA = Path(__file__).parent / "data"
CALLER = pwd.getpwnam("daemon")
JOBS = {  # the last is of who had the caller's uid before him
    1: (CALLER.pw_uid, "daemon", "science"),
    2: (4000, "user4000", "science"),
    3: (CALLER.pw_uid, "former", "physics"),
}
ALL = set(JOBS)
SACCTMGR = """\
#!/bin/sh
case "$*" in
"show configuration") cat {folder}/configuration;;
"-nP show user name=daemon withcoord format=AdminLevel,Coordinators") cat {folder}/user;;
*ParentName*) printf "demo|%s||%s\\n" root "" physics root science root;;
*) echo "sacctmgr: error: unknown $*" >&2; exit 1;;
esac
"""


@pytest.fixture
def caller(site, monkeypatch):
    """An ordinary user who can read a store of three jobs, each with a step; nobody's store."""
    for job, (uid, user, account) in JOBS.items():
        site.leave(job, uid=uid, accounts=[builders.account(step) for step in ("job", "0")])
        for name, value in (("ID", job), ("USER", user), ("ACCOUNT", account)):
            monkeypatch.setenv(f"SLURM_JOB_{name}", str(value))
        site.out("merge", "--job", str(job))
        site.out("store", "correct", str(job), "--charge", "50%", "--why", "a ticket")
    monkeypatch.setenv("PATH", f"{site.folder}/bin:/usr/bin:/bin")
    (site.folder / "bin").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: CALLER.pw_uid)
    return site


def slurm(site, private: str, user: str = "None|", slurm_user: str = "slurm(64030)") -> None:
    """What slurmdbd hides, and what it says of the user."""
    folder = site.folder / "bin"
    before, name, own = (DATA / "sacctmgr.configuration").read_text().partition("SlurmDBD")
    for key, value in (("PrivateData", private), ("SlurmUser", slurm_user)):
        own = re.sub(rf"(?m)^({key} += ).*$", rf"\g<1>{value}", own)
    (folder / "configuration").write_text(before + name + own)
    (folder / "user").write_text(user and f"{user}\n")
    (folder / "sacctmgr").write_text(SACCTMGR.format(folder=folder))
    (folder / "sacctmgr").chmod(0o755)


def listed(site, *options: str) -> set[int]:
    words = ("report", "jobs", *options, "--format", "json")
    return {one["job_id_raw"] for one in json.loads(site.out(*words))}


def summed(site) -> int:
    """Of how many jobs."""
    return sum(one["jobs"] for one in json.loads(site.out("report", "usage", "--json")))


SHOWN = [
    ("none", "None|", ALL, 3),
    ("accounts,users", "None|", ALL, 3),
    ("jobs", "None|", {1}, 3),
    ("usage", "None|", ALL, 1),
    ("jobs,usage", "None|", {1}, 1),
    ("jobs,usage", "", {1}, 1),
    ("jobs,usage", "None|science", {1, 2}, 2),
    ("jobs,usage", "None|physics,science", ALL, 3),
    ("jobs,usage", "None|sci", {1}, 1),
    ("jobs,usage", "Operator|", ALL, 3),
    ("jobs,usage", "Administrator|", ALL, 3),
]


@pytest.mark.parametrize(("private", "user", "jobs", "count"), SHOWN)
def test_a_user_is_shown_what_slurmdbd_shows_him(caller, private, user, jobs, count):
    slurm(caller, private, user)
    assert listed(caller) == listed(caller, "--since", "2020-01-01") == jobs
    assert listed(caller, "--all") == listed(caller, "--all", "--steps") == jobs
    assert summed(caller) == count
    assert {one["job_id_raw"] for one in corrections(caller)} == jobs


def corrections(site) -> list[dict]:
    return json.loads(site.out("store", "corrections", "--json"))


def test_the_store_is_asked_once_for_the_corrections_of_many_jobs(caller, queries):
    slurm(caller, "jobs", "None|physics,science")
    assert len(corrections(caller)) == len(ALL)
    assert len([sql for sql in queries if "FROM job_run" in sql]) == 1


@pytest.mark.parametrize(("disabled", "jobs"), [("Yes", {1}), ("No", {1, 2})])
def test_a_coordinator_is_no_more_than_a_user_where_slurmdbd_takes_it_from_him(
    caller, disabled, jobs
):
    """From 24.11 on."""
    slurm(caller, "jobs,usage", "None|science")
    with (caller.folder / "bin" / "configuration").open("a") as conf:
        conf.write(f"DisableCoordDBD        = {disabled}\n")
    assert (listed(caller), summed(caller)) == (jobs, len(jobs))
    assert ("science" in caller.run("report", "jobs")[2]) == (disabled == "No")


@pytest.mark.parametrize(
    ("user", "jobs"), [("None|", {1}), ("None|science", {1}), ("Operator|", ALL)]
)
def test_where_sacctmgr_tells_slurm_confs_for_slurmdbds_none_is_shown_more(caller, user, jobs):
    """As 26.05.5's does: PrivateData=none, whatever slurmdbd hides."""
    slurm(caller, "none", user)
    told = caller.folder / "bin" / "configuration"
    own = "StorageType            = accounting_storage/mysql"
    assert own in told.read_text()
    told.write_text(told.read_text().replace(own, own.replace("mysql", "slurmdbd")))
    assert listed(caller) == jobs
    said = caller.run("report", "jobs")[2]
    assert ("slurmdbd's PrivateData is not there" in said) == (jobs != ALL)


def test_slurmuser_is_shown_all(caller):
    slurm(caller, "jobs,usage", slurm_user=f"daemon({CALLER.pw_uid})")
    assert (listed(caller), summed(caller)) == (ALL, 3)


def test_what_is_left_out_is_said_in_a_line(caller):
    why = "slurmdbd.conf has PrivateData=jobs,usage\n"
    slurm(caller, "usage,jobs")
    said = {
        ("report", "jobs"): "listed are",
        ("report", "jobs", "--all", "--format", "csv"): "listed are",
        ("report", "usage"): "summed are",
        ("report", "html"): "listed and summed are",
        ("store", "corrections"): "listed are",
    }
    for words, start in said.items():
        assert caller.run(*words)[2] == f"joulemark: {start} your own jobs alone: {why}"
    slurm(caller, "usage,jobs", "None|physics,science")
    whose = "your own jobs and those of accounts that you coordinate (physics, science)"
    assert caller.run("report", "jobs")[2] == f"joulemark: listed are {whose} alone: {why}"
    for private, user in (("none", "None|"), ("jobs,usage", "Operator|")):
        slurm(caller, private, user)
        assert [caller.run(*words)[2] for words in said] == [""] * len(said)


def test_a_job_that_is_not_listed_is_not_told(caller):
    slurm(caller, "jobs")
    code, out, err = caller.run("job", "1", "2")
    assert (code, "Job 1" in out, "Job 2" in out) == (1, True, False)
    assert "listed are your own jobs alone" in err and "job 2: the store has no record" in err
    assert caller.run("job", "1")[2] == ""
    slurm(caller, "none")
    assert "Job 2" in caller.out("job", "2")


OF_EVERYBODY = {
    ("export", "prometheus"): "sums for Prometheus",
    ("report", "nodes"): "sums by node",
    ("report", "usage", "--budget"): "accounts' budgets",
}


@pytest.mark.parametrize("words", OF_EVERYBODY)
def test_sums_of_everybodys_jobs_are_refused_where_slurmdbd_hides_them(caller, words):
    budgets(caller, "physics", "science")
    why = "slurmdbd.conf has PrivateData=usage"
    what = OF_EVERYBODY[words]
    slurm(caller, "usage")
    said = f"joulemark: {what} are of everybody's jobs, which you are not shown: {why}\n"
    assert caller.run(*words) == (1, "", said)
    for private, user in (("jobs", "None|"), ("usage", "Operator|")):
        slurm(caller, private, user)
        assert "science" in caller.out(*words) or words == ("report", "nodes")


def test_a_coordinator_is_shown_his_accounts_budgets(caller):
    budgets(caller, "physics", "science")
    slurm(caller, "usage", "None|science")
    _, out, err = caller.run("report", "usage", "--budget", "--json")
    assert [one["account"] for one in json.loads(out)] == ["science"]
    whose = "budgets are those of accounts that you coordinate (science) alone"
    assert f"joulemark: {whose}: slurmdbd.conf has PrivateData=usage\n" in err


def budgets(site, *accounts: str) -> None:
    rows = "".join(f"{account},1000,2020-01-01,2100-01-01\n" for account in accounts)
    (site.folder / "budgets.csv").write_text(rows)
    site.configure(f"budgets: {site.folder}/budgets.csv\n")


def test_a_page_says_that_it_has_not_all(caller):
    slurm(caller, "jobs,usage")
    page = caller.out("report", "html")
    assert "Sums by node are of everybody" in page
    assert "n1" not in page
    assert "Listed and summed are your own jobs alone" in page
    assert "daemon" in page and "user4000" not in page and "physics" not in page


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (None, "sacctmgr: not found on PATH"),
        ("echo no connection >&2; exit 1", "no connection: does slurmdbd run?"),
        ("echo", "slurmdbd's PrivateData is not there"),
    ],
)
def test_where_slurm_cannot_be_asked_he_is_shown_his_own(caller, monkeypatch, program, why):
    if program is None:
        monkeypatch.setenv("PATH", "/nowhere")
    else:
        (caller.folder / "bin" / "sacctmgr").write_text(f"#!/bin/sh\n{program}\n")
        (caller.folder / "bin" / "sacctmgr").chmod(0o755)
    assert (listed(caller), summed(caller)) == ({1}, 1)
    said = caller.run("report", "jobs")[2]
    assert said.startswith("joulemark: listed are your own jobs alone: whose else Slurm shows you")
    assert why in said and said.count("\n") == 1


def test_who_has_no_name_here_is_shown_jobs_of_his_uid_without_a_user(caller, monkeypatch):
    caller.leave(4, uid=2**31)
    caller.out("merge")
    slurm(caller, "jobs,usage")
    monkeypatch.setattr(os, "geteuid", lambda: 2**31)
    assert (listed(caller), summed(caller)) == ({4}, 1)
    assert f"uid {2**31} has no name on this machine" in caller.run("report", "jobs")[2]


def test_the_stores_owner_and_root_need_no_slurm(caller, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert (listed(caller), summed(caller)) == (ALL, 3)
    owner = CALLER.pw_uid if os.getuid() == 0 else os.getuid()
    os.chown(caller.store, owner, -1)
    monkeypatch.setattr(os, "geteuid", lambda: owner)
    assert (listed(caller), summed(caller)) == (ALL, 3)
