# `joulemark job`: what it tells of a job, an array, a heterogeneous job, and of what is not known.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import csv
import io
import json
import math

import builders
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joulemark import cli, config
from joulemark.accounting import job, jobreport
from joulemark.accounting.jobid import JobId
from joulemark.profile import hdf5
from joulemark.profile.node import Channel, NodeProfile
from joulemark.profile.spans import peak_w
from joulemark.slurm import allocations
from joulemark.store import schema

pytestmark = pytest.mark.usefixtures("sacct_jobs")

UJ = 1_000_000


@pytest.fixture
def without_sacct(site, monkeypatch):
    monkeypatch.setenv("PATH", str(site.folder))
    return site


REGION = {"name": "solve", "count": 2, "seconds": 4.0, "energy_uj": 40 * UJ, "uncertainty_uj": 1e6}


def leave(site, number, *accounts, node="n1", **changes):
    site.leave(number, node, list(accounts) or [builders.account()], **changes)
    assert site.run("merge")[0] == 0


def record(site, *ids):
    (found,) = json.loads(site.out("job", *ids, "--format", "json"))
    return found


NO_PEAK = "Peak power is not known: no profile (--energy=profile keeps one)."


def notes(site, *ids):
    """But for that of the peak, of which all that have no profile say the same."""
    *found, last = record(site, *ids)["notes"]
    assert last == NO_PEAK
    return found


def lines(site, *ids):
    """What people see, by the first word or words of each line."""
    return site.out("job", *ids).splitlines()


def row(site, label, *ids):
    """The cells of a row of the first table."""
    (line,) = (line for line in lines(site, *ids) if line.startswith(f"{label} "))
    return line[len(label) :].split()


# ---- formats ----


def test_csv_has_a_row_an_id_and_json_s_figures(site):
    for number in (20, 31, 32):
        leave(site, number)
    whole = json.loads(site.run("job", "20", "30", "--format", "json")[1])
    rows = list(csv.DictReader(io.StringIO(site.out("job", "20", "30", "--format", "csv"))))
    assert [one["job_id"] for one in rows] == ["20", "30"] and rows[1]["jobs"] == "2"
    for row_of, one in zip(rows, whole):
        figures = {name: value for name, value in one.items() if not isinstance(value, list)}
        assert row_of == {n: "" if v is None else str(v) for n, v in figures.items()}


def test_files_are_what_their_names_say(site):
    leave(site, 20)
    for name, begin in (
        ("j.csv", "job_id,cluster,jobs,"),
        ("j.md", "**Job 20: "),
        ("j.json", "["),
    ):
        path = site.folder / name
        assert site.out("job", "20", "--out", str(path)) == ""
        assert path.read_text().startswith(begin)


def test_one_job_has_the_same_figures_by_the_same_names_everywhere(site):
    site.configure("carbon_g_per_kwh: 360\nprice_per_kwh: 0.25\ncurrency: EUR\n")
    leave(site, 20, builders.account(), builders.account("0"))
    of_job = {name: one for name, one in record(site, "20").items() if not isinstance(one, list)}
    (listed,), (used,), (node,) = (
        json.loads(site.out("report", name, "--format", "json"))
        for name in ("jobs", "usage", "nodes")
    )
    energy = {"energy_j", "energy_uj", "energy_error_j"}
    charges = {"carbon_g", "carbon_error_g", "cost", "cost_error", "currency", "overhead_j"}
    parts = {"energy_cpu_j", "energy_cpu_uj", "energy_idle_j", "mean_w", "time_s", "cluster"}
    for other, least in ((listed, energy | charges | parts), (used, energy | charges)):
        shared = of_job.keys() & other.keys()
        assert least <= shared
        for name in shared:
            assert other[name] == pytest.approx(of_job[name]), name
    assert {name: node[name] for name in energy} == {name: of_job[name] for name in energy}


# ---- one job ----


def test_energy_power_parts_and_cpu_hours_of_a_job(site):
    leave(site, 20)
    found = record(site, "20")
    assert (found["energy_j"], found["energy_uj"], found["mean_w"]) == (100.0, 100_000_000, 10.0)
    assert found["energy_error_j"] == pytest.approx(2 * math.hypot(1.0, 0.1))
    assert (found["energy_cpu_uj"], found["energy_rest_uj"]) == (60 * UJ, 40 * UJ)
    assert (found["energy_idle_j"], found["energy_idle_uj"]) == (25.0, 25 * UJ)
    assert (found["allocated_cpu_s"], found["used_cpu_s"]) == (40, 35.25)
    assert found["energy_per_cpu_hour_j"] == pytest.approx(100 / (40 / 3600))
    assert found["runs"][0]["state"] == "COMPLETED" and found["runs"][0]["complete"] is True
    assert notes(site, "20") == []


def test_energy_per_cpu_hour_and_mean_power_are_over_one_time(site):
    """Slurm's is in whole seconds, and may be 0."""
    leave(site, 20, builders.account(end_ns=builders.START_NS + 10_400_000_000))
    found = record(site, "20")
    assert found["allocated_cpu_s"] == pytest.approx(4 * 10.4)
    assert found["energy_per_cpu_hour_j"] == pytest.approx(found["mean_w"] / 4 * 3600)


def test_people_are_told_the_same(site):
    leave(site, 20)
    assert lines(site, "20")[0] == "Job 20: COMPLETED, energy measured"
    assert row(site, "Energy [J]", "20") == ["100", "2.01"]
    assert row(site, "Mean power [W]", "20") == ["10.0"]
    assert row(site, "Energy per CPU-hour [J]", "20") == ["9000"]
    assert row(site, "CPU use", "20") == ["88%"]
    assert row(site, "CPU [J]", "20") == ["60.0", "60%"]
    assert row(site, "Idle part [J]", "20") == ["25.0", "25%"]
    assert row(site, "Peak power [W]", "20") == ["-"] and NO_PEAK in lines(site, "20")
    assert "kWh" not in site.out("job", "20")


def test_a_domain_that_nothing_tells_apart_is_not_zero(site):
    leave(site, 20, builders.account(domains_uj={"cpu": 60 * UJ, "rest": 40 * UJ}))
    assert record(site, "20")["energy_gpu_j"] is None
    assert row(site, "GPU [J]", "20") == ["-"]


def test_much_energy_is_also_in_kwh(site):
    leave(site, 20, builders.account(energy_uj=7_200_000 * UJ))
    assert row(site, "Energy [J]", "20")[0] == "7200000"
    assert row(site, "Energy [kWh]", "20") == ["2.00", "0.04"]


def test_steps_and_regions(site):
    step = builders.account("0", 50 * UJ, 5, regions=[REGION])
    leave(site, 20, builders.account(), builders.account("batch"), step)
    found = record(site, "20")
    assert [(one["step"], one["energy_uj"]) for one in found["steps"]] == [
        *(("0", 50 * UJ), ("batch", 100 * UJ)),
    ]
    (found,) = found["regions"]
    assert (found["step"], found["name"], found["energy_j"], found["count"]) == (
        "0",
        "solve",
        40,
        2,
    )
    assert row(site, "0 solve", "20") == ["40.0", "1.00", "10.0", "4.00", "2"]
    assert "The batch step includes the steps that ran meanwhile." in lines(site, "20")


UNSURE = {**REGION, "uncertainty_uj": None}
UNKNOWN = {**UNSURE, "energy_uj": None}


@pytest.mark.parametrize("later", [{"node": "n2"}, {"restart": 1}])
@pytest.mark.parametrize(
    ("first", "second", "error_uj"),
    [
        (REGION, REGION, 2e6),
        (REGION, UNKNOWN, 1e6),
        (UNSURE, REGION, None),
        (REGION, UNSURE, None),
    ],
)
def test_a_region_s_error_is_known_where_that_of_each_node_and_run_is(
    site, later, first, second, error_uj
):
    for region, where in ((first, {"restart": 0}), (second, {"restart": 0, **later})):
        leave(site, 20, builders.account(regions=[region]), **where)
    (found,) = record(site, "20")["regions"]
    assert found["uncertainty_uj"] == error_uj
    error = "-" if error_uj is None else f"{error_uj / UJ:.2f}"
    assert row(site, "job solve", "20")[-4] == error


def test_overhead_carbon_and_cost_have_their_errors(site):
    site.configure("carbon_g_per_kwh: 360\nprice_per_kwh: 0.36\ncurrency: EUR\n")
    leave(site, 20, builders.account(energy_uj=10_000_000 * UJ))
    found = record(site, "20")
    assert found["carbon_g"] == pytest.approx(1000) and found["cost"] == pytest.approx(1.0)
    assert found["currency"] == "EUR" and found["overhead_j"] is None
    assert found["cost_error"] == pytest.approx(2 * math.hypot(0.01, 0.001))
    assert row(site, "CO2e [g]", "20") == ["1000", "20.1"]
    assert row(site, "Cost [EUR]", "20") == ["1.00", "0.02"]


def test_a_small_job_costs_something(site):
    site.configure("price_per_kwh: 0.36\ncurrency: EUR\n")
    leave(site, 20)
    assert row(site, "Cost [EUR]", "20") == ["0.00001", "0.0000002"]


def test_overhead_is_beside_the_energy(site):
    folder = site.records / "shared"
    folder.mkdir()
    readings = [
        {
            **{"time_ns": builders.START_NS + second * 10**9, "energy_uj": second * 50 * UJ},
            **{"systematic_uj": second * 0.5e6, "random_uj": 0, "nodes": "n1", "split": "equal"},
            "run": "a",
        }
        for second in (0, 10)
    ]
    (folder / "rack1.jsonl").write_text("".join(json.dumps(one) + "\n" for one in readings))
    leave(site, 20, node_cpus=2)
    found = record(site, "20")
    assert (found["energy_j"], found["overhead_j"], found["overhead_uj"]) == (100, 500, 500 * UJ)
    assert found["overhead_error_j"] == pytest.approx(10)
    assert row(site, "Overhead [J]", "20") == ["500", "10.0"]


# ---- what is not known, or not sure ----


def test_an_estimate_is_marked_and_said(site):
    guessed = {"method": "model", "estimated": True}
    step = builders.account("0", 50 * UJ, 5, regions=[REGION], **guessed)
    leave(site, 20, builders.account(**guessed), step)
    assert row(site, "0 solve", "20") == ["~40.0", "1.0", "~10.0", "4.00", "2"]
    assert lines(site, "20")[0] == "Job 20: COMPLETED, energy ESTIMATED by a model, not measured"
    assert row(site, "Energy [J]", "20")[0] == "~100"
    assert record(site, "20")["estimated_jobs"] == 1


def test_a_domain_that_some_runs_know_says_how_many_and_is_a_share_of_theirs(site):
    told = {"cpu": 60 * UJ, "dram": 0, "gpu": 20 * UJ, "rest": 20 * UJ}
    leave(site, 20, builders.account(domains_uj=told), restart=0)
    leave(site, 20, builders.account(start_s=100), restart=1)
    no_gpu = {"cpu": 60 * UJ, "dram": 0, "rest": 40 * UJ}
    leave(site, 20, builders.account(start_s=200, domains_uj=no_gpu), restart=2)
    assert row(site, "GPU [J]", "20") == ["20.0", "(2", "of", "3)", "10%"]
    assert record(site, "20")["energy_gpu_jobs"] == 2
    assert jobreport.LEGEND_PARTIAL in lines(site, "20")
    assert row(site, "CPU [J]", "20") == ["180", "60%"]


def test_estimates_have_no_more_digits_than_their_interval_leaves(site):
    """Of what was measured there are three digits."""
    site.configure("carbon_g_per_kwh: 360000\n")
    rough = {"uncertainty_systematic_uj": 76.5e6, "uncertainty_random_uj": 0.0}
    region = {**REGION, "energy_uj": 225_198_000, "uncertainty_uj": 78.026e6}
    of_job = {"energy_uj": 442 * UJ, "method": "model", "estimated": True, **rough}
    leave(site, 20, builders.account(**of_job, regions=[region]))
    told = {
        "Energy [J]": ["~440", "150"],
        "Mean power [W]": ["~44"],
        "CPU [J]": ["~265", "60%"],
        "CO2e [g]": ["~44", "15"],
        "job solve": ["~225", "78", "~56", "4.00", "2"],
    }
    assert {label: row(site, label, "20") for label in told} == told
    assert record(site, "20")["mean_w"] == 44.2
    text = site.out("report", "usage", "--format", "markdown").replace("\\", "")
    assert "| ~440 | 150 | ~44.2 | 15.3 |" not in text and "| ~440 | 150 | ~44 | 15 |" in text
    text = site.out("report", "jobs", "--format", "markdown").replace("\\", "")
    assert "| ~440 | 150 | ~44 | ~44 | 15 |" in text
    text = site.out("report", "nodes", "--format", "markdown").replace("\\", "")
    assert "| ~440 | 150 | ~44 | 15 |" in text


def test_steps_and_regions_that_some_runs_have_say_how_many(site):
    guessed = {"method": "model", "estimated": True}
    leave(site, 20, builders.account(), builders.account("0", regions=[REGION]), restart=0)
    leave(site, 20, builders.account(start_s=100, **guessed), restart=1)
    unknown = {**builders.account("0", start_s=200), "energy_uj": None}
    leave(site, 20, builders.account(start_s=200), unknown, restart=2)
    steps = site.out("job", "20").partition("\nSteps\n")[2].splitlines()
    assert steps[1].split() == ["0", "100", "(1", "of", "3)", "2.01", "10.0", "10.0"]
    assert row(site, "0 solve", "20")[:4] == ["40.0", "(1", "of", "3)"]
    assert jobreport.LEGEND_PARTIAL in lines(site, "20")
    found = record(site, "20")
    assert found["jobs"] == 3
    assert [one["energy_jobs"] for one in (*found["steps"], *found["regions"])] == [1, 1]


def test_what_all_runs_have_is_not_marked(array):
    assert jobreport.LEGEND_PARTIAL not in lines(array, "30")


def test_metered_overhead_is_no_estimate(site):
    (site.records / "shared").mkdir()
    end = {"systematic_uj": 0, "random_uj": 0, "nodes": "n1", "split": "equal", "run": "a"}
    readings = [
        {"time_ns": builders.START_NS + second * 10**9, "energy_uj": second * 50 * UJ, **end}
        for second in (0, 10)
    ]
    text = "".join(json.dumps(one) + "\n" for one in readings)
    (site.records / "shared/rack1.jsonl").write_text(text)
    leave(site, 20, builders.account(method="model", estimated=True), node_cpus=2)
    assert row(site, "Energy [J]", "20")[0] == "~100"
    assert row(site, "Overhead [J]", "20")[0] == "500"
    assert "500 " in site.out("report", "usage") and "~500" not in site.out("report", "usage")


def test_a_missing_node_notes_and_faults_are_said(site):
    fault = {"what": "stuck", "count": 3, "seconds": 12.5, "last": "read timed out"}
    meter = {"name": "pdu", "faults": [fault]}
    account = builders.account(notes=["a gap of 3 s"])
    site.leave(20, "n1", [account], instruments=[meter])
    site.run("merge", "--job", "20", "--nodes", "n1,n2", "--wait", "0")
    text = site.out("job", "20")
    assert "Job 20: COMPLETED, energy measured, INCOMPLETE\n" in text
    lacking, *said = notes(site, "20")
    assert lacking.startswith("Job 20: more than this, for it lacks n2: no record came")
    assert said == ["Job 20: pdu stuck 3 times, 12.5 s on n1.", "Job 20: n1: a gap of 3 s."]
    assert said[0] in text


def test_a_job_without_a_measurement_has_no_energy_and_is_not_zero(site):
    site.leave(20, "n1", [], missing="the daemon was not there")
    site.run("merge")
    found = record(site, "20")
    assert found["energy_j"] is None and found["energy_error_j"] is None
    assert lines(site, "20")[0] == "Job 20: COMPLETED, energy not measured, INCOMPLETE"
    assert row(site, "Energy [J]", "20") == ["-"]


def test_no_cpu_time_is_said_where_slurm_measures_none(site):
    leave(site, 63)
    found = record(site, "63")
    assert found["used_cpu_s"] is None and found["allocated_cpu_s"] == 40
    assert notes(site, "63") == [
        "CPU use is not known: Slurm measured no CPU time (JobAcctGatherType)."
    ]
    assert row(site, "Energy per CPU-hour [J]", "63") == ["9000"]


def test_without_sacct_a_raw_id_is_looked_up_alone(without_sacct):
    leave(without_sacct, 31)
    found = record(without_sacct, "31")
    assert found["energy_uj"] == 100 * UJ and found["energy_per_cpu_hour_j"] is None
    assert notes(without_sacct, "31") == [
        "CPU-hours and CPU use are not known: sacct: not found on PATH: install Slurm's commands."
    ]
    assert lines(without_sacct, "31")[0] == "Job 31: energy measured"


def test_a_job_that_only_the_store_knows(site):
    leave(site, 99)
    assert notes(site, "99") == ["CPU-hours and CPU use are not known: sacct does not know it."]


def test_a_record_of_another_time_is_not_of_sacct_s_run(site):
    """Slurm began its ids anew: CPU-hours of one job are not those of another."""
    leave(site, 20, builders.account(start_s=100_000))
    assert record(site, "20")["energy_per_cpu_hour_j"] is None


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("60", "job 60: CANCELLED: it never ran, and used no energy"),
        ("61", "job 61: RUNNING: its energy is known when it has ended"),
        ("62", "job 62: COMPLETED, but the store has no record of it: run `joulemark merge`;"),
        ("30_[4-5]", "job 30_[4-5]: PENDING: its energy is known when it has ended"),
        ("77", "job 77: the store has no record of it (sacct does not know it): is it a job of"),
        ("65", "job 65: CANCELLED: it never ran, and used no energy"),
        ("30_77", "job 30_77: job 30 has no such task: sacct knows 30_1, 30_2, 30_3, 30_[4-9%2]"),
        ("40+7", "job 40+7: job 40 has no such component: sacct knows 40+0, 40+1"),
        ("20_1", "job 20_1: job 20 has no such task: sacct knows 20"),
        ("77_1", "job 77_1: sacct knows no job 77"),
    ],
)
def test_why_a_job_is_not_known(site, asked, why):
    leave(site, 12)
    said = site.fails("job", asked)
    assert said.startswith(f"joulemark: {why}") and said.count("\n") == 1


def test_tasks_need_sacct(without_sacct):
    leave(without_sacct, 31)
    said = without_sacct.fails("job", "30_1")
    assert (
        "only sacct knows its raw id (sacct: not found on PATH: install Slurm's commands)" in said
    )


def test_what_is_known_is_told_beside_what_is_not(site):
    leave(site, 20)
    code, out, err = site.run("job", "77", "20", "--format", "json")
    assert code == 1 and [one["job_id"] for one in json.loads(out)] == ["20"]
    assert err.startswith("joulemark: job 77: ")


def test_sacct_s_own_complaint_is_told(site, tmp_path):
    command = tmp_path / "bin" / "sacct"
    complaint = "sacct: error: Problem talking to the database: Connection refused"
    command.write_text(
        f"#!/bin/sh\necho 'sacct: error: first' >&2\necho '{complaint}' >&2\nexit 1\n"
    )
    leave(site, 20)
    assert notes(site, "20") == [
        "CPU-hours and CPU use are not known: sacct: Problem talking to the database: "
        "Connection refused."
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("x", "0", "12.0", "12_", "12_[]", "12_[3-1]", "12+", "1" * 12),
        *(f"12_{1 << 32}", f"12_[1,0-{'9' * 20}]"),
    ],
)
def test_what_is_no_id_is_refused(site, capsys, text):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["job", text])
    assert stopped.value.code == 2 and f"'{text}'" in capsys.readouterr().err


def test_as_many_tasks_as_slurm_could_number_are_asked_for(array):
    assert record(array, f"30_[0-{(1 << 32) - 1}]")["jobs"] == 2


# ---- arrays, heterogeneous jobs, runs ----


@pytest.fixture
def array(site):
    """Two tasks that have ended, five seconds apart, of nine."""
    leave(site, 31)
    leave(site, 32, builders.account(start_s=5))
    return site


def test_an_array_is_summed(array):
    found = record(array, "30")
    assert found["energy_uj"] == 200 * UJ and found["jobs"] == 2
    assert found["energy_error_j"] == pytest.approx(2 * math.hypot(2.0, math.hypot(0.1, 0.1)))
    assert [(one["job_id"], one["job_id_raw"], one["state"]) for one in found["runs"]] == [
        *(("30_1", 31, "COMPLETED"), ("30_2", 32, "FAILED")),
    ]
    assert found["no_record"] == [
        *({"job_id": "30_3", "state": "RUNNING"}, {"job_id": "30_[4-9%2]", "state": "PENDING"}),
    ]
    assert (found["allocated_cpu_s"], found["used_cpu_s"]) == (40, pytest.approx(20.015))


def test_the_tasks_of_an_array_mark_the_same_regions(site):
    for raw, region in ((31, REGION), (32, UNKNOWN)):
        leave(site, raw, builders.account(), builders.account("0", regions=[region]))
    (found,) = record(site, "30")["regions"]
    assert (found["count"], found["seconds"], found["uncertainty_uj"]) == (4, 8.0, 1e6)
    assert found["energy_j"] == 40.0 and (found["step"], found["name"]) == ("0", "solve")
    assert (found["energy_jobs"], found["energy_seconds"]) == (1, 4.0)
    assert row(site, "0 solve", "30") == ["40.0", "(1", "of", "2)", "1.00", "10.0", "8.00", "4"]


def test_regions_are_in_the_order_of_their_numbers(site):
    names = ["copy/16384", "add", "copy/1024", "copy/1048576", "copy/", "copy/1024/7"]
    step = builders.account("0", regions=[{**REGION, "name": name} for name in sorted(names)])
    leave(site, 20, builders.account(), step)
    assert [one["name"] for one in record(site, "20")["regions"]] == [
        *("add", "copy/", "copy/1024", "copy/1024/7", "copy/16384", "copy/1048576"),
    ]


def test_the_mean_power_of_an_array_is_that_while_it_ran(array):
    found = record(array, "30")
    assert found["time_s"] == 15.0 and found["mean_w"] == pytest.approx(200 / 15)


def test_people_see_the_tasks_of_an_array(array):
    text = array.out("job", "30")
    head = "Job 30: 1 COMPLETED, 1 FAILED, 6 PENDING, 1 RUNNING, energy measured, INCOMPLETE"
    assert text.splitlines()[0] == head
    assert "No record (yet): 30_3 (RUNNING), 30_[4-9%2] (PENDING)." in text
    assert row(array, "30_2", "30") == ["100", "2.01", "10.0", "10.0"]


def test_of_many_tasks_people_see_the_greatest(array, monkeypatch):
    monkeypatch.setattr(jobreport, "SHOWN_RUNS", 1)
    leave(array, 32, builders.account(energy_uj=300 * UJ, start_s=5, seconds=11))
    text = array.out("job", "30")
    assert "\nRuns, the 1 greatest of 2\n" in text
    assert "\n30_2 " in text and "\n30_1 " not in text


@pytest.mark.parametrize(
    ("asked", "raws"),
    [
        ("30_2", [32]),
        ("30_[2]", [32]),
        ("30_[1,2]", [31, 32]),
        ("30_[0-9:2]", [32]),
        ("30_[1-9%2]", [31, 32]),
        ("31", [31]),
    ],
)
def test_some_tasks_of_an_array(array, asked, raws):
    assert [one["job_id_raw"] for one in record(array, asked)["runs"]] == raws


def test_several_jobs_in_one_word(array):
    found = json.loads(array.out("job", "30_1,30_[1,2]", "--format", "json"))
    assert [one["job_id"] for one in found] == ["30_1", "30_[1,2]"]


def test_a_heterogeneous_job_and_its_components(site):
    leave(site, 40)
    leave(site, 41, builders.account(energy_uj=300 * UJ), node="n2")
    whole = record(site, "40")
    assert whole["energy_uj"] == 400 * UJ and whole["mean_w"] == pytest.approx(40.0)
    assert whole["allocated_cpu_s"] == 120
    for asked in ("40+1", "41"):
        component = record(site, asked)
        assert (component["energy_uj"], component["allocated_cpu_s"]) == (300 * UJ, 80)


def test_all_runs_of_a_requeued_job_were_paid_for(site):
    site.leave(50, "n1", [builders.account()])
    site.run("merge")
    leave(site, 50, builders.account(seconds=20, start_s=130))
    found = record(site, "50")
    assert found["energy_uj"] == 200 * UJ and found["allocated_cpu_s"] == 120
    assert [(one["run"], one["state"]) for one in found["runs"]] == [(0, None), (1, "COMPLETED")]
    assert row(site, "50 (run 1)", "50") == ["100", "2.01", "5.00", "20.0"]


def test_a_run_without_its_record_is_said(site):
    leave(site, 50)
    leave(site, 80)
    assert record(site, "50")["no_record"] == [{"job_id": "50", "state": "COMPLETED"}]
    assert record(site, "50")["allocated_cpu_s"] == 40
    assert lines(site, "80")[0] == "Job 80: RUNNING, energy measured, INCOMPLETE"


def test_tasks_that_never_ran_lack_nothing(site):
    leave(site, 71)
    assert lines(site, "70")[0] == "Job 70: 8 CANCELLED, 1 COMPLETED, energy measured"


def test_what_nodes_say_of_many_tasks_is_said_once(site):
    for raw in (31, 32):
        leave(site, raw, builders.account(notes=["a gap"], start_s=5))
    assert record(site, "30")["notes"][1] == "Job 30_1, 30_2: n1: a gap."


# ---- several clusters ----


@pytest.fixture
def clusters(site):
    """Two that have a job 20 each."""
    leave(site, 20)
    site.leave(20, "n9", [builders.account(energy_uj=300 * UJ)], cluster="elsewhere")
    site.at("elsewhere", "merge")
    return site


def records(site, *words):
    return json.loads(site.out("job", *words, "--format", "json"))


def test_a_job_of_another_cluster_is_told_with_its_own_figures(clusters):
    assert record(clusters, "20")["energy_uj"] == 100 * UJ
    (found,) = records(clusters, "20", "-M", "elsewhere")
    assert (found["cluster"], found["energy_uj"]) == ("elsewhere", 300 * UJ)
    assert (found["allocated_cpu_s"], found["used_cpu_s"]) == (640, 36_000)
    text = clusters.out("job", "20", "-M", "elsewhere")
    assert text.startswith("Job 20 of elsewhere: COMPLETED, energy measured\n")


def test_jobs_of_one_number_on_several_clusters_are_told_apart(clusters):
    found = records(clusters, "20", "-M", "demo,elsewhere")
    assert [(one["cluster"], one["energy_uj"]) for one in found] == [
        *(("demo", 100 * UJ), ("elsewhere", 300 * UJ)),
    ]
    rows = list(
        csv.DictReader(
            io.StringIO(clusters.out("job", "20", "-M", "elsewhere,demo,demo", "--format", "csv"))
        )
    )
    assert [one["cluster"] for one in rows] == ["elsewhere", "demo"]


def test_a_job_that_one_of_the_clusters_has_is_known(clusters):
    leave(clusters, 64)
    assert [one["cluster"] for one in records(clusters, "64", "-M", "elsewhere,demo")] == ["demo"]
    said = clusters.fails("job", "77", "-M", "elsewhere,demo").splitlines()
    assert [line.split(":")[:3] for line in said] == [
        *(["joulemark", " elsewhere", " job 77"], ["joulemark", " demo", " job 77"]),
    ]


def test_sacct_is_asked_of_other_clusters_only_where_they_are_named(clusters, sacct_on_path):
    clusters.out("job", "20")
    clusters.out("job", "20", "-M", "elsewhere")
    without, named = map(json.loads, sacct_on_path.read_text().splitlines())
    assert "-M" not in without and named[named.index("-M") + 1] == "elsewhere"


def test_a_profile_of_another_cluster_tells_the_peak(clusters):
    pytest.importorskip("h5py", reason="profiles are HDF5")
    settings = config.load(clusters.yaml)
    settings.profile_dir.mkdir()
    for name, powers in (("demo", [5, 25]), ("elsewhere", [5, 35])):
        hdf5._write(hdf5.path_of(settings, name, 20), [profile(20, "n1", 0, powers)])
    found = records(clusters, "20", "-M", "demo,elsewhere")
    assert [one["peak_w"] for one in found] == [pytest.approx(25), pytest.approx(35)]


# ---- what would change ----


def test_idle_energy_grows_with_time(site):
    leave(site, 20)
    (hint,) = record(site, "20")["hints"]
    assert hint.startswith("25% of the energy is the idle power of its part of the nodes")
    assert "half the time would take about 88 J, in twice the time 125 J." in hint


def test_what_is_known_to_a_third_is_told_in_no_more_digits(site):
    error = {"uncertainty_systematic_uj": 1600 * UJ, "uncertainty_random_uj": 0.0}
    leave(site, 20, builders.account(energy_uj=9136 * UJ, estimated=True, **error))
    (hint,) = record(site, "20")["hints"]
    assert "would take about ~8 kJ, in twice the time ~11 kJ." in hint


def test_cpus_that_wait_are_named(site):
    leave(site, 64)
    assert record(site, "64")["hints"][1].startswith("Its CPUs worked 10% of the time: with fewer")


def test_who_has_one_cpu_is_not_told_to_take_fewer(site):
    leave(site, 66)
    assert record(site, "66")["hints"][1] == (
        "Its CPU worked 10% of the time: what waits less ends sooner, with less of the idle power."
    )


def test_without_idle_power_nothing_is_said_of_it(site):
    leave(site, 20, builders.account(idle_uj=0))
    assert record(site, "20")["hints"] == []


# ---- a charge that was corrected ----


@pytest.mark.parametrize("charge", [["--charge", "0%"], ["--charge", "80%"], ["--energy", "300"]])
def test_what_was_measured_is_told_of_the_job_whatever_it_is_charged(array, charge):
    physical = ("mean_w", "energy_per_cpu_hour_j", "hints", "time_s")
    before = record(array, "30")
    array.out("store", "correct", "31", *charge, "--why", "its node failed")
    after = record(array, "30")
    assert after["energy_uj"] != before["energy_uj"]
    assert [after[name] for name in physical] == [before[name] for name in physical]
    assert "25% of the energy is the idle" in after["hints"][0]
    assert row(array, "Energy per CPU-hour [J]", "31") == ["18000"]


# ---- laws ----


ERRORS = st.floats(0, 1e12)
ROWS = st.lists(st.tuples(st.integers(0, 1 << 50), ERRORS, ERRORS), min_size=1, max_size=9)


def stored(energy_uj, systematic_uj, random_uj):
    names = ("EnergyOverhead_uj", "OverheadSystematic_uj", "OverheadRandom_uj", "Carbon_g")
    return {
        **dict.fromkeys((*names, "CarbonError_g", "Cost", "CostError", "Currency")),
        **dict.fromkeys(schema.ADDED_BY_TENTH),
        **{"Cluster": "demo", "Uid": 1, "Estimated": 0, "Incomplete": 0},
        "ConsumedEnergy_uj": energy_uj,
        "UncertaintySystematic_uj": systematic_uj,
        "UncertaintyRandom_uj": random_uj,
    }


@given(ROWS)
def test_energies_are_exact_and_errors_add_as_their_kind_does(rows):
    found = job.used([stored(*one) for one in rows])
    energies, systematic, random = zip(*rows)
    assert found.energy_uj == sum(energies)
    expected = 2e-6 * math.hypot(math.fsum(systematic), *random)
    assert found.energy_error_j == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**4)), min_size=1, max_size=9))
def test_time_is_that_of_the_union(spans):
    rows = [{"Start_ns": a, "End_ns": a + b, "ConsumedEnergy_uj": 1} for a, b in spans]
    marked = bytearray(max(a + b for a, b in spans) or 1)
    for a, b in spans:
        marked[a : a + b] = b"\1" * b
    assert job.seconds(rows) == pytest.approx(sum(marked) / 1e9)


@given(st.integers(0, 9 * 86_400_000))
def test_cpu_time_is_read_as_sacct_writes_it(total_ms):
    """As _elapsed_time() of sacct's print.c does."""
    minutes, ms = divmod(total_ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    text = f"{hours:02}:{minutes:02}:{ms // 1000:02}"
    read_ms = total_ms - total_ms % 1000
    if days:
        text = f"{days}-{text}"
    elif not hours and ms % 1000:
        text, read_ms = f"{minutes:02}:{ms // 1000:02}.{ms % 1000:03}", total_ms
    assert allocations.cpu_seconds(text) == pytest.approx(read_ms / 1000)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=5), st.integers(0, 50))
def test_an_id_covers_the_tasks_that_it_names(tasks, task):
    asked = JobId.parse(f"12_[{','.join(map(str, tasks))}]")
    told = allocations.Allocation(JobId.parse(f"12_{task}"), 99, "", 1, 0.0, None, None)
    assert asked.covers(told) == (task in tasks)


# ---- peak power ----


def profile(number, node, start_s, powers_w):
    """A node's power, a second each."""
    times_s = [1_790_000_000.0 + start_s + at for at in range(len(powers_w) + 1)]
    energies_j = [float(sum(powers_w[:at])) for at in range(len(times_s))]
    meter = Channel("meter/node", "node", "counter", True, None, times_s, energies_j)
    inner = Channel("rapl/package-0", "cpu", "counter", False, None, times_s, energies_j)
    return NodeProfile("demo", number, node, 1000, 1.0, {one.name: one for one in (meter, inner)})


def test_the_peak_is_that_of_the_sum_of_nodes():
    nodes = [profile(20, "n1", 0, [100, 300, 100]), profile(20, "n2", 0.5, [50, 10, 200])]
    assert peak_w(nodes) == pytest.approx(350)
    assert peak_w([]) is None


def test_a_job_with_a_profile_has_its_peak(site):
    pytest.importorskip("h5py", reason="profiles are HDF5")
    leave(site, 20)
    settings = config.load(site.yaml)
    settings.profile_dir.mkdir()
    path = hdf5.path_of(settings, "demo", 20)
    hdf5._write(path, [profile(20, "n1", 0, [5, 25, 10])])
    assert record(site, "20")["peak_w"] == pytest.approx(25) and NO_PEAK not in lines(site, "20")
    assert row(site, "Peak power [W]", "20") == ["25.0"]
    path.write_bytes(b"no profile")
    (why,) = record(site, "20")["notes"]
    assert why.startswith(f"Peak power is not known: {path}: not a profile: ")


def test_why_a_peak_is_not_known_of_several(array):
    pytest.importorskip("h5py", reason="profiles are HDF5")
    settings = config.load(array.yaml)
    settings.profile_dir.mkdir()
    hdf5._write(hdf5.path_of(settings, "demo", 31), [profile(31, "n1", 0, [5, 25, 10])])
    why = "no profile of job 32 (--energy=profile keeps one)"
    assert record(array, "30")["notes"][-1] == f"Peak power is not known: {why}."
    leave(array, 31, builders.account(start_s=900))
    why = "a profile is of the last run alone"
    assert record(array, "31")["notes"][-1] == f"Peak power is not known: {why}."
