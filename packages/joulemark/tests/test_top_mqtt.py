# Tests of what is believed of a node that is heard over MQTT.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joulemark.top import mqtt

HEAD = "joulemark/c1/live/"
LINE = "node=n1 time_ns=9 energy_uj=3 charged_uj=1 unallocated_uj=2 jobs=1 estimated=0 mean_w=1.5"


def test_a_node_tells_of_itself():
    assert mqtt.understand(HEAD + "n1", LINE.encode(), HEAD) == ("n1", LINE)


@pytest.mark.parametrize(
    ("topic", "line"),
    [
        (HEAD + "n2", LINE),
        (HEAD + "n1/x", LINE),
        (HEAD + "", LINE),
        ("joulemark/c2/live/n1", LINE),
        (HEAD + "n1", LINE + " node=n2"),
        (HEAD + "n1", LINE + " node=2"),
        (HEAD + "n1", LINE.replace("n1", "n1 node=n2")),
        (HEAD + "n1", LINE.replace("=3", "=-3")),
        (HEAD + "n1", LINE.replace("=3", "=1e9")),
        (HEAD + "n1", LINE.replace("=3", "=nan")),
        (HEAD + "n1", LINE.replace("=3", "=" + "9" * 21)),
        (HEAD + "n1", LINE + "\n"),
        (HEAD + "n1", LINE + "\x1b[2J"),
        (HEAD + "n1", LINE + " more"),
        (HEAD + "n1", LINE + " a=1" * 2000),
        (HEAD + "n1", ""),
        (HEAD + "n\x1b", LINE.replace("n1", "n\x1b")),
    ],
)
def test_what_no_node_tells_of_itself_is_nothing(topic, line):
    assert mqtt.understand(topic, line.encode(), HEAD) is None


def test_as_many_are_named_at_once_as_a_daemon_reads():
    names = [f"{number:063}" for number in range(100)]
    lists = [one.rpartition(" nodes=")[2] for one in mqtt.requests(1.0, names)]
    assert ",".join(lists).split(",") == names
    assert len(lists) == 13 and all(len(one) <= 511 for one in lists)
    assert mqtt.requests(1.0, None) == ["watch interval_ms=1000 lasts_ms=15000"]


@given(node=st.text(max_size=9), payload=st.binary(max_size=60))
def test_whatever_comes_is_nothing_or_a_line_of_its_node(node, payload):
    for rest in (payload, f"node={node} ".encode() + payload):
        found = mqtt.understand(HEAD + node, rest, HEAD)
        assert found is None or (found[0] == node and found[1].split()[0] == f"node={node}")
        assert found is None or (found[1].isascii() and found[1].isprintable())
