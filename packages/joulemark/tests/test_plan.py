# `joulemark plan`: the lengths of runs, what limits them, and what cannot be reached.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import csv
import io
import json
import math

import pytest
from joulemark.accounting import plan
from joulemark.accounting.plan import Channel, Load
from joulemark.errors import UserError


def meter(**changes) -> Channel:
    """A power meter without errors of its own, polled once a minute."""
    fields = dict.fromkeys(
        ("relative", "offset_w", "resolution_w", "resolution_uj", "jitter_s"), 0.0
    )
    return Channel(
        **{"name": "m/c", "counts": False, "prompt": False, "period_s": 60, **fields, **changes}
    )


def test_coolmuc_needs_2400_s_for_5_percent_at_a_sample_a_minute():
    for watts in (10, 240):
        made = plan.plan([meter()], Load(watts, 0, 0), 0.05)
        assert made.run_s == pytest.approx(2400)
        assert made.parts.limit() == "ends"
    assert "2400 s (40:00 min): its ends" in plan.answer(made)


def test_a_planned_run_is_just_as_accurate_as_asked():
    channels = [
        meter(relative=0.005, offset_w=0.5, resolution_w=1, jitter_s=0.2, period_s=1),
        meter(counts=True, prompt=True, resolution_uj=1e6, jitter_s=0.1, period_s=0.5),
    ]
    for accuracy in (0.01, 0.02, 0.1):
        made = plan.plan(channels, Load(300, 120, 80), accuracy)
        assert made.parts.total() == pytest.approx(accuracy)
        twice = plan.parts_of(channels, made.load, 2 * made.run_s)
        assert twice.ends == pytest.approx(made.parts.ends / 2)
        assert twice.readings == pytest.approx(made.parts.readings / math.sqrt(2))
        assert twice.instrument == made.parts.instrument


def test_what_no_length_cures_is_said():
    rapl = meter(
        name="rapl/package-0", relative=0.05, counts=True, prompt=True, jitter_s=0.001, period_s=1
    )
    made = plan.plan([rapl], Load(200, 40, 0), 0.02)
    assert made.run_s is None
    assert made.parts.total() == pytest.approx(0.1 / math.sqrt(3))
    assert "cannot be reached: rapl/package-0's own error, 5% of the reading" in plan.answer(made)
    assert plan.plan([rapl], Load(200, 40, 0), 0.06).run_s is not None


def test_a_counter_read_at_the_ends_needs_two_readings_and_sees_every_swing():
    counter = meter(counts=True, prompt=True, relative=0.001, period_s=1)
    assert plan.plan([counter], Load(100, 0, 90), 0.01).run_s == 2


def test_a_rack_meter_of_100_w_is_no_good_for_a_tegra_node():
    rack = meter(offset_w=12.5, period_s=1)  # an eighth of it
    made = plan.plan([rack], Load(8, 0, 0), 0.5)
    assert made.run_s is None and made.parts.instrument > 1
    assert "12.5 W" in plan.answer(made)
    assert plan.plan([meter(relative=0.002, period_s=0.25)], Load(8, 2, 0), 0.01).run_s < 60


def test_parts_of_several_channels_add_up_where_they_are_systematic():
    one = meter(relative=0.01, offset_w=1, period_s=1)
    alone = plan.parts_of([one], Load(100, 0, 0), 60)
    both = plan.parts_of([one, one], Load(100, 0, 0), 60)
    assert both.ends == pytest.approx(alone.ends)
    assert both.instrument == pytest.approx(2 / math.sqrt(3) * (0.01 + 2 / 100))


@pytest.mark.parametrize(("text", "value"), [("2%", 0.02), ("2 %", 0.02), ("0.02", 0.02)])
def test_accuracies(text, value):
    assert plan.accuracy_of(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["2", "0", "-1%", "100%", "good", "nan%"])
def test_what_is_no_accuracy(text):
    with pytest.raises(UserError, match=r"2% or 0\.02"):
        plan.accuracy_of(text)


def test_watts_come_from_the_configuration_or_are_asked_for():
    model = {"full_w": 120.0, "idle_w": 40.0}
    assert plan.load_of([model, model], None, None, 0) == Load(240, 80, 0)
    assert plan.load_of([model], 90, 10, 5) == Load(90, 10, 5)
    with pytest.raises(UserError, match="--power: how many watts"):
        plan.load_of([{"full_w": None, "idle_w": None}], None, None, 0)
    with pytest.raises(UserError, match="--power: '0' is not"):
        plan.load_of([model], 0, None, 0)
    with pytest.raises(UserError, match="--swing: '-1' is not"):
        plan.load_of([model], 90, None, -1)


DESCRIBED = {
    **{"instrument": "rapl", "method": "counter", "prompt": True, "period_s": 1.0},
    **{"outermost": True, "full_w": 120.0, "idle_w": 40.0},
    "error": {
        **{"relative": 0.05, "offset_w": 0.0, "resolution_w": 0.0},
        **{"resolution_uj": 61.0, "jitter_s": 0.001},
    },
}


@pytest.fixture
def daemon(tmp_path):
    """Words for a joulemarkd that has two sockets."""
    lines = [json.dumps({**DESCRIBED, "channel": f"package-{number}"}) for number in (0, 1)]
    program = tmp_path / "joulemarkd"
    program.write_text("#!/bin/sh\ncat <<END\n" + "\n".join(lines) + "\nEND\n")
    program.chmod(0o755)
    return ("--daemon", str(program))


@pytest.mark.parametrize(("accuracy", "code"), [("10%", 0), ("1%", 1)])
def test_rows_are_the_channels_and_all_of_them(site, daemon, accuracy, code):
    words = ("plan", "--accuracy", accuracy, *daemon)
    done, out, _ = site.run(*words, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    _, out, _ = site.run(*words, "--json")
    whole = json.loads(out)
    assert done == code
    names = [row["channel"] for row in rows]
    assert names == ["rapl/package-0", "rapl/package-1", "all together"]
    assert [row["reads"] for row in rows] == ["energy", "energy", ""]
    for row in rows:
        for name in ("accuracy", "power_w", "idle_w", "swing_w", "run_s"):
            assert row[name] == ("" if whole[name] is None else str(whole[name]))
    parts = {name: float(rows[-1][name]) for name in whole["parts"]}
    assert parts == whole["parts"] and float(rows[-1]["half_width"]) == whole["half_width"]
    assert "| all together |" in site.run(*words, "--format", "markdown")[1]


def test_a_daemon_that_finds_the_configuration_wrong(site, tmp_path):
    program = tmp_path / "joulemarkd"
    program.write_text("#!/bin/sh\necho 'joulemark.yaml:1: wrong' >&2\nexit 78\n")
    program.chmod(0o755)
    said = site.refuses("plan", "--accuracy", "2%", "--daemon", str(program))
    assert "it failed (exit 78); see above" in said


def test_the_daemon_is_found_in_the_prefix_of_its_client(tmp_path, monkeypatch):
    """Spack gives each package a prefix; a module puts bin alone into the PATH."""
    for name in ("bin/joulemarkctl", "sbin/joulemarkd"):
        program = tmp_path / name
        program.parent.mkdir()
        program.write_text("#!/bin/sh\nexit 3\n")
        program.chmod(0o755)
    monkeypatch.delenv("JOULEMARKD", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    monkeypatch.setattr(plan.config, "find", lambda: tmp_path / "joulemark.yaml")
    with pytest.raises(
        UserError, match=f"{tmp_path}/sbin/joulemarkd --describe: it failed .exit 3"
    ):
        plan.describe(None, None)
