# Energy budgets of accounts: what is left, who is warned, who is held and released.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
from datetime import date, timedelta

import builders
import pytest

SACCTMGR = """\
#!/bin/sh
cd {folder}
case "$*" in
*ParentName*)
  cat tree;;
*show*)
  for file in limit.*; do
    echo "${{file#limit.}}||$(cat $file)"
    echo "${{file#limit.}}|alice|7"
  done;;
*modify*)
  for word; do
    case $word in
    name=*) account=${{word#name=}};;
    GrpJobs=*) limit=${{word#GrpJobs=}};;
    esac
  done
  echo "$limit" | sed s/-1// > limit.$account;;
esac
"""
KWH = 3_600_000_000_000  # in uJ
FIRST, TODAY = date.fromtimestamp(builders.START_NS // 10**9 - 86_400), date.today()
LAST = TODAY + timedelta(1)  # at midnight a budget until today would be over


@pytest.fixture
def accounts(site, monkeypatch):
    """blue has used 10 kWh, red 5 kWh; a fake sacctmgr keeps GrpJobs in files."""
    for job, (account, kwh) in enumerate((("blue", 6), ("blue", 4), ("red", 5)), 1):
        site.leave(job, accounts=[builders.account("job", kwh * KWH)])
        for name, value in (("ID", job), ("USER", "alice"), ("ACCOUNT", account)):
            monkeypatch.setenv(f"SLURM_JOB_{name}", str(value))
        site.out("merge", "--job", str(job))
    folder = site.folder / "slurm"
    folder.mkdir()
    (folder / "tree").write_text(
        "demo|root||\ndemo|blue||root\ndemo|blue|alice|\ndemo|red||root\n"
    )
    for account, limit in (("blue", ""), ("red", "12")):
        (folder / f"limit.{account}").write_text(limit)
    (folder / "sacctmgr").write_text(SACCTMGR.format(folder=folder))
    (folder / "sacctmgr").chmod(0o755)
    (folder / "scontrol").write_text(f"#!/bin/sh\ncat {folder}/config\n")
    (folder / "scontrol").chmod(0o755)
    enforce(site, "associations,limits")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    site.configure(f"budgets: {site.folder}/budgets.csv\n")
    return site


def budgets(site, *rows: tuple) -> None:
    """Lines of account, kWh and, if not from the jobs' day to tomorrow, the days."""
    lines = [",".join(map(str, (*row, *(FIRST, LAST)[len(row) - 2 :]))) for row in rows]
    (site.folder / "budgets.csv").write_text("# account,kWh,from,until\n" + "\n".join(lines))


def enforce(site, words: str) -> None:
    """AccountingStorageEnforce, as slurmctld tells it."""
    lines = (f"AccountingStorageEnforce = {words}", "AccountingStorageHost   = limits")
    (site.folder / "slurm" / "config").write_text("Configuration data\n" + "\n".join(lines))


def limit(site, account: str) -> str:
    return (site.folder / "slurm" / f"limit.{account}").read_text().strip()


def test_what_was_used_of_each_budget(accounts):
    budgets(accounts, ("blue", 8), ("red", 5.5), ("green", 1))
    words = ("report", "usage", "--budget", "--format", "json")
    code, out, err = accounts.run(*words)
    blue, red, green = json.loads(out)
    assert code == 0
    assert (blue["used_j"], blue["part"], blue["jobs"]) == (36e6, 1.25, 2)
    assert blue["used_error_j"] == pytest.approx(2 * 36e6 * 0.01, rel=0.01)
    assert red["part"] == pytest.approx(5 / 5.5) and green["used_j"] is None
    assert err.splitlines() == [
        "joulemark: account green: neither Slurm nor the store has it, so that nothing is charged "
        "to its budget: write it as `sacctmgr show account` does",
        "joulemark: account blue: 125 % of 8 kWh are used (level 100 %)",
        "joulemark: account red: 91 % of 5.5 kWh are used (level 80 %)",
    ]
    text = accounts.out("report", "usage", "--budget", "--levels", "200")
    assert any(
        line.split()[:1] == ["blue"] and line.endswith("125.0") for line in text.splitlines()
    )


def test_an_estimate_s_part_has_no_digit_that_its_error_leaves_unknown(accounts, monkeypatch):
    """35 % of 145.02 % are 51 %."""
    uncertain = {"uncertainty_systematic_uj": 0.175 * KWH, "estimated": True}
    accounts.leave(9, accounts=[builders.account("job", KWH, **uncertain)])
    for name, value in (("ID", 9), ("USER", "alice"), ("ACCOUNT", "green")):
        monkeypatch.setenv(f"SLURM_JOB_{name}", str(value))
    accounts.out("merge", "--job", "9")
    budgets(accounts, ("green", 0.06896))
    _, out, err = accounts.run("report", "usage", "--budget")
    assert out.splitlines()[2].endswith("  ~1450")
    assert "account green: ~1450 % of 0.06896 kWh are used (level 100 %)" in err


def tree(site, **parents: str) -> None:
    """Slurm's accounts; `other_NAME`: of another cluster than ours."""
    rows = ["demo|root||", "other|root||"]
    for name, parent in parents.items():
        cluster, _, account = name.rpartition("_")
        rows += [f"{cluster or 'demo'}|{account}||{parent}", f"demo|{account}|alice|"]
    (site.folder / "slurm" / "tree").write_text("\n".join(rows) + "\n")


def used_kwh(site, *accounts: str) -> list[float | None]:
    budgets(site, *((account, 100) for account in accounts))
    out = site.out("report", "usage", "--budget", "--format", "json")
    return [one["used_j"] and one["used_j"] / 3.6e6 for one in json.loads(out)]


FACULTY = {"faculty": "root", "group": "faculty"}


@pytest.mark.parametrize(
    ("parents", "expected"),
    [
        ({"blue": "root", "red": "root"}, [10, 5, 15, None, None]),
        ({"blue": "root", "red": "blue"}, [15, 5, 15, None, None]),
        ({**FACULTY, "blue": "group", "red": "faculty"}, [10, 5, 15, 15, 10]),
        ({**FACULTY, "blue": "group", "red": "group"}, [10, 5, 15, 15, 15]),  # red moved
        ({**FACULTY, "red": "group"}, [10, 5, 5, 5, 5]),  # blue is unknown
        ({**FACULTY, "other_blue": "group", "red": "group"}, [10, 5, 5, 5, 5]),  # known elsewhere
    ],
)
def test_an_account_is_charged_with_those_below_it(accounts, parents, expected):
    tree(accounts, **parents)
    assert used_kwh(accounts, "blue", "red", "root", "faculty", "group") == expected


def test_who_is_over_by_those_below_is_held(accounts):
    """And not they themselves: what is above holds them in Slurm."""
    tree(accounts, blue="root", red="blue")
    budgets(accounts, ("blue", 12), ("red", 6))
    assert accounts.run("budget")[:2] == (1, "blue: over its budget: held\n")
    assert (limit(accounts, "blue"), limit(accounts, "red")) == ("0", "12")
    tree(accounts, blue="root", red="root")
    assert accounts.run("budget")[:2] == (0, "blue: within its budget: released\n")


@pytest.mark.parametrize(
    "words", [("budget",), ("budget", "--quiet"), ("report", "usage", "--budget")]
)
def test_a_mistyped_account_is_named(accounts, words):
    """Slurm's are in lower case; one of the store alone, or of Slurm alone, is right."""
    tree(accounts, red="root", new="root")
    over = TODAY - timedelta(1)
    budgets(accounts, ("Blue", 1), ("blue", 80), ("new", 1), ("old", 1, over, over))
    said = accounts.run(*words)[2].splitlines()
    assert [line.split(":")[1] for line in said] == [" account Blue"]


def test_accounts_that_are_not_told_are_not_taken_for_none(accounts, monkeypatch):
    budgets(accounts, ("blue", 8))
    words = ("report", "usage", "--budget")
    (accounts.folder / "slurm" / "tree").write_text("demo|blue||root\n")
    assert "no account root of cluster demo" in accounts.fails(*words)
    program = accounts.folder / "slurm" / "sacctmgr"
    program.write_text("#!/bin/sh\necho no connection >&2; exit 1\n")
    assert "ParentName: no connection: does slurmdbd run?" in accounts.fails(*words)
    monkeypatch.setenv("PATH", "/nowhere")
    assert "sacctmgr: not found on PATH" in accounts.fails(*words)


def test_little_that_was_used_says_its_unit(accounts, monkeypatch):
    accounts.leave(9, accounts=[builders.account("job", 36_000)])
    for name, value in (("ID", "9"), ("USER", "dora"), ("ACCOUNT", "green")):
        monkeypatch.setenv(f"SLURM_JOB_{name}", value)
    accounts.out("merge", "--job", "9", "--nodes", "n1")
    budgets(accounts, ("green", 0.0001))
    (line,) = (
        one for one in accounts.out("report", "usage", "--budget").splitlines() if "green" in one
    )
    assert line.split()[3:] == ["1", "0.0001", "10", "μWh", "201", "nWh", "0.0"]


def test_jobs_of_unknown_time_are_told_of_each_budget(accounts, monkeypatch):
    """And which of the jobs have an energy."""
    tree(accounts, blue="root", red="blue")
    for job, accounts_of_it in ((8, []), (9, [{**builders.account(), "energy_uj": None}])):
        accounts.leave(job, accounts=accounts_of_it, missing="joulemarkd is dead")
        for name, value in (("ID", str(job)), ("USER", "dora"), ("ACCOUNT", "red")):
            monkeypatch.setenv(f"SLURM_JOB_{name}", value)
        accounts.out("merge", "--job", str(job), "--nodes", "n1")
    budgets(accounts, ("blue", 8), ("green", 1))
    _, text, err = accounts.run("report", "usage", "--budget")
    (line,) = (one for one in text.splitlines() if "blue" in one)
    partial = ["(3", "of", "4)"]
    assert line.split()[3:] == ["4+1*", "8", "15.0", *partial, "0.30", "187.5", *partial]
    assert "account blue: 188 % (3 of 4 jobs) of 8 kWh are used (level 100 %)" in err
    assert "3+1: one more of unknown time" in text and "(2 of 3): the sum of 2 of 3 jobs" in text
    blue, green = json.loads(accounts.out("report", "usage", "--budget", "--format", "json"))
    names = ("jobs", "energy_jobs", "undated_jobs", "incomplete")
    assert [blue[name] for name in names] == [4, 3, 1, True]
    assert [green[name] for name in names] == [0, 0, 0, False]
    assert accounts.run("budget")[1] == "blue: over its budget (3 of 4 jobs): held\n"
    budgets(accounts, ("blue", 80), ("green", 1))
    assert accounts.out("budget") == "blue: within its budget (3 of 4 jobs): released\n"


def test_a_job_of_unknown_time_is_told_of_each_budget_that_has_begun(accounts, monkeypatch):
    """Nothing in the store says of which one it is."""
    accounts.leave(9, accounts=[], missing="joulemarkd is dead")
    for name, value in (("ID", "9"), ("USER", "dora"), ("ACCOUNT", "green")):
        monkeypatch.setenv(f"SLURM_JOB_{name}", value)
    accounts.out("merge", "--job", "9", "--nodes", "n1")
    begins = [date(2020, 1, 1), TODAY, TODAY + timedelta(2)]  # whatever the zone
    ends = [date(2020, 12, 31), TODAY + timedelta(1), TODAY + timedelta(3)]
    budgets(accounts, *(("green", 1, *days) for days in zip(begins, ends)))
    found = json.loads(accounts.out("report", "usage", "--budget", "--format", "json"))
    assert [one["undated_jobs"] for one in found] == [1, 1, 0]


def test_days_outside_are_not_counted(accounts):
    budgets(accounts, ("blue", 8, TODAY - timedelta(1)))
    (blue,) = json.loads(accounts.out("report", "usage", "--budget", "--format", "json"))
    assert (blue["jobs"], blue["used_j"]) == (0, None)


def test_a_budget_of_which_no_energy_is_known_is_told(accounts, monkeypatch):
    accounts.leave(9, accounts=[builders.unread()], missing=None)
    for name, value in (("ID", 9), ("USER", "alice"), ("ACCOUNT", "green")):
        monkeypatch.setenv(f"SLURM_JOB_{name}", str(value))
    accounts.out("merge", "--job", "9")
    (accounts.folder / "budgets.csv").write_text(f"green,8,{FIRST},{LAST}\n")
    _, _, err = accounts.run("budget", "--quiet")
    assert (
        "account green: no energy is known of its 1 job, so that nobody knows what is used" in err
    )


def test_who_is_over_is_held_until_there_is_a_budget_again(accounts):
    budgets(accounts, ("blue", 8), ("red", 5))
    assert accounts.run("budget", "--dry-run")[0] == 1
    assert (limit(accounts, "blue"), limit(accounts, "red")) == ("", "12")
    code, out, _ = accounts.run("budget")
    assert code == 1 and out.count("over its budget: held") == 2
    assert (limit(accounts, "blue"), limit(accounts, "red")) == ("0", "0")
    assert accounts.run("budget")[1] == ""
    budgets(accounts, ("blue", 20), ("red", 5))
    assert accounts.run("budget")[1] == "blue: within its budget: released\n"
    assert (limit(accounts, "blue"), limit(accounts, "red")) == ("", "0")
    budgets(accounts, ("blue", 20), ("red", 6))
    assert accounts.run("budget")[0] == 0
    assert limit(accounts, "red") == "12"


@pytest.mark.parametrize(
    ("words", "is_held"),
    [
        ("none", False),
        ("associations", False),
        ("associations,qos", False),
        ("associations,limits", True),
        ("associations,limits,safe", True),
    ],
)
def test_nobody_is_called_held_where_slurm_keeps_no_limits(accounts, words, is_held):
    budgets(accounts, ("blue", 8))
    enforce(accounts, words)
    for options in (["--dry-run"], []):
        code, out, err = accounts.run("budget", *options)
        assert (code, "held" in out) == ((1, True) if is_held else (2, False))
        assert is_held or f"AccountingStorageEnforce={words}: Slurm would hold nobody" in err
    assert limit(accounts, "blue") == ("0" if is_held else "")


def test_no_store_is_made(accounts):
    budgets(accounts, ("blue", 8))
    accounts.store.unlink()
    assert "no store yet" in accounts.fails("budget", "--dry-run")
    assert not accounts.store.exists()


def test_who_cannot_ask_slurmctld_holds_nobody(accounts):
    budgets(accounts, ("blue", 8))
    program = accounts.folder / "slurm" / "scontrol"
    program.write_text("#!/bin/sh\necho no slurmctld >&2; exit 1\n")
    assert "scontrol show config: no slurmctld: does slurmctld run?" in accounts.fails("budget")
    assert limit(accounts, "blue") == ""


def test_a_limit_that_an_administrator_set_meanwhile_stays(accounts):
    budgets(accounts, ("blue", 8))
    accounts.run("budget")
    (accounts.folder / "slurm" / "limit.blue").write_text("3")
    assert "held" in accounts.run("budget")[1] and limit(accounts, "blue") == "0"
    (accounts.folder / "slurm" / "limit.blue").write_text("3")
    budgets(accounts, ("blue", 80))
    assert "its limit is not ours" in accounts.run("budget")[1] and limit(accounts, "blue") == "3"


def test_who_is_held_again_gets_the_limit_that_an_administrator_set_meanwhile(accounts):
    budgets(accounts, ("blue", 8))
    accounts.run("budget")
    (accounts.folder / "slurm" / "limit.blue").write_text("50")
    assert "held" in accounts.run("budget")[1] and limit(accounts, "blue") == "0"
    budgets(accounts, ("blue", 80))
    assert "released" in accounts.run("budget")[1] and limit(accounts, "blue") == "50"


def test_what_was_before_is_known_even_if_sacctmgr_fails(accounts):
    budgets(accounts, ("red", 5))
    program = accounts.folder / "slurm" / "sacctmgr"
    whole = program.read_text()
    program.write_text(
        whole.replace("*modify*)", "*modify*) echo no right >&2; exit 1;;\n*never*)")
    )
    assert "GrpJobs=0: no right: run this as a Slurm administrator" in accounts.fails("budget")
    program.write_text(whole)
    accounts.run("budget")
    assert limit(accounts, "red") == "0"
    budgets(accounts, ("red", 50))
    accounts.run("budget")
    assert limit(accounts, "red") == "12"


@pytest.mark.parametrize(
    "line",
    [
        "blue,8",
        "blue,8,2026-01-01",
        "blue,-1,2026-01-01,2026-12-31",
        ",8,2026-01-01,2026-12-31",
        "blue,nan,2026-01-01,2026-12-31",
        "blue,8,2026-12-31,2026-01-01",
        "blue,8,1.1.2026,2026-12-31",
    ],
)
def test_a_line_that_is_no_budget_is_refused(accounts, line):
    (accounts.folder / "budgets.csv").write_text(f"\n{line}\n")
    said = accounts.refuses("report", "usage", "--budget")
    assert f"budgets.csv:2: {line}: must be account,kWh,from,until, such as" in said


def test_a_spreadsheet_s_file_is_read_and_its_older_character_set_is_refused(accounts):
    """It marks UTF-8 with a first character, which is not the account's."""
    budgets(accounts, ("red", 5))
    path = accounts.folder / "budgets.csv"
    row = path.read_text().split("\n")[1]
    path.write_text(row, encoding="utf-8-sig")
    accounts.run("budget")
    assert limit(accounts, "red") == "0"
    path.write_text("# two\n" + row.replace("red", "r\xe9d"), encoding="latin-1")
    said = accounts.refuses("budget")
    assert "budgets.csv:2: byte 0xe9 is not UTF-8: save the file as CSV in UTF-8" in said


def test_two_budgets_of_one_day_are_refused(accounts):
    budgets(accounts, ("blue", 8), ("red", 7), ("blue", 9))
    path = accounts.folder / "budgets.csv"
    path.write_text(f'"# a note\nof two lines"\n{path.read_text()}')
    said = accounts.refuses("budget")
    assert f"budgets.csv:6: blue: from {FIRST} to {LAST} line 4 has a budget of it" in said
    assert said.endswith(": let one end before the other begins\n")


def test_no_budgets_are_named(site):
    site.leave()
    site.out("merge")
    assert "budgets: missing in joulemark.yaml: add the path" in site.refuses("budget")
