"""The SELinux module of slurm-plugins/site: compiled, linked into Debian's reference policy, and
asked what it allows. No kernel with SELinux can be had here: nothing is enforced."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import bz2
import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.long.test_packages import SITE, must

SOURCES = SITE / "selinux"
MAKEFILE = "/usr/share/selinux/devel/Makefile"
POLICY = Path("/usr/share/selinux/default")
DAEMON, GATEWAY, RECEIVE = "joulemarkd_t", "joulemark_gateway_t", "joulemark_receive_t"
DOMAINS = (DAEMON, GATEWAY, RECEIVE)
READ, USE = {"open", "read"}, {"ioctl", "open", "read", "write"}
#: where each may write; tmpfs_t is the memory's own folder, init_tmpfs_t what systemd gives
PLACES = {
    DAEMON: {
        "joulemark_runtime_t",
        "joulemark_tmpfs_t",
        "joulemark_var_lib_t",
        "tmpfs_t",
        "init_tmpfs_t",
    },
    GATEWAY: {"joulemark_runtime_t", "joulemark_var_lib_t"},
    RECEIVE: {"joulemark_var_lib_t"},
}
Rules = dict[str, list[tuple[str, str, set[str], str]]]

#: what each instrument and each part of the daemon needs, of which type, class
DAEMON_NEEDS = {
    "powercap, hwmon, pm_counters, amdgpu": ("sysfs_t", "file", READ),
    "ipmi: the node's own BMC": ("ipmi_device_t", "chr_file", USE),
    "ipmi over the LAN, snmp": (DAEMON, "udp_socket", {"connect", "create", "read", "write"}),
    "nvml": ("xserver_misc_device_t", "chr_file", USE),
    "scpi, modbus: RS-485": ("tty_device_t", "chr_file", USE),
    "redfish, prometheus": ("http_port_t", "tcp_socket", {"name_connect"}),
    "mqtt, modbus: a port without a name": ("unreserved_port_t", "tcp_socket", {"name_connect"}),
    "model: /proc/stat": ("proc_t", "file", READ),
    "RAPL's counters": (DAEMON, "capability", {"dac_read_search"}),
    "steps' processes": ("unconfined_t", "file", READ),
    "do they live": ("unconfined_t", "process", {"signull"}),
    "control groups": ("cgroup_t", "file", READ),
    "its socket": ("joulemark_runtime_t", "sock_file", {"create", "setattr", "unlink"}),
    "marks": ("joulemark_tmpfs_t", "file", {"create", "map", "read", "write"}),
    "the ledger": ("joulemark_var_lib_t", "file", {"create", "lock", "map", "rename", "write"}),
    "what waits": ("joulemark_var_lib_t", "dir", {"add_name", "remove_name", "watch"}),
    "secrets": ("joulemark_conf_t", "file", READ),
    "the configuration": ("etc_t", "file", READ),
    "its forwarder": ("joulemarkd_exec_t", "file", {"execute", "execute_no_trans"}),
    "systemd's notice": ("init_t", "unix_dgram_socket", {"sendto"}),
}
GATEWAY_NEEDS = {
    "snmp": (GATEWAY, "udp_socket", {"connect", "create", "read", "write"}),
    "redfish": ("http_port_t", "tcp_socket", {"name_connect"}),
    "its journals": ("joulemark_var_lib_t", "file", {"create", "rename", "write"}),
    "secrets": ("joulemark_conf_t", "file", READ),
}
RECEIVE_NEEDS = {
    "the broker": ("unreserved_port_t", "tcp_socket", {"name_connect"}),
    "paho's pair of sockets": ("node_t", "tcp_socket", {"node_bind"}),
    "records": ("joulemark_var_lib_t", "file", {"create", "rename", "write"}),
    "certificates": ("joulemark_conf_t", "file", READ),
    "Python": ("bin_t", "file", {"execute", "map", "read"}),
    "its modules": ("lib_t", "file", READ),
}
NEEDS = [
    pytest.param(domain, *need, id=f"{domain}: {what}")
    for domain, needs in zip(DOMAINS, (DAEMON_NEEDS, GATEWAY_NEEDS, RECEIVE_NEEDS))
    for what, need in needs.items()
]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("selinux")
    for file in SOURCES.iterdir():
        shutil.copy(file, folder)
    said = must("make", "-f", MAKEFILE, "joulemark.pp", cwd=folder)
    assert "warning" not in said.lower(), said
    return folder / "joulemark.pp"


@pytest.fixture(scope="module")
def rules(module: Path) -> Rules:
    """Of each domain in Debian's policy with ours."""
    linked, policy = module.with_name("linked"), module.with_name("policy")
    others = []
    for packed in POLICY.glob("*.pp.bz2"):
        others.append(module.with_name(packed.stem))
        others[-1].write_bytes(bz2.decompress(packed.read_bytes()))
    base = module.with_name("base.pp")
    others.remove(base)
    must("semodule_link", "-o", linked, base, *others, module)
    must("semodule_expand", linked, policy)
    reader = Path(__file__).with_name("selinux_rules.py")
    found = json.loads(must("/usr/bin/python3", reader, policy, *DOMAINS))
    return {
        domain: [(target, kind, set(may), boolean) for target, kind, may, boolean in listed]
        for domain, listed in found.items()
    }


def may(
    rules: Rules, domain: str, target: str, kind: str, booleans: Iterable[str] = ()
) -> set[str]:
    """With these booleans on."""
    granted = (
        permissions
        for one, of, permissions, boolean in rules[domain]
        if (one, of) == (target, kind) and (boolean is None or boolean in booleans)
    )
    return set().union(*granted)


@pytest.mark.parametrize(("domain", "target", "kind", "needed"), NEEDS)
def test_it_has_what_it_needs(
    rules: Rules, domain: str, target: str, kind: str, needed: set[str]
) -> None:
    assert needed <= may(rules, domain, target, kind)


@pytest.mark.parametrize("domain", DOMAINS)
def test_it_runs_no_other_program(rules: Rules, domain: str) -> None:
    begun = {
        target
        for target, kind, permissions, boolean in rules[domain]
        if kind == "file" and "execute_no_trans" in permissions and boolean is None
    }
    assert begun == ({"joulemarkd_exec_t"} if domain == DAEMON else set())
    become = {
        target
        for target, kind, permissions, _ in rules[domain]
        if kind == "process" and permissions & {"transition", "dyntransition", "ptrace"}
    }
    assert become == set()


@pytest.mark.parametrize("domain", DOMAINS)
def test_it_writes_nowhere_else(rules: Rules, domain: str) -> None:
    changed = {
        target
        for target, kind, permissions, boolean in rules[domain]
        if kind in ("file", "dir", "lnk_file", "blk_file")
        and permissions & {"add_name", "append", "create", "unlink", "rename", "write"}
        and boolean is None
    }
    assert changed == PLACES[domain] | {domain}


@pytest.mark.parametrize("domain", DOMAINS)
def test_it_has_no_capability_and_no_port(rules: Rules, domain: str) -> None:
    capabilities = may(rules, domain, domain, "capability") | may(
        rules, domain, domain, "capability2"
    )
    assert capabilities == ({"dac_read_search"} if domain == DAEMON else set())
    bound = {
        target
        for target, _, permissions, boolean in rules[domain]
        if "name_bind" in permissions and boolean is None
    }
    assert bound == set()


@pytest.mark.parametrize("domain", (GATEWAY, RECEIVE))
def test_who_reads_no_node_sees_none(rules: Rules, domain: str) -> None:
    assert not may(rules, domain, "ipmi_device_t", "chr_file")
    assert not may(rules, domain, "xserver_misc_device_t", "chr_file")
    assert not may(rules, domain, "unconfined_t", "file") & READ


@pytest.mark.parametrize("domain", DOMAINS)
def test_no_secret_of_the_machine_is_read(rules: Rules, domain: str) -> None:
    for target in ("shadow_t", "user_home_t", "memory_device_t", "fixed_disk_device_t"):
        for kind in ("file", "chr_file", "blk_file"):
            assert not may(rules, domain, target, kind) & READ, target


def test_a_script_takes_a_boolean(rules: Rules) -> None:
    assert "execute_no_trans" in may(
        rules, DAEMON, "shell_exec_t", "file", ["joulemark_exec_scripts"]
    )
    assert "execute_no_trans" not in may(rules, DAEMON, "shell_exec_t", "file")
    assert "write" in may(rules, RECEIVE, "nfs_t", "file", ["joulemark_use_nfs"])
    assert "write" not in may(rules, RECEIVE, "nfs_t", "file")


@pytest.mark.parametrize(
    ("path", "label"),
    {
        "/usr/sbin/joulemarkd": "joulemarkd_exec_t",
        "/usr/bin/joulemark": "joulemark_exec_t",
        "/etc/joulemark/gateway.yaml": "joulemark_conf_t",
        "/run/joulemark/joulemarkd.sock": "joulemark_runtime_t",
        "/var/lib/joulemark/ledger.sqlite": "joulemark_var_lib_t",
        "/var/lib/joulemark-gateway": "joulemark_var_lib_t",
    }.items(),
)
def test_its_files_are_labelled(module: Path, path: str, label: str) -> None:
    contexts = module.with_name("contexts")
    must("semodule_unpackage", module, module.with_name("unpacked"), contexts)
    said = must("matchpathcon", "-n", "-f", contexts, path)
    assert said.strip() == f"system_u:object_r:{label}:s0"


@pytest.mark.parametrize("unit", ("joulemark-gateway.service.in", "joulemark-receive.service"))
def test_a_unit_names_its_domain(unit: str) -> None:
    named = re.search(
        r"(?m)^SELinuxContext=-system_u:system_r:(\w+):s0$", (SITE / unit).read_text()
    )
    assert named[1] in DOMAINS


def test_selint_has_nothing_to_say() -> None:
    # S-001, a require of init_t: Fedora's policy has no interface for SELinuxContext=
    must("selint", "--fail", "--disable=S-001", "--recursive", SOURCES)
