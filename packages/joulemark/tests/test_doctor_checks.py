# `joulemark doctor`: checks that need no cluster; tests/e2e/test_doctor.py has the others.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import os
import tempfile
from pathlib import Path

import pytest
from joulemark import __version__
from joulemark.doctor import everywhere, node_checks, slurm_checks
from joulemark.doctor.site import Answer, Site
from joulemark.doctor.slurmconf import SlurmConf


@pytest.fixture
def folder():
    """One that every user can look into, as no folder of pytest's is."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.mark.parametrize(
    ("private", "of_dbd", "mode", "folder_mode", "is_found"),
    [
        ("PrivateData=accounts,Jobs", "none", 0o644, 0o755, True),
        ("", "accounts,jobs", 0o644, 0o755, True),
        ("PrivateData=jobs", "jobs", 0o640, 0o755, False),
        ("PrivateData=jobs", "none", 0o644, 0o750, False),
        ("PrivateData=nodes", "usage", 0o644, 0o755, False),
        ("", "none", 0o644, 0o755, False),
        # 26.05.5
        ("", "none\nStorageType = accounting_storage/slurmdbd", 0o644, 0o755, True),
        (*("", "none\nStorageType = accounting_storage/slurmdbd"), 0o640, 0o755, False),
    ],
)
def test_an_open_store_where_jobs_are_private(
    site, folder, monkeypatch, private, of_dbd, mode, folder_mode, is_found
):
    key = "PrivateData            ="
    said = f"{key} all\n\nSlurmDBD configuration:\nParameters = \n{key} {of_dbd}\nx = y\n"
    monkeypatch.setattr("joulemark.doctor.site.ask", lambda *words: Answer(0, said))
    store, conf = folder / "store.sqlite", folder / "slurm.conf"
    store.touch(mode)
    store.chmod(mode)
    folder.chmod(folder_mode)
    conf.write_text(f"ClusterName=demo\n{private}\n")
    site.yaml.write_text(site.yaml.read_text().replace(str(site.store), str(store)))
    found = list(slurm_checks.private_store(Site(SlurmConf(conf), "n1")))
    assert [one.where for one in found] == [str(store)] * is_found
    assert all("mode 0644" in one.value and "chmod 640" in one.fix for one in found)


@pytest.mark.parametrize(
    ("line", "words"), [("PrivateData=Jobs,usage\n", {"jobs", "usage"}), ("", set())]
)
def test_slurmdbds_file_tells_what_sacctmgr_does_not(tmp_path, monkeypatch, line, words):
    path = tmp_path / "slurmdbd.conf"
    path.write_text(f"# of slurmdbd\nDbdHost=n0\n{line}StorageLoc=a\n")
    said = "PrivateData = none\nSlurmDBD configuration:\nPrivateData = none\n"
    said += f"SLURMDBD_CONF = {path}\nStorageType = accounting_storage/slurmdbd\n"
    monkeypatch.setattr("joulemark.doctor.site.ask", lambda *words: Answer(0, said))
    (tmp_path / "slurm.conf").write_text("ClusterName=demo\n")
    private = Site(SlurmConf(tmp_path / "slurm.conf"), "n1").private
    assert private["slurmdbd.conf"] == words


def test_what_slurm_conf_has_for_all_nodes_is_no_node(tmp_path):
    conf = tmp_path / "slurm.conf"
    conf.write_text("NodeName=DEFAULT CPUs=4\nNodeName=n[1-2]\nNodeName=default RealMemory=1\n")
    assert everywhere.names(Site(SlurmConf(conf), None), "all") == ["n1", "n2"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")
def test_a_user_who_may_not_see_the_records_is_told_so(folder, monkeypatch):
    conf, records = folder / "slurm.conf", folder / "closed/records"
    conf.write_text("ClusterName=demo\n")
    (records / "ended").mkdir(parents=True)
    records.parent.chmod(0o700)
    # joulemarkctl's answer
    monkeypatch.setattr(Site, "key", lambda site, key: str(records) * (key == "record_dir"))
    machine = Site(SlurmConf(conf), None)
    os.seteuid(65534)
    try:
        found = [*node_checks.folders(machine), *node_checks.heaps(machine)]
    finally:
        os.seteuid(0)
    assert [one.check for one in found] == ["folders", "heaps"]
    assert all("as root" in one.fix for one in found)


MIXED = "joulemark of an earlier release, protocol 1, asked 3 s ago"


@pytest.mark.parametrize(
    ("said", "values"),
    [
        ("protocol: 1-2\nmixed: ", []),
        (f"protocol: 1-2\nmixed: {MIXED}", [f"not of joulemarkd's release: {MIXED}"]),
        ("", ["of a release before protocols had versions"]),
    ],
    ids=["one release", "older plugins", "older daemon"],
)
def test_releases_that_are_mixed_are_named(tmp_path, monkeypatch, said, values):
    status = Answer(0, f"version: {__version__}\nnode: n1\ncores: 2\n{said}\n")
    monkeypatch.setattr("joulemark.doctor.site.ask", lambda *words: status)
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=demo\n")
    found = list(node_checks.daemon(Site(SlurmConf(conf), "n1")))
    assert [one.value for one in found] == values
    assert all("restart" in one.fix for one in found)


@pytest.mark.parametrize(
    ("said", "level", "value"),
    [
        ("left_out: pdu gpus\nunread: ", "error", "could not be opened: pdu gpus"),
        ("left_out: \nunread: bmc/psu1", "warning", "no value yet: bmc/psu1"),
    ],
)
def test_instruments_that_show_nothing_are_named(tmp_path, monkeypatch, said, level, value):
    lines = f"version: {__version__}\nnode: n1\ncores: 2\nprotocol: 1-2\n{said}\n"
    monkeypatch.setattr("joulemark.doctor.site.ask", lambda *words: Answer(0, lines))
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=demo\n")
    (found,) = node_checks.daemon(Site(SlurmConf(conf), "n1"))
    assert (found.check, found.level) == ("instruments", level) and found.value.startswith(value)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """One that is slurmctld's, a node or neither, with these lines of slurm.conf."""

    def make(lines: str, *, controller: bool = False, node: str | None = None) -> Site:
        conf = tmp_path / "slurm.conf"
        host = "here" if controller else "far"
        conf.write_text(f"ClusterName=demo\nSlurmctldHost={host}\n{lines}\n")
        monkeypatch.setattr("socket.gethostname", lambda: "here")
        return Site(SlurmConf(conf), node)

    return make


OURS = "Epilog=/nowhere/joulemark/epilog\nEpilogSlurmctld=/nowhere/joulemark/epilogslurmctld"


@pytest.mark.parametrize(
    ("lines", "place", "missing"),
    [
        (OURS, {"controller": True}, ["EpilogSlurmctld=/nowhere/joulemark/epilogslurmctld"]),
        (OURS, {"node": "n1"}, ["Epilog=/nowhere/joulemark/epilog"]),
        (OURS, {}, []),
        ("Epilog=/bin/true", {}, ["Epilog=/bin/true", "no EpilogSlurmctld"]),
        ("", {}, ["no Epilog", "no EpilogSlurmctld"]),
    ],
)
def test_an_epilog_is_looked_for_where_it_runs(machine, lines, place, missing):
    """slurm.conf is the same on all machines, and names programs that some of them need not."""
    assert [one.value for one in slurm_checks.epilogs(machine(lines, **place))] == missing


@pytest.mark.parametrize(
    ("transport", "place", "missing"),
    [
        ("mqtt", {"node": "n1"}, ["state_dir"]),
        ("mqtt", {"node": "n1", "controller": True}, ["record_dir", "state_dir"]),
        ("mqtt", {"controller": True}, ["record_dir"]),
        ("directory", {"node": "n1"}, ["record_dir", "state_dir"]),
    ],
)
def test_records_are_looked_for_where_they_lie(
    site, machine, monkeypatch, transport, place, missing
):
    site.configure(f"transport: {transport}\n")
    # joulemarkctl's answer
    monkeypatch.setattr(Site, "key", lambda site, key: f"/nowhere/{key}")
    found = node_checks.folders(machine("", **place))
    assert [one.where.partition(":")[0] for one in found] == missing


#: class and vendor as `lspci -nn` shows them: of H100 SXM5 (10de:2330), MI250X (1002:7408), MI300X
#: (1002:74a1), Max 1550 (8086:0bd5), and of what is none: ASPEED's BMC (1a03:2000), a CPU's own
H100, MI250X = ("0x030200", "0x10de"), ("0x038000", "0x1002")
MI300X, MAX = ("0x120000", "0x1002"), ("0x038000", "0x8086")
NO_GPUS = [("0x030000", "0x1a03"), ("0x030000", "0x8086"), ("0x020000", "0x8086")]
RAPL = {"instrument": "auto", "domain": "cpu", "method": "counter"}
BMC = {"instrument": "bmc", "domain": "node", "method": "integrated"}
GUESS = {"instrument": "auto", "domain": "node", "method": "model"}
CARD = {"instrument": "nvml", "domain": "gpu", "method": "counter"}


@pytest.mark.parametrize(
    ("devices", "channels", "where", "fix", "value"),
    [
        ([H100] * 4, [RAPL], "4 GPUs of NVIDIA", "nvml", "their energy is in no job's"),
        ([MI250X], [GUESS], "1 GPU of AMD", "amdgpu", "their energy is in no job's"),
        ([MI300X] * 2, [BMC, RAPL], "2 GPUs of AMD", "amdgpu", "bmc may have them"),
        ([MAX], [RAPL], "1 GPU of Intel", "hwmon", "their energy is in no job's"),
        ([H100], [RAPL, CARD], None, None, None),
        ([], [RAPL], None, None, None),
    ],
)
def test_gpus_that_no_channel_reads(tmp_path, monkeypatch, devices, channels, where, fix, value):
    for number, (kind, vendor) in enumerate([*NO_GPUS, *devices]):
        folder = tmp_path / f"0000:0{number}:00.0"
        folder.mkdir()
        (folder / "class").write_text(f"{kind}\n")
        (folder / "vendor").write_text(f"{vendor}\n")
    described = Answer(0, "".join(f"{json.dumps(channel)}\n" for channel in channels))
    monkeypatch.setattr(node_checks, "PCI", tmp_path)
    monkeypatch.setattr(node_checks, "ask", lambda *words: described)
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=demo\n")
    found = list(node_checks.gpus(Site(SlurmConf(conf), "n1")))
    assert [one.where for one in found] == [where] * (where is not None)
    assert all(f"type: {fix}" in one.fix and value in one.value for one in found)
