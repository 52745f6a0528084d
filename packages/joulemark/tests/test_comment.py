# The line for AdminComment: what is written can be read back, whoever wrote around it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joulemark.accounting import comment
from joulemark.accounting.jobrecord import interval_j
from joulemark.store import jobs

REAL = st.floats(0, 1e12)
WHOLE_UJ = st.integers(0, 10**18)


@st.composite
def rows(draw):
    """A job's row as a merge makes it, as far as the line goes."""
    row = dict.fromkeys(jobs.NAMES)
    for _, key, _ in comment.FIGURES:
        values = WHOLE_UJ if key.startswith("Energy") else REAL
        row[key] = draw(st.none() | values)
    parts = row["UncertaintySystematic_uj"], row["UncertaintyRandom_uj"]
    error_j = draw(REAL) if None in parts else interval_j(*parts)
    faults = draw(st.lists(st.sampled_from(["stuck", "out of range"]), max_size=2))
    return {
        **row,
        "ConsumedEnergy_uj": draw(WHOLE_UJ),
        "UncertaintyJoules": error_j,
        "AveWatts": draw(st.none() | REAL),
        "NNodes": draw(st.integers(1, 9)),
        "Method": draw(st.sampled_from(["counter", "integrated", "model", "mixed"])),
        "Estimated": draw(st.integers(0, 1)),
        "GapSeconds": draw(st.sampled_from([0.0, 0.5, 1234.5])),
        "Currency": draw(st.sampled_from(["EUR", "US $"])) if row["Cost"] is not None else None,
        "CostError": row["CostError"] if row["Cost"] is not None else None,
        "CostOverhead": row["CostOverhead"] if row["Cost"] is not None else None,
        "Faults": json.dumps([{"instrument": "pdu", "what": what} for what in faults]),
    }


def is_near(read, written, **within):
    """Not known stays not known."""
    if written is None:
        assert read is None
    else:
        assert read == pytest.approx(written, **within)


OTHERS = st.sampled_from(["", "Paid by A ", "a < b > c\n", "<joulemark x: 1> "])


@given(row=rows(), missing=st.lists(st.sampled_from("abcdefghijkl"), unique=True), other=OTHERS)
def test_what_is_written_is_read(row, missing, other):
    text = comment.write(row, missing)
    assert not set(text) & set("<>")
    read = comment.read(f"{other}<joulemark 1: {text}>{other}", 12)
    for key in ("Method", "Estimated", "GapSeconds", "Currency", "Faults"):
        assert read[key] == row[key]
    for key in ("ConsumedEnergy_uj", "AveWatts"):
        is_near(read[key], row[key], rel=1e-9, abs=51_000 if key.endswith("_uj") else 0.051)
    is_told_apart = row["UncertaintySystematic_uj"] and row["UncertaintyRandom_uj"]
    within = {"rel": 1e-3, "abs": 0 if is_told_apart else 0.051}
    is_near(read["UncertaintyJoules"], row["UncertaintyJoules"], **within)
    for _, key, _ in comment.FIGURES:
        is_near(read[key], row[key], rel=1e-3, abs=0.6 if key.endswith("_uj") else 0)
    assert (read["Missing"] is None) == (not missing)
    assert (read["Missing"] or "").startswith(", ".join(missing[:8]))


OLD = "Energy: 5210.4 J +- 61.2 J (k=2), 120.3 W mean, 2 nodes, mixed"


def test_older_lines_are_read():
    """Without figures behind the method, and, before there were segments, bare."""
    for text in (f"<joulemark 1: {OLD}>", OLD):
        read = comment.read(text, 12)
        assert (read["ConsumedEnergy_uj"], read["UncertaintyJoules"]) == (5_210_400_000, 61.2)
        assert (read["AveWatts"], read["Method"], read["EnergyCPU_uj"]) == (120.3, "mixed", None)
    read = comment.read("Energy (estimated by model): 1.0 J +- 0.4 J (k=2), 1 node, model", 12)
    assert (read["Estimated"], read["AveWatts"]) == (1, None)


def test_figures_of_a_newer_release_are_passed_over():
    read = comment.read(f"<joulemark 1: {OLD}, steam 12 kg/h, CPU 3 J, colour red>", 12)
    assert read["EnergyCPU_uj"] == 3_000_000


def test_what_is_not_ours_is_not_read():
    newer, others = f"<joulemark 2: {OLD}>", "paid by A <them: 5>"
    assert [comment.read(text, 12) for text in (newer, others, "")] == [None] * 3


def test_a_job_that_was_not_measured_has_no_energy():
    read = comment.read("<joulemark 1: Energy: not measured; missing: n1>", 12)
    assert (read["ConsumedEnergy_uj"], read["Missing"]) == (None, "n1")


@pytest.mark.parametrize("number", ["1.2.3", "1e999", "9" * 400, "1.", "e5", "-", "nan"])
def test_a_number_that_is_none_is_passed_over(number):
    """Who may write a job's AdminComment may write anything."""
    for text in (
        OLD.replace("5210.4", number),
        f"{OLD}, CPU {number} J",
        f"{OLD}, peak {number} W",
    ):
        read = comment.read(f"<joulemark 1: {text}>", 12)
        assert read["EnergyCPU_uj"] is None and read["PeakWatts"] is None
