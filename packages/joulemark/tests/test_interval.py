# `joulemark report interval`: how often to write a checkpoint, for time and for energy.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import math
import random
import statistics

import pytest
from cooked_lines import UNKNOWN, line, manifest, markdown_rows
from hypothesis import given
from hypothesis import strategies as some
from joulemark.bench import interval
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
    assert "size 2000: no restart was measured" in out
    assert rows[0][2:] == ["146", "147", "+2.80 %", "+1.75 %"]


def test_errors_are_those_of_the_difference(site, results):
    times = (0.96, 1.0, 1.04)
    lines = [of("steps", {**STEPS, "time_s": one}, job=str(one)) for one in times]
    lines += [of("own-checkpoint", WRITING, job=str(one)) for one in times]
    results(*lines)
    (time, energy) = records(site)
    # half of the mean's 95 % interval of three, by two checkpoints
    assert time["checkpoint_s_error"] == pytest.approx(4.303 * 0.04 / math.sqrt(3) / 2, rel=1e-3)
    part = time["checkpoint_s_error"] / 2.0
    assert time["interval_s_error"] / time["interval_s"] == pytest.approx(part / 2)
    assert energy["checkpoint_j_error"] == pytest.approx(math.hypot(8.0, 8.0) / 2)


def test_of_one_node_s_channels_a_gain_or_an_offset_errs_by_the_difference(site, results):
    told = {"node": "n1", "manifest": manifest(), "energy_uncertainty_j": None}
    lines = all_of(**told)
    for one in lines:
        one["energy_uncertainty_j"] = one["energy_j"] * 0.04
    results(*lines)
    # 4 % of 4 s at the program's 200 W is more than of 200 J
    assert records(site)[0]["checkpoint_j_error"] == pytest.approx(0.04 * 800 / 2)


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


def test_an_estimate_is_marked(site, results):
    results(*all_of(estimated=True))
    out = site.out("report", "interval", "--mtbf", "1h", "--format", "markdown")
    assert "~100" in out and "~: energy ESTIMATED" in out


def test_a_checkpoint_that_costs_nothing_has_no_interval(site, results):
    results(of("steps", STEPS), of("own-checkpoint", {**STEPS, "time_s": 0.99}))
    assert records(site) == []
    out = site.out("report", "interval", "--mtbf", "1h", "--format", "markdown")
    assert "within the scatter, or below none" in out


def test_failures_that_come_before_a_checkpoint_ends_leave_no_interval(site, results):
    results(*all_of())
    out = site.out("report", "interval", "--mtbf", "1s", "1h", "--format", "markdown")
    assert [row[0] for row in markdown_rows(out)[2:]] == ["1.00 h", "1.00 h"]
    assert "with one failure in 1.00 s few checkpoints or restarts would end" in out


def test_other_options_are_no_steps_of_it(site, results):
    results(of("steps", STEPS, option_every=5), *all_of()[1:])
    assert "with and without checkpoints" in site.refuses("report", "interval", "--mtbf", "1h")


def test_lines_without_options_are_refused(site, results):
    bare = [{k: v for k, v in one.items() if k not in OPTIONS} for one in all_of()]
    results(*bare)
    assert "option_steps" in site.refuses("report", "interval", "--mtbf", "1h")


@pytest.mark.parametrize("mtbf", ["0h", "h", "1", "-1h", "1w", "1e3s", "nan", "٣h"])
def test_a_time_that_is_none_is_refused(site, capsys, mtbf):
    with pytest.raises(SystemExit) as ended:
        site.run("report", "interval", f"--mtbf={mtbf}")
    assert ended.value.code == 2
