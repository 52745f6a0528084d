# Tests of joulemark.accounting.storagemodel: a server's idle power and costs by its history.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import random

import pytest
from joulemark.accounting import storagemodel
from joulemark.accounting.storagemodel import Moment

IDLE_W, COSTS = 900.0, (5e-8, 7e-8, 0.02)  # as PRACE's SSUs: 50 and 66 J/GB; J an operation


def history(seed=1, noise_w=5.0, moments=300, costs=COSTS, kinds=(True, True, True)):
    """Moments of a minute, each kind of work there in half of them."""
    dice = random.Random(seed)
    found = []
    for _ in range(moments):
        rates = [
            dice.choice((0, 1)) * dice.uniform(0, most) * used
            for most, used in zip((2e9, 3e9, 5e3), kinds)
        ]
        power_w = IDLE_W + sum(c * r for c, r in zip(costs, rates)) + dice.gauss(0, noise_w)
        found.append(Moment(60.0, power_w, tuple(rates)))
    return found


def test_without_noise_it_is_exact():
    model = storagemodel.fit(lambda late_s: history(noise_w=0.0))
    assert model.idle_w == pytest.approx(IDLE_W)
    assert model.costs == pytest.approx(COSTS)
    assert model.noise_w == pytest.approx(0, abs=1e-6)


def test_the_errors_are_those_that_it_states():
    """Of a hundred histories: 2 SD hold in 95 of 100, and are no wider than they must be."""
    kept, ratios = 0, []
    for seed in range(100):
        model = storagemodel.fit(lambda late_s, seed=seed: history(seed) if late_s == 0 else [])
        for at, truth in enumerate((IDLE_W, *COSTS)):
            weights = [float(at == other) for other in range(4)]
            sd = model.variance(weights) ** 0.5
            ratios.append(((model.idle_w, *model.costs)[at] - truth) / sd)
            kept += abs(ratios[-1]) <= 2
        assert 3 < model.noise_w < 7
    assert 370 <= kept <= 395
    assert 0.8 < (sum(one * one for one in ratios) / len(ratios)) ** 0.5 < 1.2


def test_no_cost_is_negative():
    """Where the power falls with the reads, what they cost is 0, and the others' are whole."""
    model = storagemodel.fit(lambda late_s: history(costs=(-2e-9, 7e-8, 0.02)))
    assert model.costs[0] == 0
    assert model.costs[1:] == pytest.approx((7e-8, 0.02), rel=0.05)


def test_work_that_was_never_done_costs_nothing():
    model = storagemodel.fit(lambda late_s: history(kinds=(False, True, False)))
    assert model.costs == pytest.approx((0, 7e-8, 0), rel=0.02)


def test_a_short_history_tells_nothing():
    assert storagemodel.fit(lambda late_s: history(moments=99)) is None


@pytest.mark.parametrize("times", [1.2, 10])
@pytest.mark.parametrize("each", [20, 12])
def test_moments_that_are_far_off_tell_no_costs(each, times):
    """A server that is away, whose clients ask in vain; one that checks its disks."""

    def of_late(late_s):
        found = history(noise_w=3.0)
        for at, one in enumerate(found):
            if at % each == 0:
                found[at] = Moment(one.seconds, IDLE_W + 10, (*one.rates[:2], times * 5e3))
            elif at % 30 == 29:
                found[at] = Moment(one.seconds, one.mean_w + 80, one.rates)
        return found

    model = storagemodel.fit(of_late)
    assert model.idle_w == pytest.approx(IDLE_W, abs=2)
    assert model.costs == pytest.approx(COSTS, rel=0.02)
    assert model.misfit > 0.01 or model.noise_w > 6  # but in the errors they are


def test_of_a_server_that_mostly_rests_no_work_is_far_off():
    """What is left of idle moments is no measure of the others'."""
    dice, found = random.Random(4), []
    for one in history(noise_w=0.0, moments=1000):
        works = dice.random() < 0.2
        noise_w = dice.gauss(0, 8.0 if works else 0.3)
        rates = one.rates if works else (0.0,) * 3
        power_w = one.mean_w if works else IDLE_W
        found.append(Moment(60.0, power_w + noise_w, rates))
    model = storagemodel.fit(lambda late_s: found if late_s == 0 else [])
    assert sum(model.busy) >= 0.95 * sum(rate > 0 for one in found for rate in one.rates)
    assert model.costs == pytest.approx(COSTS, rel=0.05)


def test_where_much_is_far_off_all_of_it_counts():
    found = [
        Moment(60.0, one.mean_w + 300 * (at % 3 == 0), one.rates)
        for at, one in enumerate(history(noise_w=3.0))
    ]
    model = storagemodel.fit(lambda late_s: found if late_s == 0 else [])
    assert model.idle_w == pytest.approx(IDLE_W + 100, abs=30)


def test_noise_that_lasts_widens_the_errors():
    def of_late(late_s):
        dice, noise_w, found = random.Random(3), 0.0, []
        for one in history(noise_w=0.0):
            noise_w = 0.8 * noise_w + dice.gauss(0, 3.0)
            found.append(Moment(one.seconds, one.mean_w + noise_w, one.rates))
        return found

    model = storagemodel.fit(of_late)
    independent = storagemodel.fit(lambda late_s: history(noise_w=5.0))
    assert model.variance((1, 0, 0, 0)) > 4 * independent.variance((1, 0, 0, 0))
