# `joulemark merge --ended`: the jobs of EpilogSlurmctld's notices.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import builders
import pytest
from joulemark.accounting import ended as ended_jobs
from joulemark.profile import hdf5


def wait_until(true):
    until_s = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until_s
        time.sleep(0.01)


class Ended:
    """A folder of notices beside a site."""

    def __init__(self, site):
        self.site, self.folder = site, site.folder / "ended"
        self.comments = site.records / "comments"
        self.folder.mkdir()

    def notice(self, job, nodes="n1", restart=0, user="ada", age_s=0.0, account="physics"):
        path = self.folder / f"{job}.{restart}"
        path.write_text(f"{nodes}\n{user}\n{account}\nmain\n")
        os.utime(path, (time.time() - age_s,) * 2)
        return path

    def run(self, *words):
        """Exit code and what it says; it ends when no notice has come for a second."""
        code, out, err = self.site.run("merge", "--ended", str(self.folder), *words)
        assert out == ""
        return code, err

    def waiting(self):
        return sorted(path.name for path in self.folder.iterdir())

    def when(self, true, act):
        """Meanwhile, once it is true."""
        threading.Thread(target=lambda: (wait_until(true), act()), daemon=True).start()

    def told(self):
        return {path.name: path.read_text() for path in self.comments.iterdir()}


@pytest.fixture
def ended(site):
    return Ended(site)


def test_jobs_that_end_together_are_merged_and_their_notices_go(ended):
    for job in (12, 13, 120):
        ended.site.leave(job)
        ended.site.leave(job, node="n2")
        ended.notice(job, "n[1-2]")
    assert ended.run() == (0, "")
    assert ended.waiting() == []
    assert set(ended.told()) == {"12", "13", "120"}
    assert ended.told()["13"].startswith("200\tEnergy: 200.0 J")
    rows = ended.site.out("report", "usage", "--by", "user,account,partition", "--format", "csv")
    assert "ada,physics,main" in rows


def test_who_has_no_association_has_no_account(ended):
    """slurmctld writes its C library's word for a string that is not there."""
    ended.site.leave()
    ended.notice(12, account="(null)")
    assert ended.run() == (0, "")
    rows = ended.site.out("report", "usage", "--by", "user,account,partition", "--format", "csv")
    assert "ada,unknown,main" in rows


def test_a_notice_may_be_of_a_later_job_than_the_pruned_one_of_its_number(ended):
    """It may come before that one's records do; an old one is the pruned job's."""
    site, old_s = ended.site, -1e8
    site.leave(12, accounts=[builders.account(start_s=old_s)])
    site.out("merge")
    site.out("store", "prune", "--keep", builders.kept_days())
    ended.notice(12, user="bob", age_s=-old_s)
    assert "job 12: it was pruned: left out" in ended.run("--wait", "0")[1]
    ended.notice(12)
    assert ended.run("--wait", "0") == (0, "")
    site.leave(12, accounts=[], missing="the daemon was away")
    assert ended.run("--wait", "0") == (0, "") and site.out("merge")
    assert site.rows(12)[0]["Missing"] == "n1: the daemon was away"
    site.leave(12)
    site.out("merge")
    assert site.rows(12)[0]["ConsumedEnergy_uj"] == 100_000_000
    rows = site.out("report", "usage", "--by", "user,account,partition", "--format", "csv")
    assert "ada,physics,main" in rows and "bob" not in rows


def test_each_run_of_a_requeued_job_has_its_own_nodes(ended):
    for run in (0, 1):
        account = builders.account(energy_uj=10**6 * (run + 1), start_s=200 * run)
        ended.site.leave(node=f"n{run}", accounts=[account], restart=run)
        ended.notice(12, f"n{run}", restart=run)
    ended.run()
    rows = [(row["Nodes"], row["ConsumedEnergyRaw"]) for row in ended.site.rows(12)]
    assert rows == [("n0", 1), ("n1", 2)]


def test_a_node_that_is_late_holds_up_its_own_job_alone(ended):
    ended.notice(12, "n[1-2]")
    ended.notice(13)
    ended.site.leave(12)
    ended.site.leave(13)
    seen = []

    def look():
        seen.extend(ended.told())
        ended.site.leave(12, node="n2")

    ended.when(lambda: (ended.comments / "13").exists(), look)
    ended.run()
    assert seen == ["13"]
    assert ended.told()["12"].startswith("200\tEnergy: 200.0 J")


def test_a_job_that_ends_while_others_are_merged_is_merged_too(ended):
    ended.notice(12)
    ended.site.leave(12)
    ended.when(
        lambda: (ended.comments / "12").exists(),
        lambda: (ended.site.leave(13), ended.notice(13)),
    )
    ended.run()
    assert set(ended.told()) == {"12", "13"}


def test_a_node_that_never_comes_is_waited_for_from_the_jobs_end_on(ended):
    ended.notice(12, "n[1-2]", age_s=31)
    ended.site.leave(12)
    began_s = time.monotonic()
    ended.run()
    assert time.monotonic() - began_s < 20
    assert ended.told()["12"].endswith("; missing: n2")
    missing = ended.site.job(12)["12"]["Missing"]
    assert missing == "n2: no record came within 30 s of the job's end"


def test_a_notice_stays_until_its_comment_is_kept(ended):
    ended.notice(12)
    ended.site.leave(12)
    ended.comments.write_text("in the way")
    code, err = ended.run()
    assert code == 1 and "comments" in err
    assert ended.waiting() == ["12.0"]
    ended.comments.unlink()
    assert ended.run() == (0, "")
    assert ended.waiting() == []
    assert ended.told()["12"].startswith("100\tEnergy: 100.0 J")


def test_a_change_that_could_not_be_told_is_told_later(ended):
    """Not of the job that has ended, but of one whose record comes after an outage."""
    ended.notice(12, "n[1-2]", age_s=31)
    ended.site.leave(12)
    ended.run()
    assert "missing: n2" in ended.told()["12"]
    shutil.rmtree(ended.comments)
    ended.comments.write_text("in the way")
    late = ended.site.leave(12, node="n2")
    os.utime(late, (0, 0))  # what has waited for a minute is merged with any job
    ended.site.leave(13)
    ended.notice(13)
    assert ended.run()[0] == 1
    ended.comments.unlink()
    assert ended.run() == (0, "")
    assert ended.told()["12"].startswith("200\tEnergy: 200.0 J")


def test_two_at_a_time_merge_all(ended):
    """As where one of the script's locks does not hold."""
    for job in range(1, 41):
        ended.site.leave(job)
        ended.notice(job)
    words = [sys.executable, "-m", "joulemark", "merge", "--ended", str(ended.folder)]
    both = [subprocess.Popen(words, env=os.environ) for _ in range(2)]
    assert [one.wait() for one in both] == [0, 0]
    assert ended.waiting() == []
    assert set(ended.told()) == {str(job) for job in range(1, 41)}


def test_a_profile_is_made_before_its_notice_goes(ended, monkeypatch):
    """By a process of its own; meanwhile other jobs are merged."""

    def make(config, jobs):
        wait_until(lambda: (ended.comments / "13").exists())
        (ended.site.folder / "made").write_text(f"{jobs} {ended.waiting()}")

    monkeypatch.setattr(hdf5, "merge", make)
    monkeypatch.setattr(hdf5, "waiting", lambda config, jobs: 12 in jobs)
    for job in (12, 13):
        ended.site.leave(job)
    ended.notice(12)
    ended.when(lambda: (ended.comments / "12").exists(), lambda: ended.notice(13))
    ended.run()
    assert (ended.site.folder / "made").read_text() == "{12} ['12.0', '13.0']"
    assert ended.waiting() == []


def test_a_store_that_is_away_loses_nothing(ended):
    ended.notice(12)
    ended.site.leave(12)
    ended.site.store.mkdir()
    assert ended.run()[0] == 1
    assert ended.waiting() == ["12.0"]


def test_notices_that_a_crash_spoilt_hold_up_nobody(ended):
    ended.notice(12).write_text("")  # as ext4 leaves a new file
    ended.notice(13, "n[1-")
    ended.notice(14)
    (ended.folder / ".lock").touch()
    (ended.folder / "readme").touch()
    for job in (12, 13, 14):
        ended.site.leave(job)
    (ended.folder / "15.0").mkdir()
    (ended.folder / "99999999999999999999.0").touch()
    code, err = ended.run()
    assert code == 0 and "13.0: " in err and "n[1-" in err
    assert ended.waiting() == [".lock", "15.0", "99999999999999999999.0", "readme"]
    for name in ended.waiting()[1:]:
        assert f"{name}: " in err
    assert set(ended.told()) == {"12", "13", "14"}


def test_a_comment_that_a_power_cut_spoilt_is_made_again(ended):
    ended.site.leave(12)
    ended.notice(12)
    ended.run()
    text = ended.told()["12"]
    for name in ("12", ".12", "13"):  # the second was being told, the third of no job
        for path in ended.comments.iterdir():
            path.unlink()
        (ended.comments / name).touch()
        ended.run()
        assert ended.told() == ({} if name == "13" else {"12": text})


def test_what_is_refused_is_told_again(ended, tmp_path):
    """Slurm's accounting may hear of the job's end later than we do."""
    program, asked = tmp_path / "tell", tmp_path / "asked"
    program.write_text(f"#!/bin/sh\ndate >>{asked}\ntest $(wc -l <{asked}) -gt 1")
    program.chmod(0o755)
    ended.notice(12)
    ended.site.leave(12)
    ended.run("--tell", str(program))
    assert len(asked.read_text().splitlines()) == 2


def test_of_an_outage_slurmdbd_is_asked_now_and_then(ended, tmp_path, monkeypatch):
    """However many jobs end meanwhile: each time is a line in the log."""
    monkeypatch.setattr(ended_jobs, "AWAY_S", 10.0)  # the five end meanwhile
    program, asked = tmp_path / "tell", tmp_path / "asked"
    program.write_text(f"#!/bin/sh\ndate >>{asked}\ntest $(wc -l <{asked}) -gt 1 || exit 3\n")
    program.chmod(0o755)

    def end_some():
        for job in range(13, 18):
            ended.site.leave(job)
            ended.notice(job)
            time.sleep(0.1)

    ended.notice(12)
    ended.site.leave(12)
    ended.when(asked.exists, end_some)
    ended.run("--tell", str(program))
    assert len(asked.read_text().splitlines()) == 2


@pytest.fixture
def teller(tmp_path):
    """A program that is asked to tell comments; what it was asked is in asked()."""
    program, log = tmp_path / "teller", tmp_path / "asked"
    program.write_text(f"#!/bin/sh\nls $1 >>{log}\nrm $1/*")
    program.chmod(0o755)
    log.touch()
    return program, log.read_text


def test_comments_of_before_are_told_though_no_job_ends(ended, teller):
    program, asked = teller
    ended.comments.mkdir()
    (ended.comments / "12").write_text("100\tEnergy: 100.0 J")
    ended.run("--tell", str(program))
    assert asked() == "12\n"
    ended.run("--tell", str(program))
    assert asked() == "12\n"


def test_a_teller_that_ends_too_early_goes_on(ended, tmp_path):
    """As where slurmdbd does not answer of one job in time: however many are left."""
    program = tmp_path / "one"
    program.write_text("#!/bin/sh\ncd $1; set -- *; rm $1; exit 1")
    program.chmod(0o755)
    ended.comments.mkdir()
    for job in range(1, 21):
        (ended.comments / str(job)).write_text("100\tEnergy: 100.0 J")
        os.utime(ended.comments / str(job), (0, 0))
    ended.run("--tell", str(program))
    assert ended.told() == {}


def test_after_its_time_another_takes_over(ended, monkeypatch):
    monkeypatch.setattr(ended_jobs, "LIFE_S", 0.5)
    ended.notice(12, "n[1-2]")
    assert ended.run() == (3, "")
    assert ended.waiting() == ["12.0"]


def test_words_that_do_not_go_together(ended):
    assert "which jobs" in ended.run("--job", "12")[1]
    assert "--ended" in ended.site.run("merge", "--tell", "/bin/true")[2]
    assert "no such folder" in ended.site.run("merge", "--ended", "/nowhere")[2]


@pytest.mark.parametrize("key", ["EpilogSlurmctld        ", "EpilogSlurmctld[0]     "])
def test_the_page_of_removal_finds_it(key):
    """As scontrol of 22.05 writes it, and of 24.11 on, beside a site's own."""
    ours = "/usr/libexec/joulemark/epilogslurmctld"
    config = (
        f"Epilog[0]  = /usr/libexec/joulemark/epilog\n{key} = {ours}\nEpilogSlurmctld[1] = /site\n"
    )
    page = (Path(__file__).parents[1] / "guides/removal.md").read_text()
    (script,) = re.findall(r"scontrol show config \| (sed .*?)\)\" --merge", page)
    done = subprocess.run(["sh", "-c", script], input=config, capture_output=True, text=True)
    assert done.stdout == f"{ours}\n"
