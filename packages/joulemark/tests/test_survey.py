# Tests of joulemark.storage's survey and sweep: what they make of rates, and of Lustre's commands.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A real GlusterFS is in tests/instruments/test_survey.py. No test machine has a Lustre: what its
commands say here was said by 2.17.57's."""

import argparse
import json
import os
import statistics
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joulemark.errors import UsageError
from joulemark.storage import rounds, rpcs, survey, targets, transfer
from joulemark.storage.rounds import Measured

RATES = st.lists(st.floats(1, 1e12), min_size=1, max_size=5)
OSTS = """\
OBDS:
0: lustre-OST0000_UUID ACTIVE
1: lustre-OST0001_UUID INACTIVE
2: lustre-OST0002_UUID ACTIVE
3: lustre-OST0003_UUID ACTIVE
4: lustre-OST0004_UUID ACTIVE
5: lustre-OST0005_UUID ACTIVE
6: lustre-OST0006_UUID ACTIVE
"""
DF = """\
UUID                   1K-blocks        Used   Available Use%  Mounted on
lustre-MDT0000_UUID      2003564           0     2003564   0%  /mnt/lustre[MDT:0]
lustre-OST0000_UUID      2003564           0     2003564   0%  /mnt/lustre[OST:0]
lustre-OST0001_UUID : Cannot send after transport endpoint shutdown
lustre-OST0002_UUID      2003564           0        1000  99%  /mnt/lustre[OST:2]
lustre-OST0003_UUID      2003564           0     2003564   0%  /mnt/lustre[OST:3]
lustre-OST0005_UUID : Connection timed out
lustre-OST0006_UUID      2003564           0     2003564   0%  /mnt/lustre[OST:6] D

filesystem_summary:      4007128           0     4007128   0%  /mnt/lustre
"""
LFS = """\
#!/bin/sh
case "$*" in
    "osts "*) cat osts ;;
    "df --lazy "*) cat df; exit 110 ;;
    "setstripe --stripe-count 1 --stripe-index 3 "*) echo "no such OST" >&2; exit 3 ;;
    "setstripe --stripe-count "*) for path; do :; done; echo "$5" >"$path" ;;
    "getstripe --stripe-index "*) case $3 in *OST0006) echo 0 ;; *) cat "$3" ;; esac ;;
    "getname "*) echo "lustre-ff1d723889eae800 $2" ;;
    *) exit 9 ;;
esac
"""
# Numbers are in files of the parameters' names; it takes none above 64.
LCTL = """\
#!/bin/sh
kind=$1; shift
for one; do
    case $kind in
        get_param) for name in $one; do echo "$name=$(cat $name)"; done ;;
        set_param) echo "$one" >>asked
            [ "${one#*=}" -gt 64 ] || echo "${one#*=}" >"${one%%=*}" ;;
    esac
done
"""
CLIENTS = [f"osc.lustre-OST000{number}-osc-ff1d723889eae800" for number in (0, 2)]
SERVER = "osc.lustre-OST0000-osc-MDT0000"


@pytest.fixture
def lustre(tmp_path, monkeypatch):
    """Its folder; its commands' files are beside it."""
    for name, text in (("lfs", LFS), ("lctl", LCTL), ("osts", OSTS), ("df", DF)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    for name, value in zip((*CLIENTS, SERVER), (8, 16, 8)):
        (tmp_path / f"{name}.max_rpcs_in_flight").write_text(f"{value}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    mount = targets.Mount("/mnt/lustre", targets.LUSTRE, "0:1")
    monkeypatch.setattr(targets, "mount_of", lambda folder: mount)
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


def numbers(folder):
    """As it has them now, ours first."""
    names = (f"{name}.max_rpcs_in_flight" for name in (*CLIENTS, SERVER))
    return [int((folder.parent / name).read_text()) for name in names]


# -- which are slower -----------------------------------------------------------------------------


def _middles(rates):
    """What a median of medians can be."""
    middles = list(map(statistics.median, rates))
    return {(one + other) / 2 for one in middles for other in middles}


@given(st.lists(RATES, min_size=1, max_size=9), st.floats(0.01, 0.99), st.floats(0.1, 10))
def test_who_is_slower_is_no_matter_of_the_unit(rates, share, unit):
    def found(factor):
        return {
            str(name): Measured({"write": [factor * rate for rate in one], "read": []})
            for name, one in enumerate(rates)
        }

    slow = survey.slower(found(1.0), "write", share)
    assert len(slow) <= len(rates) // 2  # one that has the median's is not slower
    assert survey.slower(found(1.0), "read", share) == set()
    middles = [abs(max(one) / rate - share) for one in rates for rate in _middles(rates)]
    if min(middles) > 1e-6:
        assert survey.slower(found(unit), "write", share) == slow


def test_a_round_that_met_anothers_load_accuses_nobody():
    alike, slow = [100.0, 90.0, 95.0], [50.0, 40.0, 45.0]
    found = {"a": alike, "b": [95.0, 1.0, 1.0], "c": slow, "d": alike}
    found = {name: Measured({"write": rates}) for name, rates in found.items()}
    assert survey.slower(found, "write", 0.8) == {"c"}


# -- a transfer -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_bytes", [4096, transfer.TRANSFER, 2 * transfer.TRANSFER + 7])
def test_a_transfer_tells_its_seconds_and_empties_its_file(tmp_path, n_bytes):
    path = tmp_path / "file"
    path.touch()
    words = [sys.executable, "-I", transfer.__file__, path, str(n_bytes)]
    seconds = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    assert set(seconds) == {"write_s", "read_s"} and min(seconds.values()) > 0
    assert path.stat().st_size == 0


@pytest.mark.parametrize("byte", [0, 7, 8, transfer.TRANSFER - 1, transfer.TRANSFER + 3])
def test_a_byte_that_is_another_is_found(tmp_path, monkeypatch, byte):
    path, pread = tmp_path / "file", os.pread
    path.touch()

    def flipped(file, count, at):
        came = bytearray(pread(file, count, at))
        if at <= byte < at + count:
            came[byte - at] ^= 1
        return bytes(came)

    monkeypatch.setattr(os, "pread", flipped)
    at = byte // transfer.TRANSFER * transfer.TRANSFER
    with pytest.raises(ValueError, match=f"^byte {at} "):
        transfer.transfer(path, 2 * transfer.TRANSFER)


def test_a_transfer_of_another_place_is_found(tmp_path, monkeypatch):
    path, pread = tmp_path / "file", os.pread
    path.touch()
    monkeypatch.setattr(os, "pread", lambda file, count, at: pread(file, count, 0))
    with pytest.raises(ValueError, match=f"^byte {transfer.TRANSFER} "):
        transfer.transfer(path, 2 * transfer.TRANSFER)


def test_no_file_of_the_folder_where_it_runs_is_its_python(tmp_path, monkeypatch):
    """A user's own folder, and `io rpcs` is root's."""
    (tmp_path / "json.py").write_text("raise SystemExit('another json')\n")
    path = tmp_path / "file"
    path.touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert set(rounds.transferred(path, 4096, 60)) == {"write_s", "read_s"}


def test_why_there_is_none(tmp_path):
    assert rounds.transferred(tmp_path / "none", 4096, 60) == "No such file or directory"


# -- Lustre ---------------------------------------------------------------------------------------


def test_osts_that_cannot_be_measured_are_named(lustre):
    files, missing = targets.files(lustre, 2 << 20)
    assert files == {"lustre-OST0000": lustre / "lustre-OST0000"}
    assert missing.pop("lustre-OST0003").endswith("exit status 3: no such OST")
    assert missing == {
        "lustre-OST0001": "is INACTIVE",
        "lustre-OST0004": "does not answer",
        "lustre-OST0005": "Connection timed out",
        "lustre-OST0006": "takes no new files: one for it came to lie on OST 0",
        "lustre-OST0002": "has room for 1024000 bytes",
    }


def sweep(folder, *swept):
    options = argparse.Namespace(folder=str(folder), size=4096, rounds=2, limit=60.0)
    options.numbers, options.format, options.out = list(swept), "json", None
    return rpcs.run(options)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can set them")
def test_each_number_is_swept_and_then_they_are_as_before(lustre, capsys):
    assert sweep(lustre, 1, 8, 16) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["max_rpcs_in_flight"], row["rounds"]) for row in rows] == [
        (1, 2),
        (8, 2),
        (16, 2),
    ]
    assert [row["before"] for row in rows] == [0, 1, 1]
    assert numbers(lustre) == [8, 16, 8]
    asked = (lustre.parent / "asked").read_text().split()
    assert [int(line.partition("=")[2]) for line in asked[::2]] == [1, 8, 16, 8, 16, 1, 8]
    assert not any(SERVER in line for line in asked)
    assert not list(lustre.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can set them")
def test_a_number_that_is_not_taken_is_told(lustre):
    with pytest.raises(UsageError, match="asked for 128, it is 8"):
        sweep(lustre, 128)
    assert numbers(lustre) == [8, 16, 8]
    assert not list(lustre.iterdir())


def test_only_root_can(lustre, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="run it as root"):
        sweep(lustre, 8)
    assert numbers(lustre) == [8, 16, 8]


def test_where_lustre_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match=r"^lfs: .*Lustre's commands are needed"):
        targets.lustre("lfs", "osts", tmp_path)
