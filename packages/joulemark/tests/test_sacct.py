# `joulemark sacct` beside what a real sacct printed.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
from pathlib import Path

import builders
import pytest
from joulemark.accounting import columns
from joulemark.errors import UserError
from joulemark.slurm import sacctargs

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
    assert head.split()[:5] == ["JobID", "JobName", "State", "Elapsed", "ConsumedEnergyRaw"]
    assert head.split()[5:] == [
        *("Energy", "EnergyError", "AveWatts"),
        *("EnergyCPU", "EnergyDRAM", "EnergyGPU", "EnergyRest", "Estimated"),
    ]
    assert set(dashes) == {"-", " "} and len(dashes) == len(head) == len(first)
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


def test_in_a_table_estimates_are_marked_also_sacct_s_own(filled):
    lines = filled.out("sacct", "-n", "-o", "JobIDRaw,ConsumedEnergyRaw,Energy").splitlines()
    found = [line.split() for line in lines]
    assert ["2", "~0", "~100.0"] in found and ["1", "0", "123.5"] in found


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


@pytest.mark.parametrize("word", ["ALL", "al"])
def test_all_is_every_column_of_sacct_and_ours(filled, word):
    """sacct takes ALL for its own columns; the first alone of them was printed."""
    rows = Path(__file__).parent / "data" / "sacct.rows"
    own = rows.read_text().split("\n")[0].split("\x1f")
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


def test_comment_with_a_newline_stays_one_row(filled):
    lines = filled.out("sacct", "-n", "-o", "JobID%-10,Comment,Energy").splitlines()
    row = next(line for line in lines if line.startswith("2 "))
    assert row.split() == ["2", "a", "b", "~100.0"]


def test_asking_for_the_key_columns_changes_nothing(filled):
    found = cells(filled, "Cluster,JobIDRaw%3,Energy,JobIDRaw")
    assert found[0] == ["demo", "1", "123.456789", "1"]


def test_only_our_columns(filled):
    assert filled.out("sacct", "-n", "-o", "Energy%8").splitlines()[0] == "   123.5 "


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
    assert answer == json.loads((Path(__file__).parent / "data" / "sacct.json").read_text())


def test_sacct_judges_its_own_fields_and_options(filled):
    code, out, _ = filled.run("sacct", "-o", "JobID,Nonsense")
    assert code == 1 and out == ""


def test_sacct_gets_its_options_as_typed(filled, sacct_on_path):
    filled.run("sacct", "-X", "-j12,13.0", "-S", "now-1days", "--user=a,b", "-A", "x", "-E", "now")
    given = [json.loads(line) for line in sacct_on_path.read_text().splitlines()]
    expected = ["-X", "-j", "12,13.0", "-S", "now-1days", "--user=a,b", "-A", "x", "-E", "now"]
    assert given[0][: len(expected)] == expected


def test_bad_width_of_our_column_is_named(filled):
    assert "-o Energy%x: '%x' is not a width" in filled.fails("sacct", "-o", "Energy%x")


def test_missing_sacct_is_said(site, monkeypatch):
    monkeypatch.setenv("PATH", str(site.folder))
    assert "sacct: not found on PATH" in site.fails("sacct")


def test_missing_store_is_said(site, sacct_on_path):
    assert "no store yet" in site.fails("sacct")


def test_corrupt_store_is_said(site, sacct_on_path):
    site.store.write_bytes(b"not a database" * 1000)
    assert "the store cannot be used" in site.fails("sacct")


def test_every_column_is_in_help_and_helpformat(site, sacct_on_path):
    helped = site.out("sacct", "--help")
    listed = site.out("sacct", "-e")
    for column in columns.COLUMNS:
        assert f"  {column.name} " in helped
        assert column.name in listed


@pytest.mark.parametrize(
    ("typed", "passed", "fields", "chosen"),
    [
        ("-nPj 12 -o a,b", ["-j", "12"], ["a", "b"], {"noheader", "parsable2"}),
        ("--form=a --format b", [], ["a", "b"], set()),
        ("--nohe --js", [], [], {"noheader", "json"}),
        ("--state CD -T", ["--state=CD", "-T"], [], set()),
        ("--some-new=thing -Z", ["--some-new=thing", "-Z"], [], set()),
        ("-X --units=K", ["-X", "--units=K"], [], set()),
    ],
)
def test_options_are_read_as_getopt_reads_them(typed, passed, fields, chosen):
    args = sacctargs.parse(typed.split())
    assert (args.passed, args.format, args.chosen) == (passed, fields, chosen)


def test_option_without_its_value_is_named():
    with pytest.raises(UserError, match=r"-j: it needs a value"):
        sacctargs.parse(["-X", "-j"])
