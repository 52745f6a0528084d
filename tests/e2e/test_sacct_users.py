"""`joulemark sacct` as users and an operator run it: what Slurm shows each, without the store; and
its options beside the real sacct's."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from joulemark.slurm import sacctargs
from sacct_getopt import RELEASES

from tests.cluster import ORDINARY_USER, Cluster, ClusterError, wait_for
from tests.cluster.config import service_user
from tests.e2e.jobs import alone
from tests.e2e.outcome import Outcome, comment, ended_well, slurm_version
from tests.e2e.waveform import STEADY

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")

ADA, BOB, OPERATOR = ORDINARY_USER, "daemon", "news"
SHOWN = "Energy,EnergyError,AveWatts,EnergyCPU,EnergyDRAM,EnergyGPU,EnergyRest,EnergyIdle"
SHOWN += ",EnergySystematic,EnergyRandom,PeakWatts,GapSeconds"


def store_of(cluster: Cluster) -> Path:
    text = (cluster.state / "etc" / "joulemark.yaml").read_text()
    return Path(re.search(r"(?m)^store: (.*)$", text)[1].strip("\"'"))


@pytest.fixture(scope="module")
def steady(powered: Callable[..., Cluster]) -> Cluster:
    """Every node draws 100 W; a job can ask for a feature and for a second partition."""
    return powered(STEADY).change(
        topology=dict.fromkeys(("n1", "n2"), "CPUs=2 Features=fast"),
        slurm_conf={"PartitionName": "spare Nodes=ALL"},
    )


@pytest.fixture(scope="module")
def accounts(steady: Cluster) -> Iterator[None]:
    """slurmdbd shows a user jobs of his own associations."""
    users = f"{ADA},{BOB},{OPERATOR}"
    steady.run(["sacctmgr", "-i", "add", "account", "science"])
    steady.run(["sacctmgr", "-i", "add", "user", users, "account=science"])
    steady.run(["sacctmgr", "-i", "modify", "user", OPERATOR, "set", "adminlevel=Operator"])
    yield
    steady.run(["sacctmgr", "-i", "delete", "user", users])
    steady.run(["sacctmgr", "-i", "delete", "account", "science"])


@pytest.fixture(scope="module")
def jobs(steady: Cluster, accounts: None) -> dict[str, Outcome]:
    """One of each user, of several steps, whose comments are there."""
    made = {
        user: ended_well(steady, alone(steady, "srun sleep 1; srun sleep 0.5", user=user))
        for user in (ADA, BOB)
    }
    for done in made.values():
        comment(steady, done.job)
        wait_listed(steady, done.job)
    return made


def wait_listed(cluster: Cluster, job: int) -> None:
    """For seconds after its end sacct has a job by its number, and in no list of all jobs yet."""
    listing = ["sacct", "-anXP", "-o", "JobIDRaw"]
    wait_for(lambda: str(job) in cluster.run(listing).split(), what=f"sacct to list job {job}")


@pytest.fixture
def private(steady: Cluster, jobs: dict[str, Outcome]) -> Iterator[Cluster]:
    """slurmdbd shows users what is theirs alone and an operator all; the store is SlurmUser's."""
    conf, store = steady.state / "etc" / "slurmdbd.conf", store_of(steady)
    before, mode = conf.read_text(), store.stat().st_mode
    try:
        conf.write_text(f"{before}PrivateData=jobs,usage\n")
        restart_slurmdbd(steady)
        store.chmod(0o640)
        yield steady
    finally:
        store.chmod(mode)
        conf.write_text(before)
        restart_slurmdbd(steady)


def restart_slurmdbd(cluster: Cluster) -> None:
    cluster.slurmdbd.stop()
    cluster.slurmdbd.start()
    wait_for(lambda: cluster.run(["sacct", "-X"], check=False), what="slurmdbd to answer")


def numbers_of(cluster: Cluster, job: int, *options: str, user: str | None = None) -> list[float]:
    """The job's figures as a user gets them; none where he is not shown the job."""
    words = ["joulemark", "sacct", "-nXP", *options, "-j", str(job), "-o", SHOWN]
    lines = cluster.run(words, user=user).splitlines()
    return [float(cell or "nan") for line in lines for cell in line.split("|")]


def assert_near(found: list[float], exact: list[float]) -> None:
    """As rounded in the comment."""
    assert found == pytest.approx(exact, rel=1e-3, abs=0.051, nan_ok=True)


@pytest.mark.parametrize(("user", "other"), [(ADA, BOB), (BOB, ADA)])
def test_a_user_sees_his_jobs_without_the_store_and_no_others(
    private: Cluster, jobs: dict[str, Outcome], user: str, other: str
) -> None:
    own, theirs = jobs[user].job, jobs[other].job
    exact = numbers_of(private, own)  # root can read the store
    assert exact[0] == pytest.approx(jobs[user].energy_j(), abs=1e-6)
    assert_near(numbers_of(private, own, user=user), exact)
    assert numbers_of(private, theirs, user=user) == []
    assert numbers_of(private, theirs, "--allusers", user=user) == []


def test_an_operator_sees_all_jobs(private: Cluster, jobs: dict[str, Outcome]) -> None:
    for done in jobs.values():
        assert_near(numbers_of(private, done.job, user=OPERATOR), numbers_of(private, done.job))


@pytest.mark.parametrize("user", [ADA, BOB, OPERATOR])
def test_its_rows_are_those_that_sacct_shows(private: Cluster, user: str) -> None:
    words = ["sacct", "-anP", "-S", "now-1hours", "-o", "JobID,State"]
    assert private.run(["joulemark", *words], user=user) == private.run(words, user=user)
    with_energy = ["joulemark", *words[:-1], "JobID,Energy"]
    ids = [line.split("|")[0] for line in private.run(with_energy, user=user).splitlines()]
    assert ids == [line.split("|")[0] for line in private.run(words, user=user).splitlines()]


def test_why_is_said_once_and_the_exit_code_is_sacct_s(
    private: Cluster, jobs: dict[str, Outcome]
) -> None:
    words = ["bash", "-c", f"joulemark sacct -j {jobs[ADA].job} 2>&1 >/dev/null"]
    said = private.run(words, user=ADA)  # fails where it exits with 1
    assert said.count("you may not read the store") == 1
    assert said.count("from AdminComment") == 1
    assert private.run(words) == ""
    with pytest.raises(ClusterError, match="you may not read the store"):
        private.run(["joulemark", "report", "jobs"], user=ADA)


def test_json_says_where_its_figures_are_from(private: Cluster, jobs: dict[str, Outcome]) -> None:
    words = ["joulemark", "sacct", "--json", "-j", str(jobs[ADA].job)]
    for user, source in ((ADA, "AdminComment"), (None, "store")):
        (job,) = json.loads(private.run(words, user=user))["jobs"]
        assert job["joulemark"]["source"] == source
        assert job["joulemark"]["energy_uj"] == pytest.approx(jobs[ADA].energy_uj(), abs=51_000)
    others = private.run([*words[:-1], str(jobs[BOB].job)], user=ADA)
    assert json.loads(others)["jobs"] == []


def test_a_job_is_told_as_far_as_sacct_shows_it(
    private: Cluster, jobs: dict[str, Outcome]
) -> None:
    words = ["joulemark", "job", "--json"]
    (told,) = json.loads(private.run([*words, str(jobs[ADA].job)], user=ADA))
    assert told["energy_uj"] == pytest.approx(jobs[ADA].energy_uj(), abs=51_000)
    with pytest.raises(ClusterError, match="Slurm shows you no such job"):
        private.run([*words, str(jobs[BOB].job)], user=ADA)


def listed(cluster: Cluster, user: str | None) -> set[str]:
    """The jobs that `report jobs` lists, with their steps or without."""
    words = ["joulemark", "report", "jobs", "--all", "--json"]
    found, of_steps = (
        {str(row["job_id_raw"]) for row in json.loads(cluster.run([*words, *more], user=user))}
        for more in ([], ["--steps"])
    )
    assert found == of_steps
    return found


def shown_of(jobs: dict[str, Outcome], cluster: Cluster, user: str | None) -> set[str]:
    """Whose of these jobs are listed; none that sacct hides."""
    found = listed(cluster, user)
    words = ["sacct", "-anXP", "-S", "now-1days", "-o", "JobIDRaw"]
    assert found <= set(cluster.run(words, user=user).split())
    return {owner for owner, done in jobs.items() if str(done.job) in found}


def summed(cluster: Cluster, user: str | None) -> set[str]:
    """Whose jobs `report usage` sums."""
    words = ["joulemark", "report", "usage", "--json"]
    return {row["user"] for row in json.loads(cluster.run(words, user=user))}


def is_told(cluster: Cluster) -> bool:
    """Whether sacctmgr tells slurmdbd's configuration; that of 26.05.5 tells its own twice."""
    return "accounting_storage/mysql" in cluster.run(["sacctmgr", "show", "configuration"])


def test_where_the_store_is_open_nobody_sees_more_than_by_sacct(
    private: Cluster, jobs: dict[str, Outcome]
) -> None:
    """By `joulemark report` and `joulemark job`; the file itself has all, as the doctor says."""
    store_of(private).chmod(0o644)
    own = jobs[ADA].job
    exact = pytest.approx(numbers_of(private, own), nan_ok=True)
    assert numbers_of(private, own, user=ADA) == exact
    assert numbers_of(private, jobs[BOB].job, "-a", user=ADA) == []
    for user in (ADA, BOB):
        assert shown_of(jobs, private, user) == {user} == {ADA, BOB} & summed(private, user)
    for user in (OPERATOR, None):
        assert shown_of(jobs, private, user) == {ADA, BOB} <= summed(private, user)
    words = ["bash", "-c", "joulemark report jobs 2>&1 >/dev/null"]
    why = "slurmdbd.conf has PrivateData=jobs,usage"
    if not is_told(private):
        untold = "sacctmgr show configuration: slurmdbd's PrivateData is not there"
        why = f"whose else Slurm shows you is not known: {untold}"
    said = f"joulemark: listed are your own jobs alone: {why}"
    assert private.run(words, user=ADA).splitlines() == [said]
    assert private.run(words, user=OPERATOR) == ""
    private.run(["joulemark", "job", str(own)], user=ADA)
    with pytest.raises(ClusterError, match="listed are your own jobs alone"):
        private.run(["joulemark", "job", str(jobs[BOB].job)], user=ADA)
    told = json.loads(private.run(["joulemark", "doctor", "--json"], check=False))["findings"]
    [store] = [one for one in told if one["check"] == "private-store"]
    assert store["value"] == "mode 0644, and slurmdbd.conf has PrivateData=jobs"


# -- options, beside the real sacct's ------------------------------------------------------------

#: how rows are printed, and other answers than rows
OPTIONS = [
    "-X",
    "-XnP",
    "-nPX --delimiter=;",
    "-p --noh",
    "--format=jobid%20,user%-8,state",
    "-o jobidr,elap -b",
    "-S now-1hours -E now --state=CD,F",
    "--starttime now-7days --name wrap",
    f"--user {ADA},{BOB}",
    "--account root --partition main",
    "-FSchedMain,SchedBackfill,SchedSubmit",
    "--whole-hetjob=no --units K",
    "--cl joulemark",
    "-TXS now-1hours",
    "--array -X",
    "--json -X",
    "-X operand",
    "-X --",
    "--no-such-option",
    "--noheader=1",
    f"-X --user {BOB} --allusers",
    "-X --federation",
    "-X --local",
    "-X --expand-patterns",
    "-X -R Dependency",  # getopt knows this letter from 26.05 on
    "-X --noconvert -o JobID,ReqMem",
    "-X --use-local-uid -o JobID,UID",
    "-vX -S 00:00:00 -E 23:59:59",
    "-B -j 1",
    "--batch-script",
    "--env-vars -j 1",
    "--completion",
    "--file /no/such/file",
    "--helpreason",
    "--helpstate",
    "--autocomplete=--sta",
    "--usage",
    "-V",
]
#: which rows: an option's names, and a value of it that takes others than those that all jobs are
CHOICES = [
    ("-A --accounts", "science"),
    ("-C --constraints", "fast"),
    ("-D --duplicates", ""),
    ("-E --endtime", "{until}"),
    ("-I --ncpus", "4"),
    ("-K --timelimit-max", "9 -k 3"),
    ("-L --allclusters", ""),
    ("-M --clusters --cluster", "elsewhere"),
    ("-N --nodelist", "n2"),
    ("--reason", "Dependency"),
    ("-S --starttime", "{since}"),
    ("-W --wckeys", "blue"),
    ("-g --gid --group", BOB),
    ("-i --nnodes", "2"),
    ("-j --jobs", "{job}"),
    ("-k --timelimit-min", "5"),
    ("-q --qos", "quick"),
    ("-r --partition", "spare"),
    ("-s --state", "F -E now"),
    ("-u --uid --user", ADA),
    ("-x --associations", "{association}"),
    ("--name", "chosen"),
]
EARLIER = 1_000_000  # in slurmdbd's count of all jobs
NOT_COMPARED = {
    "help": "ours tells of our columns",
    "helpformat": "ours lists them, too",
    "long": "we refuse it, and name -o",
    "yaml": "we refuse it, and name --json",
}


@pytest.mark.parametrize("typed", OPTIONS)
def test_options_do_as_they_do_in_sacct(
    steady: Cluster, jobs: dict[str, Outcome], typed: str
) -> None:
    """The same bytes and exit code where none of our columns is asked for."""
    columns = "" if "-o" in typed or "--format" in typed else "-o JobID,JobName,Start,State"
    words = f"sacct {columns} {typed}"
    # sacct's own JSON does without jobs where times are not as it wants to parse them
    env = {} if "--json" in typed else {"SLURM_TIME_FORMAT": "%s"}
    theirs, ours = (
        steady.run(["bash", "-c", f"{command} 2>&1; echo $?"], env=env)
        for command in (words, f"joulemark {words}")
    )
    if "--json" in typed:
        theirs, ours = (
            json.loads(text[text.index("{") : text.rindex("}") + 1]) for text in (theirs, ours)
        )
        for answer in (theirs, ours):
            answer["meta"].pop("command", None)
        for job in ours["jobs"]:
            job.pop("joulemark")
            for step in job["steps"]:
                step.pop("joulemark")
    assert ours == theirs


def test_a_coordinator_sees_the_jobs_of_his_accounts(
    private: Cluster, jobs: dict[str, Outcome]
) -> None:
    """Also of one below it, as sacct shows him; not where nobody tells whether slurmdbd.conf has
    DisableCoordDBD."""
    store_of(private).chmod(0o644)
    private.run(["sacctmgr", "-i", "add", "account", "faculty"])
    private.run(["sacctmgr", "-i", "modify", "account", "science", "set", "parent=faculty"])
    private.run(["sacctmgr", "-i", "add", "coordinator", "account=faculty", f"names={BOB}"])
    try:
        whose = {ADA, BOB} if is_told(private) else {BOB}
        assert shown_of(jobs, private, BOB) == whose <= summed(private, BOB)
        assert shown_of(jobs, private, ADA) == {ADA}
    finally:
        private.run(["sacctmgr", "-i", "modify", "account", "science", "set", "parent=root"])
        private.run(["sacctmgr", "-i", "delete", "account", "faculty"])


def test_without_slurmdbd_a_user_sees_his_own_alone(
    private: Cluster, jobs: dict[str, Outcome]
) -> None:
    store_of(private).chmod(0o644)
    private.slurmdbd.stop()
    try:
        found = listed(private, ADA)
        assert str(jobs[ADA].job) in found and str(jobs[BOB].job) not in found
        assert {str(done.job) for done in jobs.values()} <= listed(private, None)
    finally:
        private.slurmdbd.start()


def test_sacct_format_may_name_our_columns(steady: Cluster, jobs: dict[str, Outcome]) -> None:
    env = {"SACCT_FORMAT": "JobIDRaw,Energy%15,Estimated"}
    job = jobs[ADA].job
    out = steady.run(["joulemark", "sacct", "-XP", "-j", str(job)], env=env)
    head, row = out.splitlines()
    assert head == "JobIDRaw|Energy|Estimated"
    assert row.split("|")[:2] == [str(job), jobs[ADA].column("Energy")]
    for words in (["--helpformat"], ["--json", "-j", str(job)], ["-o", "JobID,Energy"]):
        steady.run(["joulemark", "sacct", *words], env=env)


def test_all_columns_of_this_release_come_apart(steady: Cluster, jobs: dict[str, Outcome]) -> None:
    job = str(jobs[ADA].job)
    own = steady.run(["sacct", "--helpformat"]).split()
    out = steady.run(["joulemark", "sacct", "-P", "-j", job, "-o", "ALL"])
    head, *rows = [line.split("|") for line in out.splitlines()]
    assert head[: len(own)] == own and {len(row) for row in rows} == {len(head)}
    theirs = steady.run(["sacct", "-nP", "-j", job, "-o", "ALL"]).splitlines()
    assert [row[: len(own)] for row in rows] == [line.split("|") for line in theirs]


def test_json_of_each_data_parser(steady: Cluster, jobs: dict[str, Outcome]) -> None:
    theirs, listed = (
        steady.run(["bash", "-c", f"{command} --json=list 2>&1; :"])
        for command in ("sacct", "joulemark sacct")
    )
    assert listed == theirs
    names = sorted(set(re.findall(r"v0\.0\.\d+", listed)))
    assert bool(names) == (slurm_version(steady) >= (23, 11))
    options = [f"--json={name}{flags}" for name in names for flags in ("", "+complex")]
    for option in options or ["--json"]:  # before, it has one, and no argument
        words = ["joulemark", "sacct", option, "-D", "-j", str(jobs[ADA].job)]
        (job,) = json.loads(steady.run(words))["jobs"]
        assert job["joulemark"]["energy_uj"] == jobs[ADA].energy_uj()
        assert all(step["joulemark"] for step in job["steps"])


@pytest.fixture(scope="module")
def values(steady: Cluster, jobs: dict[str, Outcome]) -> Iterator[dict[str, str]]:
    """Of CHOICES: a job differs from all others in what can be asked for. Numbers of jobs have
    begun anew, so that one was another's before, and a cluster that is not here had it, too."""
    steady.run(["sacctmgr", "-i", "add", "qos", "quick"])
    wait_for(  # or else the job gets none: nobody enforces it
        lambda: "QOS=quick" in steady.run(["scontrol", "show", "assoc_mgr", "flags=qos"]),
        what="slurmctld to hear of the new QOS",
    )
    steady.run(["sacctmgr", "-i", "add", "cluster", "elsewhere"])
    before = steady.sbatch("--wrap", "sleep 1")
    asked = ["--partition=spare", "--constraint=fast", "--qos=quick", "--wckey=blue", "--time=5"]
    asked += ["-N2", "--exclusive", "--job-name=chosen", f"--dependency=afterany:{before}"]
    chosen = steady.sbatch(*asked, "--wrap", "exit 1")
    steady.wait_job(chosen)
    wait_listed(steady, chosen)
    until = steady.sacct(jobs[ADA].job, "End", "-X")[0]["End"]  # the other job ran on after it
    job, table = jobs[BOB].job, f"{steady.options.name}_job_table"
    copy = f"CREATE TEMPORARY TABLE earlier SELECT * FROM {table} WHERE id_job = {job}"
    change = f"UPDATE earlier SET job_db_inx = {EARLIER}, time_submit = time_submit - 60"
    fill = (f"INSERT INTO {name} SELECT * FROM earlier" for name in (table, "elsewhere_job_table"))
    in_database(steady, copy, change, *fill)
    association = ["sacctmgr", "-nP", "show", "assoc", f"user={ADA}", "format=id"]
    yield {
        "until": until,
        "since": (datetime.fromisoformat(until) + timedelta(seconds=1)).isoformat(),
        "job": str(job),
        "association": steady.run(association).strip(),
    }
    in_database(steady, f"DELETE FROM {table} WHERE job_db_inx = {EARLIER}")
    steady.run(["sacctmgr", "-i", "delete", "cluster", "elsewhere"])
    steady.run(["sacctmgr", "-i", "delete", "qos", "quick"])


def in_database(cluster: Cluster, *statements: str) -> None:
    """slurmdbd's."""
    words = ["mariadb", f"--socket={cluster.state}/run/mariadb.sock", "slurm_acct_db"]
    cluster.run([*words, "-e", "; ".join(statements)], user=service_user())


def as_typed(name: str, value: str) -> list[str]:
    if not value:
        return [name]
    value, *more = value.split()
    return [*([f"{name}={value}"] if name.startswith("--") else [name, value]), *more]


@pytest.mark.parametrize(("names", "value"), CHOICES)
def test_options_choose_the_rows_that_sacct_chooses(
    steady: Cluster, values: dict[str, str], names: str, value: str
) -> None:
    words = ["sacct", "-anXP", "-S", "now-1hours", "-o", "JobID,Cluster,User,State,NNodes,Start"]
    without = steady.run(words)
    for name in names.split():
        typed = as_typed(name, value.format(**values))
        theirs = steady.run([*words, *typed])
        ours = steady.run(["joulemark", *words, *typed, "-o", "Energy"])
        assert [line.rpartition("|")[0] for line in ours.splitlines()] == theirs.splitlines()
        assert theirs and theirs != without


def test_every_option_of_sacct_is_compared() -> None:
    typed = [as_typed(name, value) for names, value in CHOICES for name in names.split()]
    typed += [line.split() for line in OPTIONS]
    compared = {name for words in typed for name in sacctargs.parse(words).chosen}
    known = {
        sacctargs.SHORT[letter][0] if letter else name
        for sacct in RELEASES.values()
        for name, (_, letter) in sacct.names.items()
    }
    assert known - compared == NOT_COMPARED.keys()
