# Tests of `joulemark receive` without a broker: what is taken, what lands on disk.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import builders
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joulemark import config, receive, records
from joulemark.receive import Arrived, Refused

CLUSTER = "c1"


def record(job: int = 12, node: str = "n1", **more: object) -> bytes:
    made = {
        "schema": records.SCHEMA,
        "cluster": CLUSTER,
        "JobIDRaw": job,
        "node": node,
        "uid": 0,
        "split_policy": "p",
        "missing": "joulemarkd does not answer",
        "accounts": [],
    }
    return json.dumps({**made, **more}).encode()


def understand(topic: str, payload: bytes) -> Arrived:
    return receive.understand(topic, payload, "joulemark", CLUSTER)


def test_a_record_gets_the_name_that_joulemarkd_gives_it() -> None:
    arrived = understand("joulemark/c1/record/n1/12", record())
    assert arrived.name == "c1.12.n1.json" and arrived.node == "n1"
    assert not arrived.replaces  # it only says that there is none


def test_a_profile_goes_beside_its_record() -> None:
    for name in ("profiles/c1.12.n1.csv", "c1.12.n1.profile.jsonl"):
        assert understand(f"joulemark/c1/profile/n1/{name}", b"x").name == name


@pytest.mark.parametrize(
    "topic",
    [
        "joulemark/c2/record/n1/12",
        "joulemark/c1/record/n2/12",
        "joulemark/c1/record/n1/13",
        "joulemark/c1/record/n1/012",
        "joulemark/c1/record/../12",
        "joulemark/c1/record/n1/../../etc/passwd",
        "joulemark/c1/receipt/n1",
        "other",
    ],
)
def test_a_record_under_another_topic_is_refused(topic: str) -> None:
    with pytest.raises(Refused):
        understand(topic, record())


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 100000])
def test_what_is_no_record_is_refused(payload: bytes) -> None:
    with pytest.raises(Refused):
        understand("joulemark/c1/record/n1/12", payload)


@pytest.mark.parametrize(
    "name",
    [
        "c1.12.n1.json",
        "c1.12.n2.csv",
        "c2.12.n1.csv",
        "../c1.12.n1.csv",
        "profiles/../c1.12.n1.csv",
        "/etc/c1.12.n1.csv",
        "c1.12.n1.csv/x",
        "c1.12.n1.",
        "c1.12.n1.a..b",
        "profiles/profiles/c1.12.n1.csv",
        "",
    ],
)
def test_a_profile_of_another_name_is_refused(name: str) -> None:
    with pytest.raises(Refused):
        understand(f"joulemark/c1/profile/n1/{name}", b"x")


@given(topic=st.text(max_size=60), payload=st.binary(max_size=60))
def test_no_message_leaves_the_folder(topic: str, payload: bytes) -> None:
    for kind in ("record", "profile"):
        try:
            arrived = understand(f"joulemark/c1/{kind}/{topic}", payload)
        except Refused:
            continue
        path = Path("/records") / arrived.name
        assert path.parent in (Path("/records"), Path("/records/profiles"))
        assert path.name.startswith("c1.") and "\0" not in arrived.name


def test_writing_twice_is_writing_once(tmp_path: Path) -> None:
    arrived = Arrived("n1", "c1.12.n1.json", b"one", replaces=True)
    assert receive.write(tmp_path, arrived)
    assert not receive.write(tmp_path, arrived)
    (tmp_path / "merged").mkdir()
    (tmp_path / arrived.name).rename(tmp_path / "merged" / arrived.name)
    assert not receive.write(tmp_path, arrived)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["merged"]


def test_a_later_version_replaces_an_earlier_one(tmp_path: Path) -> None:
    for payload in (b"one", b"two"):
        assert receive.write(tmp_path, Arrived("n1", "c1.12.n1.json", payload, replaces=True))
    assert (tmp_path / "c1.12.n1.json").read_bytes() == b"two"


def test_another_runs_record_stays_beside_it(tmp_path: Path) -> None:
    """Requeued before anything was merged; each comes twice, the second run's in two versions."""
    name = "c1.12.n1.json"

    def payload(start_ns: int, energy_uj: int) -> bytes:
        accounts = [{"step": "job", "start_ns": start_ns, "energy_uj": energy_uj}]
        return json.dumps({"accounts": accounts}).encode()

    for start_ns, energy_uj in ((1, 10), (2, 20), (1, 10), (2, 21), (3, 30), (2, 21)):
        arrived = Arrived("n1", name, payload(start_ns, energy_uj), replaces=True)
        receive.write(tmp_path, arrived)
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert kept == {
        name: payload(1, 10),
        f"{name}.2": payload(2, 21),
        f"{name}.3": payload(3, 30),
    }


@pytest.fixture
def take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Gives a receiver messages as fast as the broker does, on a disk whose first file is slow."""
    pytest.importorskip("paho.mqtt.client")
    sync, waits = os.fsync, iter((0.3,))

    def slow_sync(descriptor: int) -> None:
        time.sleep(next(waits, 0))
        sync(descriptor)

    monkeypatch.setattr(receive.os, "fsync", slow_sync)
    broker = receive.Broker("localhost", 1883, "joulemark", None, None, False, None, None, None)
    place = config.Place.parse(str(tmp_path / "store"))
    receiver = receive.Receiver(config.Config(CLUSTER, tmp_path, place), broker)

    def messages(*payloads: bytes) -> None:
        topic = f"joulemark/{CLUSTER}/record/n1/12"
        for payload in payloads:
            message = SimpleNamespace(topic=topic, payload=payload)
            receiver._on_message(None, None, message)
        for writer in receiver.writers:
            writer.shutdown()

    return messages


def test_what_comes_at_once_is_written_one_after_the_other(take, tmp_path: Path) -> None:
    """After an outage a node sends all it has: two runs of a job, an excuse after the record."""
    runs = [record(missing=None, restart=run, accounts=[account(run)]) for run in (0, 1)]
    take(*runs, record())
    kept = {path.name: path.read_bytes() for path in tmp_path.glob("*.json*")}
    assert kept == {"c1.12.n1.json": runs[0], "c1.12.n1.json.2": runs[1]}


def test_of_two_versions_the_later_one_stays(take, tmp_path: Path) -> None:
    versions = [record(missing=None, uid=uid, accounts=[account(0)]) for uid in (1, 2)]
    take(*versions)
    assert (tmp_path / "c1.12.n1.json").read_bytes() == versions[1]


def account(run: int) -> dict:
    return builders.account(start_ns=builders.START_NS + run * 10**12, end_ns=2 * 10**18)


def test_that_there_is_none_never_replaces_a_record(tmp_path: Path) -> None:
    (tmp_path / "c1.12.n1.json").write_bytes(b"real")
    assert not receive.write(tmp_path, Arrived("n1", "c1.12.n1.json", b"none", replaces=False))
    assert (tmp_path / "c1.12.n1.json").read_bytes() == b"real"


def test_a_failed_writing_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "c1.12.n1.json").mkdir()
    with pytest.raises(OSError):
        receive.write(tmp_path, Arrived("n1", "c1.12.n1.json", b"x", replaces=True))
    assert [path.name for path in tmp_path.iterdir()] == ["c1.12.n1.json"]


def test_a_link_is_replaced_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    records_dir = tmp_path / "records"
    records_dir.mkdir()
    (records_dir / "c1.12.n1.json").symlink_to(victim)
    assert receive.write(records_dir, Arrived("n1", "c1.12.n1.json", b"x", replaces=True))
    assert victim.read_bytes() == b"mine"
