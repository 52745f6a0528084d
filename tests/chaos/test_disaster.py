"""guides/disaster.md: each death has a test that is there, or says that it has none."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import re

import pytest

from tests.chaos import events
from tests.chaos.kills import WEIGHTS
from tests.cluster import CHECKOUT

GUIDE = CHECKOUT / "packages" / "joulemark" / "guides" / "disaster.md"
ROWS = [line.split(" | ") for line in GUIDE.read_text().splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("row", ROWS, ids=[row[0].strip("| ") for row in ROWS])
def test_it_is_seen_in_a_test_that_is_there(row: list[str]) -> None:
    named = re.findall(r"`(tests/\S+|packages/\S+)`(?: \((?:kills of )?`(\w+)`\))?", row[-1])
    assert named or "*by reading*" in row[-1]
    for place, what in named:
        file, _, test = place.partition("::")
        text = (CHECKOUT / file).read_text()
        assert not test or f"def {test}(" in text, place
        assert not what or what in WEIGHTS or hasattr(events, what), what
