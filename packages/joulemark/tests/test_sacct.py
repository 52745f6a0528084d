# `joulemark sacct` beside what a real sacct printed.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import subprocess
from pathlib import Path

import builders
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from joulemark.accounting import columns
from joulemark.errors import UserError
from joulemark.slurm import sacctargs
from joulemark.slurm.jobenergy import Energy, Shown
from sacct_getopt import RELEASES

STEPS = ("job", "extern", "batch", "0")


@pytest.fixture
def filled(site, sacct_on_path):
    """Job 1 was measured, job 2 estimated on one of two nodes, job 3 has no record."""
    measured = [builders.account(step, 123_456_789) for step in (*STEPS, "1")]
    estimated = [builders.account(step, method="model", estimated=True) for step in STEPS]
    site.leave(1, accounts=measured)
    site.leave(2, accounts=estimated)
    site.run("merge")
    site.run("merge", "--job", "2", "--nodes", "n1,n2", "--wait", "0")
    return site


def cells(site, fields):
    """Those of each row, as `-P` prints them."""
    out = site.out("sacct", "-nP", "-o", fields)
    return [line.split("|") for line in out.splitlines()]


def test_default_columns_and_values(filled):
    head, dashes, first, *_ = filled.out("sacct").splitlines()
    assert head.split() == [
        *("JobID", "JobName", "State", "Elapsed", "Energy", "EnergyError", "AveWatts"),
        *("EnergyCPU", "EnergyDRAM", "EnergyGPU", "Estimated"),
    ]
    assert set(dashes) == {"-", " "} and len(dashes) == len(head) == len(first) <= 132
    assert first.split()[:1] == ["1"] and first.split()[-1] == "measured"
    assert "123.5" in first


def test_parsable_is_exact(filled):
    exact = ["1", "123.456789", "74.074073", "49.382716"]
    assert cells(filled, "JobIDRaw,Energy,EnergyCPU,EnergyRest")[0] == exact


def test_rows_without_a_record_are_empty(filled):
    assert "3||" in filled.out("sacct", "-n", "-P", "-oJobIDRaw,Energy,Estimated").splitlines()


def test_array_tasks_are_found_by_their_raw_id(filled):
    builders.write(filled.records, builders.record(4))
    filled.run("merge")
    found = filled.out("sacct", "-nPo", "JobID,Energy").splitlines()
    assert {"3_1|100.000000", "3_2|"} <= set(found)


@pytest.mark.parametrize("option", ["-p", "--parsable2"])
def test_programs_read_estimates_as_numbers_and_a_column_says_so(filled, option):
    fields = "JobIDRaw,Energy,EnergyError,AveWatts,PeakWatts,EnergyCPU,EnergyIdle"
    fields += ",EnergySystematic,ConsumedEnergy,ConsumedEnergyRaw,Estimated"
    _, out, err = filled.run("sacct", "-n", option, "-o", fields)
    kinds = set()
    for line in out.splitlines():
        job, *energies, kind = line.rstrip("|").split("|")
        if kind in ("estimated", "measured"):
            assert all(float(cell) >= 0 for cell in energies)
            kinds.add((job.split(".")[0], kind))
    assert {("1", "measured"), ("2", "estimated")} <= kinds
    assert "some energies a model estimated: the column Estimated says which\n" in err


@pytest.mark.parametrize("name", ["ConsumedEnergyRaw", "consumedenergyr"])
def test_in_a_table_estimates_are_marked_also_sacct_s_own(filled, name):
    lines = filled.out("sacct", "-n", "-o", f"JobIDRaw,{name},Energy").splitlines()
    found = [line.split() for line in lines]
    assert ["2", "~0", "~100.0"] in found and ["1", "0", "123.5"] in found


def test_in_a_table_figures_have_no_digit_that_the_interval_leaves_unknown(site, sacct_on_path):
    rough = {"uncertainty_systematic_uj": 128.85e6, "uncertainty_random_uj": 0.0}
    known = {"energy_uj": 743_900_000, "seconds": 7, "method": "model", "estimated": True}
    site.leave(1, accounts=[builders.account(**known, **rough)])
    site.out("merge")
    fields = "Energy,EnergyError,AveWatts,EnergyCPU,EnergySystematic"
    first = site.out("sacct", "-nX", "-j1", "-o", fields).splitlines()[0]
    assert first.split() == ["~740", "~260", "~106", "~450", "~130"]
    assert cells(site, fields)[0] == [
        *("743.900000", "257.700000", "106.271429", "446.340000", "128.850000"),
    ]


def test_table_ends_with_what_to_know(filled):
    *_, estimated, missing = filled.out("sacct").splitlines()
    assert estimated == "~ energy estimated by a model, not measured"
    assert missing.startswith("job 2 lacks energy of n2: no record came")


def test_columns_without_energy_need_no_notes(filled):
    _, out, err = filled.run("sacct", "-P", "-o", "JobID,State")
    assert "energy" not in out + err


def test_header_and_delimiters(filled):
    out = filled.out("sacct", "-p", "-o", "jobid,energy")
    assert out.splitlines()[:2] == ["JobID|Energy|", "1|123.456789|"]
    out = filled.out("sacct", "-P", "--delimiter=;", "--noheader", "-o", "jobid,energy")
    assert out.splitlines()[0] == "1;123.456789"


@pytest.mark.parametrize("word", ["ALL", "al", ""])
def test_all_is_every_column_of_sacct_and_ours(filled, word):
    """sacct takes ALL for its own columns; the first alone of them was printed."""
    rows = Path(__file__).parent / "data" / "sacct.rows"
    own = [*rows.read_text().split("\n")[0].split("\x1f"), "Start", "End", "AdminComment"]
    lines = filled.out("sacct", "-P", "-o", f"{word}%30,State").splitlines()
    head, first = (line.split("|") for line in lines[:2])
    assert head == [*own, *(column.name for column in columns.COLUMNS), "State"]
    assert first[head.index("Energy")] == "123.456789" and first[-1] == "COMPLETED"


def test_widths_as_sacct_has_them(filled):
    spec = "JobID%5,JobName%-6,Energy%7,Estimated%-12,State%4"
    head, dashes, first = filled.out("sacct", "-o", spec).splitlines()[:3]
    assert head == "JobID JobNam  Energy Estimated    Stat "
    assert dashes == "----- ------ ------- ------------ ---- "
    assert first == "    1 tést +   123.5 measured     COM+ "


def delimiter_of(log):
    """The one with which sacct was asked last."""
    *_, last = map(json.loads, log.read_text().splitlines())
    return next(word for word in last if word.startswith("--delimiter="))


def test_no_job_name_forges_or_shifts_a_row(filled, sacct_on_path, monkeypatch):
    """slurmctld takes any; only what nobody foresees is in none."""
    rows = cells(filled, "JobIDRaw,State,Energy")
    first = delimiter_of(sacct_on_path)
    for evil in ("x\x1fCOMPLETED\x1f\x1f777\x1fdemo\nrest", f"x{first.partition('=')[2]}y"):
        monkeypatch.setenv("SACCT_NAMES", json.dumps({"1": evil}))
        text = filled.out("sacct", "-nP", "-o", "JobIDRaw,State,Energy,JobName,JobIDRaw")
        assert f"{'|'.join(rows[0])}|{evil}|1\n" in text
        found = [line.split("|")[:3] for line in text.replace(evil, "").splitlines()]
        assert found == rows
    assert delimiter_of(sacct_on_path) != first


def test_comment_with_a_newline_stays_one_row(filled):
    lines = filled.out("sacct", "-n", "-o", "JobID%-10,Comment,Energy").splitlines()
    row = next(line for line in lines if line.startswith("2 "))
    assert row.split() == ["2", "a", "b", "~100.0"]


def test_asking_for_the_key_columns_changes_nothing(filled):
    found = cells(filled, "Cluster,JobIDRaw%3,Energy,JobIDRaw")
    assert found[0] == ["demo", "1", "123.456789", "1"]


def test_only_our_columns(filled):
    assert filled.out("sacct", "-n", "-o", "Energy%8").splitlines()[0] == "   123.5 "


def test_a_number_that_does_not_fit_keeps_its_size(site, sacct_on_path):
    for job, energy_uj in ((1, 1_232_567_890_123_456), (2, 123_256_789_012_345)):
        guessed = {"method": "model", "estimated": True} if job == 2 else {}
        accounts = [builders.account(step, energy_uj, **guessed) for step in STEPS]
        site.leave(job, accounts=accounts)
    assert site.run("merge")[2] == ""
    told = site.out("sacct", "-n", "-o", "JobIDRaw%3,Energy%8,Energy%-9").splitlines()
    assert {"  1 1.23e+09 1.233e+09 ", "  2 ~1.2e+08 ~1.23e+08 "} <= set(told)


def test_json_has_our_object_in_jobs_and_steps(filled):
    one, two, *others = json.loads(filled.out("sacct", "--json"))["jobs"]
    assert one["joulemark"]["energy_uj"] == 123_456_789
    assert one["joulemark"]["estimated"] is False
    assert [step["joulemark"]["energy_uj"] for step in one["steps"]] == [123_456_789] * 4
    assert two["joulemark"]["estimated"] is True
    assert two["joulemark"]["missing"].startswith("n2: ")
    assert all(job["joulemark"] is None for job in others)


def test_json_is_sacct_s_own_otherwise(filled):
    answer = json.loads(filled.out("sacct", "--json"))
    for job in answer["jobs"]:
        del job["joulemark"]
        for step in job["steps"]:
            del step["joulemark"]
    assert answer == json.loads(subprocess.run(["sacct", "--json"], stdout=-1).stdout)


def test_sacct_judges_its_own_fields_and_options(filled):
    code, out, _ = filled.run("sacct", "-o", "JobID,Nonsense")
    assert code == 1 and out == ""


def asked(log):
    """The options of each call of sacct."""
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.parametrize(
    ("typed", "passed"),
    [
        ("-X -j12,13.0 -S now-1days -E now", "-X -j 12,13.0 -S now-1days -E now"),
        ("--user a,b --account=x --partition p", "--user=a,b --account=x --partition=p"),
        ("--state=CD,F --name job --uid 0", "--state=CD,F --name=job --uid=0"),
        ("--starttime now-7days -u -1", "--starttime=now-7days -u -1"),
        ("--array --expand-patterns", "--array --expand-patterns"),
        ("-XFSchedMain,StartReceived -RPriority", "-X -F SchedMain,StartReceived -R Priority"),
        ("--flags=SchedBackfill --reason x", "--flags=SchedBackfill --reason=x"),
        ("--whole-hetjob --whole-hetjob=no", "--whole-hetjob --whole-hetjob=no"),
        ("--use-local-uid -C gpu -aLTvD", "--use-local-uid -C gpu -a -L -T -v -D"),
        ("--units M --noconvert --federation", "--units=M --noconvert --federation"),
    ],
)
def test_sacct_gets_its_options_as_typed(filled, sacct_on_path, typed, passed):
    filled.run("sacct", *typed.split())
    first = asked(sacct_on_path)[0]
    assert first[: len(passed.split())] == passed.split() and first[-2] == "-o"


@pytest.mark.parametrize(
    "typed",
    [
        *("-c -o jobid", "-f FILE", "-B -j 1", "--env-vars -j1", "--usage", "-V"),
        *("--helpstate", "--helpreason", "--autocomplete=-", "--json=list", "--js=LIST"),
    ],
)
def test_what_is_no_table_of_jobs_is_sacct_s_own(site, sacct_on_path, typed):
    site.out("sacct", *typed.split())
    assert asked(sacct_on_path) == [typed.split()]


@pytest.mark.parametrize(
    ("options", "head"),
    [
        ([], "State|Energy"),
        (["-o", "JobID"], "JobID"),
        (["--brief"], "JobID|State|ExitCode"),
        (["-bo", "Elapsed"], "Elapsed|JobID|State|ExitCode"),
    ],
)
def test_sacct_format_is_the_format_where_none_is_asked_for(filled, monkeypatch, options, head):
    monkeypatch.setenv("SACCT_FORMAT", " State, Energy%20,")
    assert filled.out("sacct", "-P", *options).splitlines()[0] == head


@pytest.mark.parametrize("options", [["-o", ""], ["--format="], ["-o", ","], ["-P", "-o", ""]])
def test_a_format_that_names_no_column_is_refused(filled, monkeypatch, options):
    """Of a script's variable that is not set: it asked for these columns, not for the default."""
    monkeypatch.setenv("SACCT_FORMAT", "JobID")
    code, out, err = filled.run("sacct", *options)
    assert (code, out) == (1, "")
    assert err == "joulemark: sacct: --format: it names no column; see `joulemark sacct --help`\n"


@pytest.mark.parametrize("options", [["--json"], ["--helpformat"]])
def test_sacct_does_not_see_our_names_in_sacct_format(filled, monkeypatch, options):
    """It looks at them whatever it is asked for, and ends."""
    monkeypatch.setenv("SACCT_FORMAT", "JobID,Energy")
    assert filled.out("sacct", *options)


@pytest.mark.parametrize("form", ["", "%s", "%a %T", "relative"])
@pytest.mark.parametrize("cut", [[], ["-D"], ["-T"], ["-DT"]])
def test_a_run_is_found_by_its_time_in_whatever_format(
    site, sacct_on_path, monkeypatch, form, cut
):
    """Of two, a second apart, one after the other is the one that Slurm shows."""
    if form:
        monkeypatch.setenv("SLURM_TIME_FORMAT", form)
    for run in (0, 1):
        used = {"energy_uj": 10**6 * (run + 1), "start_s": 11 * run}
        accounts = [builders.account(step, **used) for step in ("job", "batch")]
        site.leave(1, accounts=accounts, restart=run)
        site.run("merge")
    for run, row in enumerate(("1|1.000000|0", "1|2.000000|1")):
        show(monkeypatch, 11 * run, 11 * run + 10)
        for fields in ("JobIDRaw,Energy,Run", "JobIDRaw,Energy,Run,Start"):
            assert site.out("sacct", *cut, "-nPo", fields).startswith(row)
        if form != "%s":  # sacct's JSON has no jobs then
            (told, *_) = json.loads(site.out("sacct", *cut, "--json"))["jobs"]
            assert told["joulemark"]["run"] == told["steps"][0]["joulemark"]["run"] == run


def show(monkeypatch, began_s, ended_s):
    """When Slurm says that job 1 did, after the records' start; None: it has not yet."""
    start_s = builders.START_NS // 10**9
    times_s = [0 if one is None else start_s + one for one in (began_s, ended_s)]
    monkeypatch.setenv("SACCT_TIMES", json.dumps({"1": times_s}))


@pytest.mark.parametrize("times_s", [(None, None), (20, None), (1000, 1010), (-1000, -990)])
def test_no_other_run_is_shown_beside_a_job_of_its_number(filled, monkeypatch, times_s):
    """It waits or runs again, or is another user's: numbers begin anew."""
    show(monkeypatch, *times_s)
    comments(filled, monkeypatch, *([1] if times_s[1] is None else []))
    assert {"1|", "1.0|"} <= set(filled.out("sacct", "-nPo", "JobIDRaw,Energy").splitlines())
    one, *_ = json.loads(filled.out("sacct", "--json"))["jobs"]
    assert one["joulemark"] is one["steps"][0]["joulemark"] is None


def test_a_job_that_was_resized_has_its_energy(site, sacct_on_path, monkeypatch):
    """Slurm shows the part since; by -D both, and the energy is the first one's."""
    site.leave(1, accounts=[builders.account(seconds=100)])
    site.out("merge")
    show(monkeypatch, 60, 100)
    words = ("-nPo", "JobIDRaw,Energy")
    assert "1|100.000000\n" in site.out("sacct", *words)
    assert "1|\n" in site.out("sacct", "-D", *words)


@pytest.mark.parametrize(("unseen_s", "shown"), [(30.05, "1|0.166357"), (5.0, "1|")])
def test_a_run_that_was_seen_only_after_its_end_has_its_energy(
    site, sacct_on_path, monkeypatch, unseen_s, shown
):
    """joulemarkd was down, and found a slurmstepd that still ended: the record begins when Slurm
    has the run over for longer than clocks differ, and says how long it saw nothing."""
    late = {"energy_uj": 166_357, "start_s": 30, "seconds": 1, "gap_seconds": unseen_s}
    site.leave(1, accounts=[builders.account(**late)])
    site.out("merge")
    show(monkeypatch, 0, 1)
    for cut in ([], ["-D"]):
        assert site.out("sacct", *cut, "-nXPo", "JobIDRaw,Energy").splitlines()[0] == shown


def test_a_run_without_a_record_has_not_the_next_ones(monkeypatch):
    """Where that was not seen for just as long as lies between them."""
    began_s = builders.START_NS / 1e9
    began = {"Start_ns": builders.START_NS + 20 * 10**9, "GapSeconds": 20.0}
    rows = [{"JobIDRaw": "1", "Run": 1, "Step": "job", **began}]
    windows = ((began_s, began_s + 2), (began_s + 20, began_s + 40))
    runs = [Shown("c", "1", window, is_alone=False) for window in windows]
    monkeypatch.setattr("joulemark.slurm.jobenergy._stored", lambda shown: {("c", 1): rows})
    energy = Energy(runs)
    assert [energy.row(one) for one in runs] == [None, rows[0]]


def test_a_job_that_nobody_measured_lacks_its_energy(site, sacct_on_path, monkeypatch):
    """No record tells when it ran."""
    site.leave(1, accounts=[], missing="dead")
    site.out("merge")
    assert "job 1 lacks energy of n1: dead\n" in site.out("sacct")
    show(monkeypatch, 20, None)
    assert "lacks" not in site.out("sacct")


def test_times_are_in_the_user_s_format(filled, monkeypatch):
    monkeypatch.setenv("SLURM_TIME_FORMAT", "%Y")
    assert filled.out("sacct", "-nPo", "Start,Energy").splitlines()[0] == "2026|123.456789"


def test_json_is_that_of_the_asked_data_parser(filled, sacct_on_path):
    answer = json.loads(filled.out("sacct", "--json=v0.0.41+complex"))
    assert asked(sacct_on_path) == [["--json=v0.0.41+complex"]]
    assert answer["jobs"][0]["joulemark"]["energy_uj"] == 123_456_789


def test_json_without_jobs_is_passed_on(filled, monkeypatch):
    """sacct ends well where it could not parse a time: its answer says so."""
    monkeypatch.setenv("SLURM_TIME_FORMAT", "%s")
    answer = json.loads(filled.out("sacct", "--json", "-j", "12"))
    assert answer == {"meta": {}, "errors": [{"source": "start_time"}]}


@pytest.mark.parametrize("when", ["1970-01-02", "-nP -o", "--helpformat"])
def test_where_sacct_fails_at_a_later_call_its_exit_code_is_ours(filled, sacct_on_path, when):
    """slurmdbd went away meanwhile; sacct itself has said so."""
    command = sacct_on_path.with_name("bin") / "sacct"
    command.rename(command.with_name("answers"))
    fails = f'case "$*" in *"{when}"*) exit 3;; esac'
    command.write_text(f'#!/bin/sh\n{fails}\nexec {command.parent}/answers "$@"\n')
    command.chmod(0o755)
    assert filled.run("sacct", "-T", "-o", "JobID,e,Energy") == (3, "", "")


@pytest.mark.parametrize("form", ["compact", "pretty"])
def test_json_is_laid_out_as_sacct_s(filled, monkeypatch, form):
    monkeypatch.setenv("SLURM_JSON", form)
    assert (len(filled.out("sacct", "--json").splitlines()) == 1) == (form == "compact")


def test_names_of_columns_are_abbreviated_as_sacct_s_own(filled):
    """Its own come first."""
    head = filled.out("sacct", "-Po", "energyer,gap,est%10,jobidr,ConsumedEnergyR").splitlines()[0]
    assert head == "EnergyError|GapSeconds|Estimated|JobIDRaw|ConsumedEnergyRaw"
    assert filled.out("sacct", "-Po", "e").splitlines()[0] == "ExitCode"


def test_bad_width_of_our_column_is_named(filled):
    assert "-o Energy%x: '%x' is not a width" in filled.fails("sacct", "-o", "Energy%x")


def test_missing_sacct_is_said(site, monkeypatch):
    monkeypatch.setenv("PATH", str(site.folder))
    assert "sacct: not found on PATH" in site.fails("sacct")


def comments(site, monkeypatch, *jobs):
    """Slurm's accounting has the merge's line of each of these jobs, beside others' words."""
    lines = [site.out("merge", "--job", str(job), "--print-comment") for job in jobs]
    texts = (line.rstrip("\n").split("\t")[2] for line in lines)
    told = {
        str(job): f"paid\nby A <joulemark 1: {text}>, in full" for job, text in zip(jobs, texts)
    }
    monkeypatch.setenv("SACCT_COMMENTS", json.dumps(told))


def no_store(site):
    site.store.unlink()
    return "no store yet"


def no_database(site):
    site.store.write_bytes(b"not a database" * 1000)
    return "the store cannot be used"


def no_configuration(site):
    site.yaml.unlink()
    return "No such file or directory: set JOULEMARK_CONFIG"


def no_permission(site):
    site.store.unlink()
    site.store.parent.joinpath("file").touch()
    site.yaml.write_text(site.yaml.read_text().replace("store.sqlite", "file/store.sqlite"))
    return "you may not read the store"


UNREADABLE = [no_store, no_database, no_configuration, no_permission]
FROM_COMMENT = "from AdminComment: rounded, and of whole jobs, not of their steps"


@pytest.mark.parametrize("unreadable", UNREADABLE)
def test_who_cannot_read_the_store_sees_his_jobs_all_the_same(filled, monkeypatch, unreadable):
    comments(filled, monkeypatch, 1, 2)
    shown = "JobIDRaw,Energy,EnergyError,AveWatts,PeakWatts,EnergyCPU,EnergyDRAM,EnergyGPU"
    shown += ",EnergyRest,EnergyIdle,EnergySystematic,EnergyRandom,GapSeconds"
    texts = ",Estimated,EnergyMethod,AdminComment"
    before = cells(filled, shown + texts)
    why = unreadable(filled)
    code, out, err = filled.run("sacct", "-P", "-o", shown + texts, "--delimiter=;")
    assert code == 0
    note, *others = err.splitlines()
    assert why in note and FROM_COMMENT in note
    assert not any(FROM_COMMENT in line for line in others)
    assert "job 2 lacks energy of n2" in others
    rows = {
        line[: line.index(";")]: line.split(";") for line in out.splitlines()[1:] if ";" in line
    }
    for then in before:
        if then[0] in ("1", "2"):
            now = rows[then[0]]
            numbers = [float(cell) for cell in now[:13]]
            assert numbers == pytest.approx(
                [float(cell) for cell in then[:13]], rel=1e-3, abs=0.051
            )
            assert now[13:15] == then[13:15]
    assert not any("".join(rows[step][1:15]) for step in ("1.batch", "1.0", "3"))


def test_a_table_of_comments_marks_estimates(filled, monkeypatch):
    comments(filled, monkeypatch, 1, 2)
    no_store(filled)
    code, out, err = filled.run("sacct")
    rows = {line.split()[0]: line.split() for line in out.splitlines()[2:] if line[0] in "123"}
    assert rows["1"][-7:-1] == ["123.5", "2.5", "12.30", "74.1", "0.000", "0.000"]
    assert rows["2"][-7:-4] == ["~100.0", "~2.0", "~10.00"] and rows["2"][-1] == "estimated"
    assert "~ energy estimated by a model, not measured" in out
    assert (code, len(err.splitlines())) == (0, 1)


def test_a_job_that_is_not_in_the_store_is_seen_by_its_comment(filled, monkeypatch):
    line = "Energy: 77.0 J +- 1.5 J (k=2), 7.0 W mean, 1 node, counter"
    told = {job: f"<joulemark 1: {line}>" for job in "14"}
    monkeypatch.setenv("SACCT_COMMENTS", json.dumps(told))
    _, out, err = filled.run("sacct", "-nPo", "JobIDRaw,Energy,EnergyCPU")
    assert {"1|123.456789|74.074073", "4|77.000000|", "4.batch||", "3||"} <= set(out.splitlines())
    assert "of jobs that are not in the store energies are " + FROM_COMMENT in err
    _, _, err = filled.run("sacct", "-nPo", "JobIDRaw")
    assert err == ""


def test_json_tells_what_is_from_the_comment(filled, monkeypatch):
    comments(filled, monkeypatch, 1, 2)
    known = json.loads(filled.out("sacct", "--json"))["jobs"][0]["joulemark"]
    no_store(filled)
    code, out, err = filled.run("sacct", "--json")
    one, two, three, _ = json.loads(out)["jobs"]
    told = one["joulemark"]
    assert (code, known["source"], told["source"]) == (0, "store", "AdminComment")
    assert told.keys() == known.keys()
    assert told["energy_uj"] == 123_500_000 and told["domains_uj"]["cpu"] == 74_070_000
    assert (two["joulemark"]["estimated"], two["joulemark"]["missing"]) == (True, "n2")
    assert three["joulemark"] is one["steps"][0]["joulemark"] is None
    assert FROM_COMMENT in err


def test_columns_without_energy_need_no_store(site, sacct_on_path):
    _, out, err = site.run("sacct", "-nPo", "JobIDRaw,State")
    assert "1|COMPLETED" in out.splitlines() and err == ""


def test_the_store_is_asked_once_for_many_jobs(filled, queries):
    filled.out("sacct", "-nPo", "JobIDRaw,Energy")
    assert len([sql for sql in queries if "FROM job_run" in sql]) == 1


def test_every_column_is_in_help_and_helpformat(site, sacct_on_path):
    helped = site.out("sacct", "--help")
    listed = site.out("sacct", "-e")
    for column in columns.COLUMNS:
        assert f"  {column.name} " in helped
        assert column.name in listed


@pytest.mark.parametrize("option", ["--help", "-e", "--help-fields"])
def test_coverage_of_errors_is_said(site, sacct_on_path, option):
    said = " ".join(site.out("sacct", option).split())
    assert "EnergySystematic and EnergyRandom are standard uncertainties, k=1" in said
    assert "EnergyError, OverheadError, StorageError, CarbonError and CostError are half" in said


@pytest.mark.parametrize(
    ("typed", "passed", "fields", "chosen"),
    [
        ("-nPj 12 -o a,b", ["-j", "12"], ["a", "b"], {"noheader", "parsable2"}),
        ("--form=a --format b --fields c", [], ["a", "b", "c"], set()),
        ("--nohe --js", [], [], {"noheader", "json"}),
        ("--state CD -T", ["--state=CD", "-T"], [], set()),
        ("--some-new=thing -Z", ["--some-new=thing", "-Z"], [], set()),
        ("-X --units=K", ["-X", "--units=K"], [], set()),
        ("-pPp", [], [], {"parsable"}),
        ("-X -- -P", ["-X", "--", "-P"], [], set()),
        ("--noheader=1", ["--noheader=1"], [], set()),
    ],
)
def test_options_are_taken_apart(typed, passed, fields, chosen):
    args = sacctargs.parse(typed.split())
    assert (args.passed(), args.format) == (passed, fields)
    assert args.chosen & OURS == chosen


OURS = sacctargs.OURS - {"delimiter", "format"}
VALUES = st.sampled_from(["12", "a,b", "-1", "now-7days", "-P", "--json", "x y", "%", "--", ""])


@st.composite
def command_lines(draw, sacct):
    """Letters alone and together, names and their beginnings, values in each place, operands."""
    words = []
    for _ in range(draw(st.integers(0, 6))):
        name = draw(st.sampled_from(sorted(sacct.names)))
        kind, letter = sacct.names[name]
        value = draw(VALUES)
        if letter and draw(st.booleans()):
            alone = "".join(draw(st.lists(st.sampled_from("abcDLnpPtTvX"), max_size=3)))
            words.append(f"-{alone}{letter}")
            if kind == 1:
                glued = value and draw(st.booleans())
                words[-1:] = [words[-1] + value] if glued else [words[-1], value]
        else:
            word = f"--{name[: draw(st.integers(1, len(name)))]}"
            glued = kind and draw(st.booleans())
            words += [f"{word}={value}"] if glued else [word, value] if kind == 1 else [word]
        words += draw(st.sampled_from([[]] * 9 + [["--"], ["-"], ["12"]]))
    return words


@pytest.mark.parametrize("release", RELEASES)
def test_every_option_of_a_release_is_known(release):
    may_have = sacctargs.MAY_HAVE_VALUE
    kinds = {0: {sacctargs.ALONE, may_have}, 1: {sacctargs.NEEDS_VALUE}, 2: {may_have}}
    for name, (kind, letter) in RELEASES[release].names.items():
        option, ours = sacctargs.LONG[name]
        assert option == (letter or name) and ours in kinds[kind], name
        assert not letter or sacctargs.SHORT[letter][1] == ours, letter


@pytest.mark.parametrize("release", RELEASES)
@given(data=st.data())
def test_options_are_read_as_sacct_reads_them(release, data):
    """What goes on to sacct, and what we take ourselves, is together what it would have read."""
    sacct = RELEASES[release]
    words = data.draw(command_lines(sacct))
    meant = sacct.parse(words)
    assume(meant is not None)
    args = sacctargs.parse(words)
    name_of = {letter: name for letter, (name, _) in sacctargs.SHORT.items()}
    options, operands = meant
    named = [(name_of.get(letter, letter), letter, value) for letter, value in options]
    theirs = [(letter, value) for name, letter, value in named if name not in sacctargs.OURS]
    assert sacct.parse(args.passed()) == (theirs, operands)
    values = {name: value for name, _, value in named}
    assert args.chosen - {"parsable", "parsable2"} == values.keys() - {"parsable", "parsable2"}
    assert args.delimiter == values.get("delimiter", "|")
    assert args.data_parser == values.get("json", "")
    lists = [value for name, _, value in named if name == "format"]
    assert args.format == sacctargs.names(",".join(lists))
    last = [name for name, *_ in named if name.startswith("parsable")][-1:]
    assert args.chosen & {"parsable", "parsable2"} == set(last)


def test_option_without_its_value_is_named():
    with pytest.raises(UserError, match=r"-j: it needs a value"):
        sacctargs.parse(["-X", "-j"])
