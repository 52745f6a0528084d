# `joulemark plan --site`, and the figures of guides/capacity.md by the real command.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import re
from pathlib import Path

import pytest
from joulemark.accounting.capacity import Site as Planned

GUIDE = Path(__file__).parents[1] / "guides" / "capacity.md"
MEASURED_BYTES, MEASURED_STORED_BYTES = 4365, 2548  # of tests/bench/site: 4 channels, 3 steps


def test_the_guides_figures_are_the_commands(site):
    ((line, shown),) = re.findall(
        r"(?m)^    \$ joulemark (.*)\n((?:(?:    .*)?\n)*)", GUIDE.read_text()
    )
    assert site.out(*line.split()).split() == shown.split()


def test_a_plan_is_what_a_real_joulemarkd_and_a_merge_took():
    planned = Planned(jobs=1, wide=1, steps=3, channels=4, nodes=1, days=1)
    assert planned.record_bytes == pytest.approx(MEASURED_BYTES, rel=0.05)
    assert planned.stored_bytes == pytest.approx(MEASURED_STORED_BYTES, rel=0.05)


def test_a_job_of_more_nodes_has_more_records(site):
    words = ("plan", "--site", "1000", "--nodes", "50", "--keep-days", "10", "--json")
    one, wide = (json.loads(site.out(*words, "--wide", n)) for n in ("1", "2.5"))
    for few, many in zip(one, wide):
        assert many["records_a_day"] == 2.5 * few["records_a_day"]
        assert many["bytes_a_day"] == pytest.approx(2.5 * few["bytes_a_day"])
    assert [row["bytes_kept"] is None for row in one] == [True, False, False, True]
    assert one[1]["bytes_kept"] == 10 * one[1]["bytes_a_day"]


@pytest.mark.parametrize("words", [("--site", "0"), ("--site", "9", "--accuracy", "2%"), ()])
def test_what_is_no_question_is_refused(site, words):
    with pytest.raises(SystemExit) as refused:
        site.run("plan", *words)
    assert refused.value.code == 2


@pytest.mark.parametrize(
    "words, named",
    [
        (
            ("--site", "9", "--power", "350", "--swing", "0"),
            "--power --swing: goes with --accuracy",
        ),
        (("--accuracy", "2%", "--nodes", "10"), "--nodes: goes with --site"),
    ],
)
def test_what_belongs_to_the_other_question_is_refused(site, words, named):
    assert named in site.refuses("plan", *words)
