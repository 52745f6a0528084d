"""What is wrong in an entry of `instruments:` is named, whatever the instrument."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os

import pytest

from tests.peers.secret import secret

MISTAKES = {
    "amdgpu": [("root: {folder}", "has no card with energy or power")],
    "ipmi": [("reading: 'dcmi xcc-energy'", "must be one of dcmi xcc-energy")],
    "modbus": [
        ("register: 0", "key 'host' or key 'device'"),
        ("host: h, device: /dev/ttyS0, register: 0", "key 'host' or key 'device'"),
        ("host: 'h:', register: 0", "key 'host'"),
        ("host: h", "key 'register'"),
        ("host: h, preset: lumel-p12p", "manual"),
    ],
    "mqtt": [
        ("host: b", "topic"),
        ("host: b, topic: a/+/b", "without '+' or '#'"),
        ("topic: a", "host"),
        ("host: b, topic: a, password_file: /nowhere", "needs a user"),
        ("host: b, topic: a, user: u, password_file: /nowhere", "/nowhere: cannot be opened"),
        ("host: b, topic: a, ca_file: /nowhere", "ca_file /nowhere: cannot be read"),
        ("host: b, topic: a, cert_file: /nowhere", "need TLS"),
    ],
    "powercap": [("root: {folder}", "has no RAPL zone (intel-rapl:N)")],
    "prometheus": [
        ("query: up", "url"),
        ("url: 'ftp://x', query: up", "must begin with http"),
        ("url: 'http://me:hush@x', query: up", "move them to"),
        ("url: 'http://x'", "query: is missing"),
        ("url: 'http://x', query: up, user: me", "belong together"),
        ("url: 'http://x', query: up, token_file: /nowhere", "/nowhere"),
    ],
    "scpi": [
        ("device: /dev/null, baud: 1234", "key 'baud'"),
        ("device: /dev/null, model: generic", "key 'query'"),
    ],
    "snmp, channels: [{{outlet: 1}}]": [
        ("host: h, preset: apc", "key 'community_file"),
        ("host: h, user: u", "key 'auth_password_file"),
        ("community_file: {secret}, preset: apc", "key 'host"),
        ("host: 'unix:/x', community_file: {secret}, preset: apc", "key 'host"),
        ("host: h, community_file: {secret}", "key 'oid"),
    ],
}
HARDWARE = ("amdgpu", "powercap")  # whose words are right, but there is none


@pytest.mark.parametrize(
    ("kind", "keys", "complaint"),
    [(kind, *mistake) for kind, mistakes in MISTAKES.items() for mistake in mistakes],
)
def test_a_mistake_is_named(tmp_path, probe, kind, keys, complaint):
    words = {"folder": tmp_path, "secret": secret(tmp_path / "secret", "hush")}
    done = probe(f"- {{{{type: {kind}, {keys}}}}}\n".format(**words))
    assert done.status == 1 or (kind not in HARDWARE and done.status == os.EX_CONFIG)
    assert complaint in done.said
    assert "hush" not in done.said
