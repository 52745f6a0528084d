# `joulemark doctor` on files and programs that say what it cannot understand.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import csv
import io
import json

import pytest
from cooked_lines import markdown_rows


@pytest.fixture
def slurm_conf(site, monkeypatch):
    """Writes the slurm.conf of a machine whose only program is a `scontrol`."""
    folder = site.folder / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/bin")
    path = site.folder / "slurm.conf"
    monkeypatch.setenv("SLURM_CONF", str(path))

    def write(text: bytes):
        path.write_bytes(text)
        program = folder / "scontrol"
        program.write_bytes(b"#!/bin/sh\ncat $SLURM_CONF\n")
        program.chmod(0o755)
        return path

    return write


def test_what_is_not_utf8_is_shown_as_well_as_can_be(site, slurm_conf):
    slurm_conf(b"ClusterName=caf\xe9\nNodeName=n1\nEpilog=/epilog\xe9\n")
    code, out, err = site.run("doctor", "--node", "n1")
    assert code == 1 and not err
    assert "Epilog=/epilog\N{REPLACEMENT CHARACTER}: set it to" in out


def test_json_is_a_format(site, slurm_conf):
    slurm_conf(b"ClusterName=demo\nNodeName=n1\n")
    words = ("doctor", "--node", "n1")
    found, same = (
        json.loads(site.run(*words, *more)[1]) for more in (("--json",), ("--format", "json"))
    )
    assert found["findings"] and found["findings"] == same["findings"]


def test_findings_are_rows(site, slurm_conf):
    slurm_conf(b"ClusterName=demo\nNodeName=n1\n")
    words = ("doctor", "--node", "n1")
    _, out, _ = site.run(*words)
    lines = out.splitlines()
    _, out, _ = site.run(*words, "--json")
    findings = json.loads(out)["findings"]
    code, out, _ = site.run(*words, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 1 and rows == findings and len(rows) == len(lines) > 0
    table = site.run(*words, "--format", "markdown")[1]
    assert "| Check | Level | Where | Value | Fix | Node |" in table
    assert len(markdown_rows(table)) == len(lines) + 2
    path = site.folder / "found"
    assert site.run(*words, "--out", str(path))[:2] == (1, "")
    assert path.read_text().splitlines() == lines


def test_an_empty_list_of_nodes_is_none(site, slurm_conf):
    slurm_conf(b"ClusterName=demo\nNodeName=n1\n")
    assert "--nodes '': is no value" in site.refuses("doctor", "--nodes", "")


@pytest.mark.parametrize("text", ["abc", "0", "-1", "nan", "inf", "1e400"])
def test_a_time_for_answers_that_is_none_is_refused(site, slurm_conf, monkeypatch, text):
    slurm_conf(b"ClusterName=demo\nNodeName=n1\n")
    monkeypatch.setenv("JOULEMARK_ANSWER_S", text)
    said = site.refuses("doctor")
    assert f"JOULEMARK_ANSWER_S={text}: is not a time in seconds" in said and "unset it" in said


def test_a_broken_list_of_nodes_is_named(site, slurm_conf):
    path = slurm_conf(b"ClusterName=demo\nNodeName=n[1-4\n")
    said = f"joulemark: {path}: NodeName: 'n[1-4' is not a node list such as n1,n2 or n[1-4]\n"
    assert site.refuses("doctor") == said
