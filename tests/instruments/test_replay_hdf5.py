"""`replay_hdf5`: a trace that h5py wrote gives what the same trace gives `replay` as text."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import time
from pathlib import Path

import h5py
import pytest


def text_of(kind: str, file: Path, more: str = "", epoch: float = 0) -> str:
    return f"  - {{type: {kind}, file: {file}, period_s: 0.2, epoch: {epoch:.6f}{more}}}\n"


def write(path: Path, group: str = "/", **columns: list) -> Path:
    with h5py.File(path, "w") as file:
        for name, values in columns.items():
            file.require_group(group).create_dataset(name, data=values)
    return path


@pytest.mark.parametrize(
    "column, values",
    [("power_w", [100.0, 250.125, 0.1]), ("energy_uj", [5, 10**9 + 7, 3 * 10**9])],
)
def test_a_trace_of_the_past_ends_as_the_text_does(column, values, tmp_path, probe):
    """Its end has come long ago: both stand at the last row's energy."""
    times = [0.0, 1 / 3, 7.5]
    rows = "".join(f"{t!r},{value!r}\n" for t, value in zip(times, values))
    (tmp_path / "trace.csv").write_text(f"time_s,{column}\n{rows}")
    trace = write(tmp_path / "trace.h5", time_s=times, **{column: values})
    run = probe(text_of("replay_hdf5", trace, epoch=time.time() - 100))
    assert run.status == 0, run.errors + str(run.faults())
    as_text = probe(text_of("replay", tmp_path / "trace.csv", epoch=time.time() - 100))
    assert run.values() == as_text.values()
    assert run.values()[0] > 0


def test_power_of_a_group_is_played(tmp_path, probe):
    """As a profile has it: a group of the node and channel."""
    trace = write(tmp_path / "t.h5", "/n1/cpu", time_s=[0.0, 1000.0], power_w=[40.0, 40.0])
    more = ", group: /n1/cpu, as: power, domain: cpu"
    run = probe(text_of("replay_hdf5", trace, more, time.time() - 10), 2)
    assert run.values("replay") == [40, 40]
    assert {reading["domain"] for reading in run.readings} == {"cpu"}


def test_bad_traces_are_named(tmp_path, probe):
    good = [0.0, 1.0]
    bad = {
        "must have the datasets time_s and power_w": {"time_s": good, "watts": good},
        "must have one dimension": {"time_s": [good, good], "power_w": good},
        "must be as long as the other": {"time_s": good, "power_w": [1.0]},
        "must hold numbers": {"time_s": good, "power_w": ["a", "b"]},
        "must be of a type of whole numbers": {"time_s": good, "energy_uj": good},
        "row 2: time_s must not go back": {"time_s": [1.0, 0.5], "power_w": good},
        "row 2: power_w must be a number from 0 to 1e9": {"time_s": good, "power_w": [1.0, -1.0]},
        "row 1: power_w must be": {"time_s": good, "power_w": [float("nan"), 1.0]},
        "row 1: energy_uj must be a whole number": {"time_s": good, "energy_uj": [-1, 5]},
    }
    for part, columns in bad.items():
        run = probe(text_of("replay_hdf5", write(tmp_path / "bad.h5", **columns)))
        assert run.status == 1
        assert part in run.said and "bad.h5" in run.said
    (tmp_path / "bad.h5").write_text("time_s,power_w\n")
    run = probe(text_of("replay_hdf5", tmp_path / "bad.h5"))
    assert "it is no HDF5 file" in run.said
