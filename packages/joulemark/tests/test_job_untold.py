# `joulemark job` where the store cannot be read: what Slurm's accounting shows its user.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import csv
import io
import json
import math

import builders
import pytest
from joulemark import config
from joulemark.profile import hdf5
from test_job import NO_PEAK, REGION, UJ, leave, lines, profile, record, row

pytestmark = pytest.mark.usefixtures("sacct_jobs")

SOURCE = (
    "This is what Slurm's accounting tells (AdminComment), rounded; who reads the store is told"
    " more, such as steps and regions; here: {}: you may not read the store."
)


@pytest.fixture
def close(site, monkeypatch):
    """Nobody may read the store any more; Slurm has merges' lines of these jobs, or texts."""

    def close(*numbers, **texts):
        for number in numbers:
            line = site.out("merge", "--job", str(number), "--print-comment").rstrip("\n")
            segment = f"<joulemark 1: {line.split(chr(9))[2]}>"
            texts[str(number)] = f"paid\nby A|B {segment}, in full"
        monkeypatch.setenv("SACCT_COMMENTS", json.dumps(texts))
        site.store.unlink()
        (site.folder / "file").touch()
        ours = site.yaml.read_text()
        site.yaml.write_text(ours.replace("store.sqlite", "file/store.sqlite"))

    return close


def source(site):
    return SOURCE.format(site.folder / "file/store.sqlite")


def told(site, *ids):
    """A job's record, and what stderr says beside it."""
    code, out, err = site.run("job", *ids, "--format", "json")
    assert code == 0, err
    (found,) = json.loads(out)
    return found, err


# ---- one job ----


@pytest.fixture
def rich(site):
    """A job with all that a comment can tell."""
    site.configure("carbon_g_per_kwh: 360\nprice_per_kwh: 0.25\ncurrency: EUR\n")
    (site.records / "shared").mkdir()
    end = {"systematic_uj": 5e6, "random_uj": 0, "nodes": "n1", "split": "equal", "run": "a"}
    readings = [
        {"time_ns": builders.START_NS + second * 10**9, "energy_uj": second * 50 * UJ, **end}
        for second in (0, 10)
    ]
    text = "".join(json.dumps(one) + "\n" for one in readings)
    (site.records / "shared/rack1.jsonl").write_text(text)
    step = builders.account("0", 50 * UJ, 5, regions=[REGION])
    leave(site, 20, builders.account(regions=[REGION]), step, node_cpus=2)
    return site


def test_every_figure_is_told_but_those_of_steps_and_regions(rich, close):
    before = record(rich, "20")
    close(20)
    after, err = told(rich, "20")
    assert after.keys() == before.keys() and err == f"joulemark: {source(rich)}\n"
    assert before["overhead_j"] == 500 and before["peak_bound_w"] == 10
    for name, value in before.items():
        if not isinstance(value, (list, str, type(None))):
            assert after[name] == pytest.approx(value, rel=1e-3), name
    assert (after["job_id"], after["cluster"], after["currency"]) == ("20", "demo", "EUR")
    assert after["steps"] == after["regions"] == after["no_record"] == []
    assert after["hints"] == before["hints"]
    assert after["notes"] == [*before["notes"], source(rich)]
    (then,), (now,) = before["runs"], after["runs"]
    assert now == {**then, **{name: now[name] for name in now if name.startswith("energy")}}


def test_people_see_the_same_table_and_at_the_end_where_it_is_from(rich, close):
    before = rich.out("job", "20").partition("\n\n")[0]
    close(20)
    after = rich.out("job", "20")
    assert after.partition("\n\n")[0] == before
    assert " ".join(after.split()).endswith(source(rich))
    assert "Steps" not in after and "Regions" not in after


def test_rows_have_the_same_columns_and_stderr_says_it_once(rich, close):
    leave(rich, 64)
    before = rich.out("job", "20", "64", "--format", "csv").splitlines()[0]
    close(20, 64)
    _, out, err = rich.run("job", "20", "64", "--format", "csv")
    assert out.splitlines()[0] == before
    assert [one["job_id"] for one in csv.DictReader(io.StringIO(out))] == ["20", "64"]
    assert err == f"joulemark: {source(rich)}\n"


def test_an_estimate_faults_and_a_missing_node_are_said(site, close):
    meter = {"name": "pdu", "faults": [{"what": "stuck", "count": 3, "seconds": 12.5}]}
    account = builders.account(method="model", estimated=True)
    site.leave(20, "n1", [account], instruments=[meter])
    site.run("merge", "--job", "20", "--nodes", "n1,n2", "--wait", "0")
    close(20)
    head = "Job 20: COMPLETED, energy ESTIMATED by a model, not measured, INCOMPLETE"
    assert lines(site, "20")[0] == head
    assert row(site, "Energy [J]", "20")[0] == "~100"
    found, _ = told(site, "20")
    assert found["notes"] == [
        *("Job 20: more than this, for it lacks n2.", "Job 20: pdu stuck."),
        *(NO_PEAK, source(site)),
    ]


def test_a_job_that_was_not_measured_has_no_energy(site, close):
    site.leave(20, "n1", [], missing="the daemon was not there")
    site.run("merge")
    close(20)
    assert lines(site, "20")[0] == "Job 20: COMPLETED, energy not measured, INCOMPLETE"
    assert row(site, "Energy [J]", "20") == ["-"]


def test_a_job_of_less_than_a_second_has_no_cpu_hours(site, close):
    leave(site, 20)
    close(**{"67": "Energy: 7.1 J +- 0.2 J (k=2), 10.0 W mean, 1 node, counter"})
    why = "CPU-hours and CPU use are not known: it ran for less than a second, as Slurm counts."
    assert why in told(site, "67")[0]["notes"]


def test_a_line_of_an_earlier_release_has_its_error(site, close):
    leave(site, 20)
    close(**{"20": "Energy: 5210.4 J +- 61.2 J (k=2), 521.0 W mean, 2 nodes, mixed"})
    assert row(site, "Energy [J]", "20") == ["5210", "61.2"]
    assert told(site, "20")[0]["peak_bound_w"] is None


def test_his_own_profile_tells_the_peak(site, close):
    pytest.importorskip("h5py", reason="profiles are HDF5")
    leave(site, 20)
    close(20)
    settings = config.load(site.yaml)
    settings.profile_dir.mkdir()
    hdf5._write(hdf5.path_of(settings, "demo", 20), [profile(20, "n1", 0, [5, 25, 10])])
    assert told(site, "20")[0]["peak_w"] == pytest.approx(25)


# ---- arrays, heterogeneous jobs, runs ----


def test_an_array_is_summed(site, close):
    leave(site, 31)
    leave(site, 32, builders.account(start_s=5))
    before = record(site, "30")
    close(31, 32)
    after, _ = told(site, "30")
    assert (after["energy_uj"], after["jobs"]) == (200 * UJ, 2)
    assert after["energy_error_j"] == pytest.approx(2 * math.hypot(2.0, 0.1, 0.1), rel=1e-3)
    assert (after["time_s"], after["peak_bound_w"]) == (15, 20)
    assert after["mean_w"] == pytest.approx(200 / 15)
    assert after["no_record"] == before["no_record"]
    assert row(site, "30_2", "30") == ["100", "2.01", "10.0", "10.0"]
    assert row(site, "Energy [J]", "30_1") == ["100", "2.01"]


def test_errors_of_earlier_releases_add_up(site, close):
    leave(site, 31)
    line = "Energy: 100.0 J +- 3.0 J (k=2), 10.0 W mean, 1 node, counter"
    close(**{"31": line, "32": line})
    assert told(site, "30")[0]["energy_error_j"] == pytest.approx(6)


def test_the_components_of_a_heterogeneous_job_are_summed(site, close):
    leave(site, 40)
    leave(site, 41, builders.account(energy_uj=300 * UJ), node="n2")
    close(40, 41)
    assert told(site, "40")[0]["energy_uj"] == 400 * UJ
    assert told(site, "40+1")[0]["energy_uj"] == 300 * UJ


def test_each_run_of_a_requeued_job_is_counted(site, close):
    leave(site, 50)
    line = "Energy: {} J +- 3.0 J (k=2), 10.0 W mean, 1 node, counter"
    close(**{"50@1790000000": line.format(100), "50@1790000130": line.format(200)})
    found, _ = told(site, "50")
    assert (found["energy_j"], found["jobs"], found["time_s"]) == (300, 2, 30)
    assert [(one["run"], one["state"]) for one in found["runs"]] == [(0, None), (1, "COMPLETED")]


def test_a_run_of_which_slurm_has_no_energy_is_lacking(site, close):
    leave(site, 50)
    close(**{"50@1790000130": "Energy: 200 J +- 3.0 J (k=2), 10.0 W mean, 1 node, counter"})
    assert row(site, "Energy [J]", "50") == ["200", "(1", "of", "2)", "3.00"]
    assert lines(site, "50")[0] == "Job 50: COMPLETED, energy measured, INCOMPLETE"


def test_a_run_that_goes_on_has_the_line_of_the_one_before(site, close):
    leave(site, 80)
    close(**{"80@1790000130": "Energy: 200 J +- 3.0 J (k=2), 10.0 W mean, 1 node, counter"})
    found, _ = told(site, "80")
    assert (found["energy_j"], found["energy_jobs"], found["time_s"]) == (200, 1, 10)


def test_requeued_runs_without_any_line_have_no_energy(site, close):
    leave(site, 50)
    close()
    assert "Slurm's accounting (AdminComment) has no energy of it" in site.fails("job", "50")


def test_a_run_whose_line_cannot_come_any_more_is_lacking(site, close):
    leave(site, 91)
    close(**{"91@1790000000": "Energy: 200 J +- 3.0 J (k=2), 10.0 W mean, 1 node, counter"})
    assert row(site, "Energy [J]", "91")[:4] == ["200", "(1", "of", "2)"]


def test_a_resized_job_is_one_run(site, close):
    leave(site, 90)
    close(**{"90@1790000010": "Energy: 600 J +- 3.0 J (k=2), 20.0 W mean, 2 nodes, counter"})
    found, _ = told(site, "90")
    assert (found["energy_j"], found["jobs"], found["mean_w"]) == (600, 1, 20)
    assert lines(site, "90")[0] == "Job 90: COMPLETED, energy measured"
    assert (found["allocated_cpu_s"], found["used_cpu_s"]) == (4 * 10 + 2 * 20, 58)


def test_each_cluster_s_job_has_its_own_comment(site, close):
    leave(site, 20)
    elsewhere = "Energy: 300.0 J +- 3.0 J (k=2), 30.0 W mean, 1 node, counter"
    close(20, **{"20@elsewhere": elsewhere})
    found = json.loads(site.out("job", "20", "-M", "demo,elsewhere", "--format", "json"))
    assert [(one["cluster"], one["energy_j"]) for one in found] == [
        *(("demo", 100), ("elsewhere", 300)),
    ]


def test_a_login_node_without_joulemark_yaml_is_told_the_same(site, close, monkeypatch, tmp_path):
    leave(site, 20)
    close(20)
    before, _ = told(site, "20")
    scontrol = tmp_path / "bin" / "scontrol"
    scontrol.write_text("#!/bin/sh\necho 'ClusterName             = demo'\n")
    scontrol.chmod(0o755)
    site.yaml.unlink()
    after, _ = told(site, "20")
    assert after["energy_j"] == before["energy_j"] == 100
    assert "set JOULEMARK_CONFIG to the site's joulemark.yaml" in after["notes"][-1]
    assert site.run("job", "20", "-M", "demo")[0] == 0
    scontrol.write_text("#!/bin/sh\nexit 1\n")
    assert "does slurmctld run?" in site.fails("job", "20")


# ---- what is not known ----


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("60", "job 60: CANCELLED: it never ran, and used no energy"),
        ("61", "job 61: RUNNING: its energy is known when it has ended"),
        ("62", "job 62: COMPLETED, but Slurm's accounting (AdminComment) has no energy of it; {}"),
        ("77", "job 77: Slurm shows you no such job (sacct does not know it); {}"),
        ("77_1", "job 77_1: sacct knows no job 77"),
    ],
)
def test_why_a_job_is_not_known(site, close, asked, why):
    leave(site, 20)
    close(20)
    store = f"{site.folder}/file/store.sqlite: you may not read the store"
    assert site.fails("job", asked) == f"joulemark: {why.format(store)}\n"


def test_the_comment_of_a_run_that_goes_on_is_an_earlier_one_s(site, close):
    leave(site, 61)
    close(61)
    assert "RUNNING" in site.fails("job", "61")


def test_what_is_known_is_told_beside_what_is_not(site, close):
    leave(site, 20)
    close(20)
    code, out, err = site.run("job", "77", "20", "--format", "json")
    assert code == 1 and [one["job_id"] for one in json.loads(out)] == ["20"]
    assert "joulemark: job 77: " in err and source(site) in err


def test_where_nobody_tells_anything_both_are_named(site, close, monkeypatch):
    leave(site, 20)
    close(20)
    monkeypatch.setenv("PATH", "/nowhere")
    said = site.fails("job", "20")
    assert "sacct: not found on PATH" in said and "you may not read the store" in said
