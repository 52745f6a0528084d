# The published data set: complete, what its tables repeat agrees, and every exception is listed.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import collections

import pytest
from joulemark.bench import published

# Unprinted digits: what the report computed from before it rounded.
SLACK = 0.005

COUNTS = {
    **dict.fromkeys(range(40, 48), (7, 35)),
    **dict.fromkeys(range(51, 55), (5, 25)),
    **dict.fromkeys(range(60, 64), (15, 75)),
    **dict.fromkeys(range(69, 73), (19, 95)),
    **dict.fromkeys((*range(73, 77), *range(80, 84)), (8, 16)),
    **dict.fromkeys(range(100, 104), (6, 30)),
    **{24: (24, 44), 25: (4, 12), 26: (1, 6), 27: (7, 28), 28: (2, 6)},
    **{29: (6, 6), 30: (4, 4), 31: (2, 2), 32: (4, 4), 33: (15, 15)},
    **{34: (6, 6), 36: (10, 50), 37: (8, 40), 38: (1, 5), 39: (1, 5), 48: (2, 10), 49: (3, 15)},
    **{50: (1, 5), 55: (7, 35), 56: (9, 45), 57: (13, 65), 58: (6, 30), 59: (7, 35)},
    **{64: (17, 46), 65: (18, 51), 66: (12, 60), 67: (13, 65), 68: (10, 50), 77: (4, 8)},
    **{78: (3, 6), 79: (13, 26), 84: (6, 30), 85: (6, 12), 86: (13, 26), 87: (5, 25)},
    **{88: (1, 5), 89: (6, 30), 90: (8, 40), 91: (4, 20), 92: (1, 5), 93: (6, 12), 94: (6, 12)},
    **{95: (6, 12), 96: (13, 26), 97: (6, 30), 98: (8, 40), 99: (1, 5), 104: (3, 15)},
    **{105: (8, 40), 106: (12, 60), 107: (7, 35), 108: (8, 40), 109: (5, 25), 110: (6, 30)},
}


class Span:
    """What a printed number may have been before it was rounded."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def __mul__(self, other):
        return Span(self.low * other.low, self.high * other.high)

    def __truediv__(self, other):
        return Span(self.low / other.high, self.high / other.low)

    def agrees(self, other):
        return self.low <= other.high * (1 + SLACK) and other.low <= self.high * (1 + SLACK)


def span(figure):
    return Span(figure.value - figure.half, figure.value + figure.half)


def problems():
    found = collections.defaultdict(dict)
    for figure in published.figures():
        key = (*figure.problem, figure.fill, figure.variant)
        found[key][figure.quantity] = figure
    return found


def annex():
    tables = {*published.NODE_TABLES, *published.SCALING_TABLES}
    return {key: row for key, row in problems().items() if key[0] in tables}


def checks(row):
    """(note that an exception must have, figure that has it, whether it agrees)."""
    first = next(iter(row.values()))
    count = published.operations(first.benchmark, first.kernel, first.size, first.fill)
    operations = Span(count, count)
    spans = {quantity: span(figure) for quantity, figure in row.items()}
    rate = operations / spans["time"]
    yield "not-operations-per-time", row["performance"], rate.agrees(spans["performance"])
    if "energy" in row:
        energy = spans["power"] * spans["time"]
        yield "not-power-times-time", row["energy"], energy.agrees(spans["energy"])
        one = (operations / spans["energy"]).agrees(spans["efficiency"])
        yield "not-operations-per-energy", row["efficiency"], one
        other = (spans["performance"] / spans["power"]).agrees(spans["efficiency"])
        yield "not-performance-per-power", row["efficiency"], other


def test_every_table_has_its_rows_and_figures():
    rows, figures = collections.Counter(), collections.Counter()
    for key, row in problems().items():
        rows[key[0]] += 1
        figures[key[0]] += len(row)
    figures[26] += 1  # two values of NB
    assert {table: (rows[table], figures[table]) for table in rows} == COUNTS
    assert len(published.figures()) == sum(count for _, count in COUNTS.values())
    asked = {*range(24, 35), *range(36, 111)}
    assert set(COUNTS) == asked


def test_figures_that_the_tables_repeat_agree_but_for_the_listed():
    wrong, listed = set(), set()
    for key, row in annex().items():
        for note, figure, agrees in checks(row):
            wrong |= set() if agrees else {(key, note)}
            listed |= {(key, note)} if note in figure.notes else set()
    assert wrong == listed


def test_most_figures_are_cross_checked():
    judged = [agrees for row in annex().values() for _, _, agrees in checks(row)]
    assert len(judged) > 1800 and sum(judged) / len(judged) > 0.94


def test_every_note_is_explained_and_every_explanation_is_of_tables_that_are_here():
    explained = {note.key: note for note in published.notes()}
    for figure in published.figures():
        for key in figure.notes:
            assert figure.table in explained[key].tables, (figure.table, key)
    assert all(note.tables <= set(COUNTS) for note in explained.values())


def one(table, quantity, **wanted):
    (figure,) = (
        figure
        for figure in published.figures()
        if figure.table == table
        and figure.quantity == quantity
        and all(getattr(figure, key) == value for key, value in wanted.items())
    )
    return figure.value


# The same measurement printed twice: (table, what, table, what).
TWICE = [
    (36, {"size": "1000"}, 104, {"nodes": 1}),
    (38, {}, 105, {"nodes": 1}),
    (39, {}, 106, {"nodes": 1}),
    (49, {"size": "12288x12288"}, 107, {"nodes": 1}),
    (50, {}, 108, {"nodes": 1}),
]


@pytest.mark.parametrize(("table", "row", "again", "other"), TWICE)
@pytest.mark.parametrize("quantity", ["power", "energy", "performance", "efficiency"])
def test_what_two_tables_have_is_the_same(quantity, table, row, again, other):
    assert one(table, quantity, **row) == pytest.approx(one(again, quantity, **other))


@pytest.mark.parametrize("size", ["127", "255", "511", "1023", "2047", "4095", "8063"])
def test_table_27_is_a_part_of_table_59(size):
    assert one(27, "performance", size=size) == one(59, "performance", size=size)
    assert one(27, "efficiency", size=size) == one(59, "efficiency", size=size)
    assert one(27, "power", size=size) == pytest.approx(one(59, "power", size=size), abs=0.06)
    of_peak = one(27, "performance", size=size) / published.prototypes()["SNIC"].peak
    assert one(27, "peak_fraction", size=size) == pytest.approx(of_peak, abs=0.002)


SUMMARY = {
    "BSC-1": (40, "33554432"),
    "CaSToRC": (51, "134217728"),
    "LRZ": (69, "357913941"),
    "PSNC-BR": (80, "10000000"),
    "SNIC": (60, "16777216"),
    "UiO": (100, "60000000000"),
}


@pytest.mark.parametrize("name", SUMMARY)
@pytest.mark.parametrize("kernel", ["copy", "scale", "sum", "triad"])
def test_table_24_summarises_the_largest_vectors(name, kernel):
    first, size = SUMMARY[name]
    table = first + ["copy", "scale", "sum", "triad"].index(kernel)
    where = {"size": size, **({"threads": 276} if name == "UiO" else {})}
    summary = {"prototype": name, "kernel": kernel}
    assert one(24, "performance", **summary) == one(table, "performance", **where)
    if name != "PSNC-BR":
        printed = one(24, "efficiency", **summary)
        assert printed == pytest.approx(one(table, "efficiency", **where), rel=0.006)


def test_the_eleven_computers_and_their_companions():
    known = published.prototypes()
    computers = [one for one in known.values() if one.kind == "compute"]
    chips = {one.device.removesuffix(", GPU") for one in computers}
    assert len(known) == 14 and len(chips) == 11
    used = {figure.prototype for figure in published.figures()}
    assert used - set(known) == {"Core i7 laptop"} and set(known) <= used
    assert known["LRZ"].peak == 128e9 and known["LRZ"].bandwidth == pytest.approx(85.313e9)


def test_no_published_figure_is_above_its_peak():
    for figure in published.figures():
        peak = published.prototypes().get(figure.prototype)
        if figure.quantity == "performance" and figure.unit == "F/s" and peak.peak:
            assert figure.value <= peak.peak * figure.nodes, figure
