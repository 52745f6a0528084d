# Numbers printed as PRACE's own tables print them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joulemark import layout, units

# Cells of PRACE-1IP D9.3.3: the exponent of a column's prefix, and values that it has.
SEED_COLUMNS = [
    # table 36: Time [ms], Power [W] and Energy [J], Perf. and Eff. [MF]
    (-3, {4.67e-3: "4.67", 36.3e-3: "36.3", 137e-3: "137", 9.447: "9447"}),
    (0, {7.93: "7.93", 37e-3: "37 m", 0.30: "0.30", 86.5: "86.5"}),
    (6, {428e6: "428", 54.0e6: "54.0"}),
    # table 48: Time [μs], Perf. [MF/s]
    (-6, {1999e-6: "1999"}),
    (6, {142677e6: "142677"}),
    # table 55: Time [ms], Energy [J]
    (-3, {8.31e-6: "8.31 μ", 48.1e-6: "48.1 μ", 0.78e-3: "0.78"}),
    (0, {51e-6: "51 μ", 5e-3: "5 m", 43e-3: "43 m", 47.1: "47.1"}),
    # table 59: Time [s] and Energy [J], Perf. [GF/s]
    (0, {2e-3: "2 m", 55e-3: "55 m", 10.7: "10.7"}),
    (9, {30.9e9: "30.9"}),
    # table 60: Time [μs], Energy [mJ], Perf. [MB/s]
    (-6, {0.16e-6: "0.16", 88660e-6: "88660"}),
    (-3, {0.16e-3: "0.16"}),
    (6, {103052e6: "103052"}),
    # table 64: Time [ms], without power
    (-3, {50.6e-6: "50.6 μ", 99.3e-6: "99.3 μ", 7696: "7696000"}),
    (0, {None: "-"}),
]
PRACE_CELLS = [
    (value, exponent, text) for exponent, cells in SEED_COLUMNS for value, text in cells.items()
]


@pytest.mark.parametrize(
    ("energy_j", "error_j", "estimated", "text"),
    [
        (773.24, 267.8, True, "~770 J +- 270 J"),
        (380.3, 131.7, False, "380.3 J +- 131.7 J"),
        (145.2, 50.4, True, "~145 J +- 50 J"),
        (100, 2, True, "~100.0 J +- 2.0 J"),
        (0, 0, True, "~0.0 J +- 0.0 J"),
    ],
)
def test_joules_of_an_estimate_have_no_digit_that_the_error_leaves_unknown(
    energy_j, error_j, estimated, text
):
    assert layout.joules(energy_j, error_j, estimated) == text


@pytest.mark.parametrize(("value", "exponent", "text"), PRACE_CELLS)
def test_prace_s_cells(value, exponent, text):
    """They leave the unit out where they write a prefix; of a letter alone nobody is sure."""
    has_own_prefix = " " in text
    assert units.cell(value, exponent, "J") == text + ("J" if has_own_prefix else "")


@pytest.mark.parametrize(
    ("value", "text"),
    [(9.994, "9.99"), (9.996, "10.0"), (99.94, "99.9"), (99.96, "100"), (0.0999, "99.9 mJ")],
)
def test_rounding_never_gains_a_digit(value, text):
    assert units.cell(value, 0, "J") == text


@pytest.mark.parametrize(
    ("value", "error", "texts"),
    [
        (442, 153, ("440", "150")),
        (98.7, 34.05, ("99", "34")),
        (4.67, 1.96, ("4.7", "2.0")),
        (9.96, 3, ("10.0", "3.0")),
        (99.6, 0.997, ("99.6", "1.0")),
        (0.0674, 0.0233, ("67 mJ", "23 mJ")),
        (53_240_000, 18_300_000, ("53 MJ", "18 MJ")),
        (40, 1000, ("40", "1000")),
        (4.67, 0, ("4.67", "0.00")),
    ],
)
def test_an_estimate_has_no_digit_that_its_error_leaves_unknown(value, error, texts):
    assert tuple(units.cell(number, 0, "J", error) for number in (value, error)) == texts


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.0011, "0.0011"), (0.0203, "0.020"), (-0.0203, "-0.020"), (0.0999, "0.10")),
        *((0.1, "0.10"), (5e-5, "0.000050")),
    ],
)
def test_a_small_number_is_not_nothing(value, text):
    assert units.digits(value) == text


def test_far_above_the_prefix_is_overridden_too():
    assert units.cell(5e9, 0, "F/s") == "5 GF/s"


def test_overriding_prefix_replaces_the_column_s():
    assert units.cell(53e-6, -3, "J") == "53 μJ"  # in a column [mJ]


def test_a_cell_without_a_prefix_in_a_column_that_has_one_says_its_unit():
    assert units.cell(84.1, 3, "g") == "84.1 g"  # in a column [kg]


def test_nothing_is_zero():
    assert units.cell(0.0, -3, "J") == "0.00"


@given(st.floats(1e-14, 1e14), st.sampled_from([-6, -3, 0, 3, 6, 9]))
def test_a_cell_reads_back_as_its_value(value, exponent):
    number, _, own_unit = units.cell(value, exponent, "J").partition(" ")
    own = exponent
    if own_unit:
        own = next(power for power, name in units.PREFIXES.items() if f"{name}J" == own_unit)
    assert float(number) * 10.0**own == pytest.approx(value, rel=0.06)


def test_percent_as_in_table_59():
    assert units.percent(0.0106) == "± 1.06%"
    assert units.percent(0.0) == "± 0.00%"
    assert units.percent(None) == ""


@pytest.mark.parametrize(
    ("values", "exponent"),
    [
        ([4.67e-3, 36.3e-3, 0.137, 0.468, 1.3, 1.9, 3.6, 4.3, 7.7, 9.4], -3),  # table 36, time
        ([1.94e-3, 20.5e-3, 75.3e-3, 0.319, 0.65, 1.172, 3.453], -3),  # table 40, energy
        ([575.0], 0),  # table 39, time
        ([], 0),
    ],
)
def test_prefix_that_fits_most_cells(values, exponent):
    assert units.best_exponent(values) == exponent
