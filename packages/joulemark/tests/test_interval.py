# `joulemark report interval`: how often to write a checkpoint, for time and for energy.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import math
import random
import statistics

import pytest
from cooked_lines import FAILED, UNKNOWN, line, manifest, markdown_rows
from hypothesis import given
from hypothesis import strategies as some
from joulemark.bench import cooked, interval
from joulemark.bench.interval import Costs, Phase

#: 20 steps of 0.05 s at 200 W; a checkpoint, each 10 of them, takes 2 s and 100 J: 50 W
STEPS = {"time_s": 1.0, "energy_j": 200.0, "power_w": 200.0}
WRITING = {"time_s": 5.0, "energy_j": 400.0, "power_w": 80.0}
READING = {"time_s": 1.5, "energy_j": 60.0, "power_w": 40.0}
OPTIONS = {"option_steps": 20, "option_every": 10}


def of(kernel, values, size=1000, **changes):
    told = {"energy_uncertainty_j": 8.0, "time_spread_s": 0.0, "variant": "mpi", **values}
    told |= {"unit": "step/s" if kernel == "steps" else "B/s", **OPTIONS, **changes}
    return line(size, benchmark="jm-io-checkpoint", kernel=kernel, **told)


def all_of(**changes):
    kernels = {"steps": STEPS, "own-checkpoint": WRITING, "own-restart": READING}
    return [of(kernel, values, **changes) for kernel, values in kernels.items()]


def records(site, *words, mtbf="1h"):
    return json.loads(site.out("report", "interval", "--mtbf", mtbf, "--format", "json", *words))


# -- the model -----------------------------------------------------------------------------------


def simulated(costs, interval_s, mtbf_s, pieces, dice):
    """Times and energies of pieces of work, each with its checkpoint, failure by failure."""
    found = []
    for _ in range(pieces):
        time_s = energy_j = 0.0
        left_s = dice.expovariate(1 / mtbf_s)  # to the next failure
        phases = [(interval_s, costs.power_w * interval_s), costs.checkpoint]
        at = 0
        restarting = False
        while at < len(phases):
            needs_s, needs_j = costs.restart if restarting else phases[at]
            if left_s < needs_s:
                time_s += left_s
                energy_j += needs_j * left_s / needs_s
                left_s = dice.expovariate(1 / mtbf_s)
                at, restarting = 0, costs.restart.time_s > 0
                continue
            time_s += needs_s
            energy_j += needs_j
            left_s -= needs_s
            if restarting:
                restarting = False
            else:
                at += 1
        found.append((time_s, energy_j))
    return zip(*found)


@pytest.mark.parametrize("restart", [Phase(0.0, 0.0), Phase(25.0, 900.0)])
@pytest.mark.parametrize("interval_s", [20.0, 100.0, 300.0])
def test_expected_time_and_energy_are_those_of_a_program_that_fails(interval_s, restart):
    costs, mtbf_s = Costs(Phase(30.0, 1500.0), restart, 200.0), 200.0
    times_s, energies_j = simulated(costs, interval_s, mtbf_s, 20_000, random.Random(7))
    for values, expected in (
        (times_s, costs.time_s(interval_s, mtbf_s)),
        (energies_j, costs.energy_j(interval_s, mtbf_s)),
    ):
        error = statistics.stdev(values) / math.sqrt(20_000)
        assert abs(statistics.fmean(values) - expected) < 4 * error


def costs_of(power_w, writing_s, writing, reading_s, reading):
    """Of powers as parts of the program's."""
    checkpoint = Phase(writing_s, writing_s * writing * power_w)
    return Costs(checkpoint, Phase(reading_s, reading_s * reading * power_w), power_w)


PARTS = some.floats(0.01, 10.0)
LENGTHS_S = some.floats(1e-3, 1e3)
COSTS = some.builds(
    costs_of, some.floats(1.0, 1e4), LENGTHS_S, PARTS, some.just(0.0) | LENGTHS_S, PARTS
)


@given(COSTS, some.floats(1.0, 1e6))
def test_no_other_interval_is_better(costs, times):
    mtbf_s = max(costs.checkpoint.time_s, costs.restart.time_s) * times
    for of_interval in (costs.time_s, costs.energy_j):
        best_s = interval.best_s(costs, mtbf_s, of_interval)
        least = of_interval(best_s, mtbf_s) / best_s
        for factor in (0.5, 0.9, 1.1, 2.0):
            other_s = best_s * factor
            assert of_interval(other_s, mtbf_s) / other_s >= least * (1 - 1e-9)


@given(COSTS)
def test_of_rare_failures_it_is_young_s(costs):
    price_s = costs.checkpoint.energy_j / costs.power_w
    restart_s, restart_j = costs.restart
    longest_s = max(costs.checkpoint.time_s, price_s, restart_s, restart_j / costs.power_w)
    mtbf_s = (1000 * longest_s) ** 2 / min(price_s, costs.checkpoint.time_s)
    for of_interval, cost_s in (
        (costs.time_s, costs.checkpoint.time_s),
        (costs.energy_j, price_s),
    ):
        best_s = interval.best_s(costs, mtbf_s, of_interval)
        assert best_s == pytest.approx(interval.young_s(cost_s, mtbf_s), rel=0.02)


# -- the command ---------------------------------------------------------------------------------


def test_a_checkpoint_is_what_the_steps_take_longer(site, results):
    results(*all_of())
    time, energy = records(site)
    assert (time["least"], energy["least"]) == ("time", "energy")
    assert (time["checkpoint_s"], time["checkpoint_j"]) == (2.0, 100.0)
    assert (time["restart_s"], time["restart_j"], time["power_w"]) == (1.5, 60.0, 200.0)
    assert time["young_s"] == pytest.approx(math.sqrt(2 * 2.0 * 3600))
    assert energy["young_s"] == pytest.approx(math.sqrt(2 * 0.5 * 3600))
    assert 0.95 < time["interval_s"] / time["young_s"] < 1
    # twice as many checkpoints, for each takes a quarter of the program's power
    assert 0.45 < energy["interval_s"] / time["interval_s"] < 0.55
    assert time["time_part"] < energy["time_part"]
    assert energy["energy_part"] < time["energy_part"]


def test_two_ways_sizes_and_times_between_failures_are_each_told(site, results):
    shared = {"steps": STEPS, "shared-checkpoint": {**WRITING, "time_s": 9.0}}
    results(*all_of(), *(of(kernel, values, 2000) for kernel, values in shared.items()))
    out = site.out("report", "interval", "--mtbf", "90m", "7d", "--format", "markdown")
    rows = [row for row in markdown_rows(out) if row[0] in ("1.5 h", "1.50 h", "7 d", "7.00 d")]
    assert [row[1] for row in rows] == ["time", "energy"] * 4
    assert "own-checkpoint, mpi, 2 threads, x86_64, A CPU, size 1000: a checkpoint takes" in out
    assert "size 2000: no right result of a restart" in out
    assert rows[0][2:] == ["146", "147", "+2.80 %", "+1.75 %"]


def test_a_local_checkpoint_has_no_interval(site, results):
    local = {"steps": STEPS, "local-checkpoint": WRITING, "local-restart": READING}
    results(*all_of(), *(of(kernel, values, 2000) for kernel, values in local.items()))
    assert "local" not in site.out("report", "interval", "--mtbf", "1h", "--format", "markdown")


TIMES = (0.96, 1.0, 1.04)  # of steps; half of their mean's 95 % interval:
HALF = 4.303 * 0.04 / math.sqrt(3)


def of_several(**changes):
    """Three jobs, whose steps scatter."""
    lines = [of("steps", {**STEPS, "time_s": one}, job=str(one), **changes) for one in TIMES]
    return lines + [of("own-checkpoint", WRITING, job=str(one), **changes) for one in TIMES]


def test_errors_are_those_of_the_difference(site, results):
    results(*of_several())
    (time, energy) = records(site)
    assert time["checkpoint_s_error"] == pytest.approx(HALF / 2, rel=1e-3)
    part = time["checkpoint_s_error"] / 2.0
    assert time["interval_s_error"] / time["interval_s"] == pytest.approx(part / 2)
    assert energy["checkpoint_j_error"] == pytest.approx(math.hypot(8.0, 8.0) / 2)
    # of the checkpoint's joules by the program's power, by both instruments of J / J' - 1 = 1
    alike = 2 * math.hypot(8.0 / 400, 8.0 / 200)
    assert energy["interval_s_error"] / energy["interval_s"] == pytest.approx(alike / 2, rel=1e-3)


def test_of_one_node_s_channels_a_gain_or_an_offset_errs_by_the_difference(site, results):
    lines = of_several(node="n1", manifest=manifest())
    for one in lines:
        one["energy_uncertainty_j"] = one["energy_j"] * 0.04
    results(*lines)
    time, energy = records(site)
    # 4 % of 200 J by a gain; an offset, no more than 16 J of 5 s, is one of 4 s
    assert time["checkpoint_j_error"] == pytest.approx(4 * 16 / 5 / 2)
    # a gain errs alike of the checkpoint and of the program, whose power does not scatter here
    assert energy["interval_s_error"] == 0.0


def test_a_program_s_power_scatters_and_not_its_time_too(site, results):
    told = {"energy_uncertainty_j": None}
    lines = [
        of("steps", {"time_s": one, "energy_j": 200 * one, "power_w": 200.0}, job=str(one), **told)
        for one in TIMES
    ]
    lines += [
        of("own-checkpoint", {**WRITING, "energy_j": 4000.0}, job=job, **told) for job in "123"
    ]
    results(*lines)
    _, energy = records(site)
    part = energy["checkpoint_j_error"] / energy["checkpoint_j"]
    assert part == pytest.approx(200 * HALF / 3800, rel=1e-3)
    assert energy["interval_s_error"] / energy["interval_s"] == pytest.approx(part / 2, rel=1e-3)


def test_of_single_runs_one_instrument_s_errors_are_each_its_own(site, results):
    results(*all_of(node="n1", manifest=manifest(), time_spread_s=None))
    assert records(site)[0]["checkpoint_j_error"] == pytest.approx(math.hypot(8.0, 8.0) / 2)


@given(
    some.floats(-0.04, 0.04),
    some.floats(-4.0, 4.0),
    some.floats(0.5, 20.0),
    some.floats(20.0, 400.0),
)
def test_a_wrong_gain_or_offset_of_one_instrument_is_within_the_error(gain, offset_w, more_s, w):
    for kind in ({"gain": gain}, {"offset_w": offset_w}):
        lines = [*wrongly("steps", 1.0, 200.0, **kind)]
        lines += wrongly("own-checkpoint", 1 + more_s, 200 + w * more_s, **kind)
        ((one,), _) = interval.find([cooked.parse(json.dumps(line)) for line in lines])
        right_j = w * more_s / 2
        assert abs(one.checkpoint_j.mean - right_j) <= one.checkpoint_j.error * 1.05 + 1e-9


def wrongly(kernel, time_s, energy_j, gain=0.0, offset_w=0.0):
    """Two jobs, by an instrument that may be 4 % wrong, or 4 W."""
    told_j = energy_j * (1 + gain) + offset_w * time_s
    error_j = 4.0 * time_s if offset_w else 0.04 * energy_j
    values = {"time_s": time_s, "energy_j": told_j, "energy_uncertainty_j": error_j}
    told = {"power_w": told_j / time_s, "node": "n1", "manifest": manifest()}
    return [of(kernel, values | told, job=job) for job in "12"]


def test_without_energy_the_time_s_is_told_alone(site, results):
    results(*({**one, **UNKNOWN} for one in all_of()))
    (time,) = records(site)
    assert time["least"] == "time" and time["energy_part"] is None


def test_energies_by_different_instruments_are_no_difference(site, results):
    other = manifest(channels="bmc/psu1")
    results(
        *(
            one | {"manifest": other}
            if one["kernel"] == "steps"
            else one | {"manifest": manifest()}
            for one in all_of()
        )
    )
    assert [one["least"] for one in records(site)] == ["time"]
    out = site.out("report", "interval", "--mtbf", "1h", "--format", "markdown")
    assert "were measured by different instruments" in out


def test_an_estimate_is_marked(site, results):
    results(*all_of(estimated=True))
    out = site.out("report", "interval", "--mtbf", "1h", "--format", "markdown")
    assert "~100" in out and "~: energy ESTIMATED" in out


@pytest.mark.parametrize("time_s", [0.99, 1.01, 1.0])
def test_a_checkpoint_that_costs_nothing_that_can_be_told_has_no_interval(site, results, time_s):
    lines = of_several()[:3]
    lines += [of("own-checkpoint", {**WRITING, "time_s": time_s}, job=job) for job in "123"]
    results(*lines)
    _, out, err = site.run("report", "interval", "--mtbf", "1h", "--format", "csv")
    header = "benchmark,kernel,variant,threads,ranks,nodes,target,cpu,device,size,options,"
    assert out.startswith(header) and out.count("\n") == 1
    assert "what a checkpoint takes is within its error, or below nothing" in err
    out = site.out("report", "interval", "--mtbf", "1h", "--format", "markdown")
    assert "within its error" in out and not markdown_rows(out)[2:]


@pytest.mark.parametrize("energy_j", [190.0, 200.0, 205.0])
def test_a_checkpoint_s_energy_within_its_error_has_none(site, results, energy_j):
    results(of("steps", STEPS), of("own-checkpoint", {**WRITING, "energy_j": energy_j}))
    (time,) = records(site)
    assert time["least"] == "time" and time["energy_part"] is None
    out = site.out("report", "interval", "--mtbf", "1h", "--format", "markdown")
    assert "what a checkpoint draws is within its error" in out


@pytest.mark.parametrize(
    "changes", [UNKNOWN, {"manifest": manifest(channels="bmc/psu1")}, {"estimated": True}]
)
def test_a_restart_whose_energy_is_another_s_leaves_none_for_the_energy(site, results, changes):
    lines = all_of(manifest=manifest())
    lines[2] |= changes
    results(*lines)
    (time,) = records(site)
    assert (time["least"], time["restart_s"], time["restart_j"]) == ("time", 1.5, None)
    out = site.out("report", "interval", "--mtbf", "1h", "--format", "markdown")
    assert "a restart's energy is not known, or by another instrument" in out


def test_an_estimate_of_a_restart_is_no_measured_joule(site, results):
    lines = all_of(estimated=True)
    results(lines[0], lines[1] | UNKNOWN, lines[2])
    (time,) = records(site)
    assert time["restart_j"] is None
    out = site.out("report", "interval", "--mtbf", "1h", "--format", "markdown")
    assert "a restart 1.50 s;" in out or "a restart 1.50 s*" in out


def test_a_wrong_result_is_named(site, results):
    lines = all_of()
    shared = of("shared-checkpoint", WRITING) | FAILED
    results(*lines[:2], lines[2] | FAILED, shared)
    out = site.out("report", "interval", "--mtbf", "1h", "--format", "markdown")
    title = "mpi, 2 threads, x86_64, A CPU, size 1000"
    assert f"own-restart, {title}: its result is wrong" in out
    assert f"shared-checkpoint, {title}: its result is wrong" in out
    assert f"own-checkpoint, {title}: no right result of a restart" in out


def test_a_program_of_no_power_has_no_energy(site, results):
    results(*all_of(power_w=0.0))
    assert [one["least"] for one in records(site)] == ["time"]


def test_programs_are_told_whose_interval_it_is(site, results):
    results(*all_of(manifest=manifest()))
    assert {one["compiler"] for one in records(site)} == {"GNU 12.2.0"}


def test_failures_that_come_before_a_checkpoint_ends_leave_no_interval(site, results):
    results(*all_of())
    out = site.out("report", "interval", "--mtbf", "1s", "1h", "--format", "markdown")
    assert [row[0] for row in markdown_rows(out)[2:]] == ["1.00 h", "1.00 h"]
    assert "with one failure in 1.00 s few checkpoints or restarts would end" in out


def test_other_options_are_no_steps_of_it(site, results):
    results(of("steps", STEPS, option_every=5), *all_of()[1:])
    said = site.refuses("report", "interval", "--mtbf", "1h")
    assert "with and without checkpoints" in said and "by the same manifest and options" in said


def test_two_ways_of_asking_are_told_apart(site, results):
    results(*all_of(), *all_of(option_every=20))
    found = records(site)
    assert [(one["options"], one["checkpoint_s"]) for one in found[::2]] == [
        ("every=10 steps=20", 2.0),
        ("every=20 steps=20", 4.0),
    ]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"option_steps": 20},
        *({"option_steps": 20, "option_every": every} for every in (0, 7, -10, 40)),
        {"option_steps": "all", "option_every": 10},
    ],
)
def test_lines_that_do_not_tell_how_many_checkpoints_are_named_and_left_out(
    site, results, options
):
    bare = [{k: v for k, v in one.items() if k not in OPTIONS} | options for one in all_of()]
    results(*bare)
    assert "option_steps" in site.refuses("report", "interval", "--mtbf", "1h")
    results(*bare, *all_of(size=2000))
    out = site.out("report", "interval", "--mtbf", "1h", "--format", "markdown")
    assert "size 1000: its lines have no option_steps that is a multiple" in out
    assert "size 2000: a checkpoint takes" in out


@pytest.mark.parametrize("mtbf", ["0h", "h", "1", "-1h", "1w", "1e3s", "nan", "٣h"])
def test_a_time_that_is_none_is_refused(site, capsys, mtbf):
    with pytest.raises(SystemExit) as ended:
        site.run("report", "interval", f"--mtbf={mtbf}")
    assert ended.value.code == 2
