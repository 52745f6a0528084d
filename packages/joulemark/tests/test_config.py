# The site's configuration and Slurm's node lists: what is read, and what each error names.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import re
from pathlib import Path

import pytest
from joulemark import config, hostlist
from joulemark.broker import Broker
from joulemark.errors import UserError

GOOD = "cluster: demo\nrecord_dir: /r\nstore: /s.sqlite\n"


def test_keys_of_others_are_left_to_them(tmp_path):
    path = tmp_path / "joulemark.yaml"
    path.write_text(GOOD + "instruments:\n  - type: model\n    idle_w: 40\n")
    assert config.load(path).cluster == "demo"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD.replace("/r", "r"), ":2: record_dir: 'r' is not an absolute"),
        (GOOD.replace("cluster: demo\n", ""), ": cluster: missing: add the ClusterName"),
        (GOOD.replace("demo", "[a, b]"), ":1: cluster: expected one text value"),
        (GOOD.replace("demo", ""), ":1: cluster: expected one text value"),
        (GOOD + "a: b: c\n", ":4: not YAML: mapping values are not allowed"),
        (
            GOOD + "price_per_kw: 1\n",
            ":4: price_per_kw: is not known; did you mean 'price_per_kwh'?",
        ),
        (GOOD + "cluster: two\n", ":4: cluster: is given twice; remove one"),
        (
            "# f\xfcr\n" + GOOD + "currency: \udce9\n",
            ":5: byte 0xe9 is not UTF-8: save the file as UTF-8",
        ),
        ("# f\xfcr\n" + GOOD + "currency: \a\n", ":5: not YAML: "),
        (GOOD + "transport: smtp\n", ":4: transport: 'smtp' is not directory or mqtt"),
        (GOOD + "xyzzy: 1\n", ":4: xyzzy: is not known; correct or remove it"),
        (GOOD + "[a]: 1\n", ":4: expected `key: value` lines"),
        ("- 1\n", ":1: expected `key: value` lines"),
        ("", ":1: expected `key: value` lines"),
    ],
)
def test_error_names_file_line_and_key(tmp_path, text, expected):
    path = tmp_path / "joulemark.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(UserError) as caught:
        config.load(path)
    assert str(caught.value).startswith(f"{path}{expected}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (
            "a: b: c\n",
            ": it is `key: value`, the value in quotes where it has a colon and a space",
        ),
        ("currency: \a\n", "characters are not allowed (0x07); correct the line"),
    ],
)
def test_what_is_no_yaml_says_how_to_mend_it(tmp_path, text, fix):
    path = tmp_path / "joulemark.yaml"
    path.write_text(GOOD + text)
    with pytest.raises(UserError) as caught:
        config.load(path)
    assert str(caught.value).endswith(fix)


def test_the_daemon_knows_the_same_keys():
    """It judges the file as a whole, so a key that one of both lacks would be refused."""
    checkout = Path(__file__).parents[3]
    text = (checkout / "slurm-plugins/config/config.c").read_text()
    tables = re.findall(r"(top_fields|site_keys)\[\] = \{\n(.*?)\n\};", text, re.DOTALL)
    text = "\n".join(table for _, table in tables)
    assert set(re.findall(r'\{"(\w+)", (?:JM_KEY|jm_parse|parse)_', text)) == set(config.KEYS)
    broker = (checkout / "slurm-plugins/instruments/broker.h").read_text()
    assert {*re.findall(r'"(\w+)", JM_KEY_', broker), "topic"} == set(config.BROKER_KEYS)


def test_what_a_file_leaves_out_is_where_the_daemon_has_it(tmp_path):
    path = tmp_path / "joulemark.yaml"
    path.write_text("cluster: demo\n")
    read = config.load(path)
    source = (Path(__file__).parents[3] / "slurm-plugins/config/config.c").read_text()
    defaults = dict(re.findall(r'jm_format\(config->(\w+), .*?"(.*?)"\);', source))
    assert str(read.record_dir) == defaults["record_dir"]
    assert str(read.store.path) == defaults["store"]


def test_the_broker_s_defaults(tmp_path):
    path = tmp_path / "joulemark.yaml"
    for tls, port in (("", 1883), (", ca_file: /ca.pem", 8883), (", tls: true", 8883)):
        path.write_text(GOOD + f"mqtt: {{host: broker{tls}}}\n")
        broker = Broker.load(path, "n1", None, None)
        assert (broker.host, broker.port, broker.topic) == ("broker", port, "joulemark")
        assert broker.tls == bool(tls)
    path.write_text(GOOD + "mqtt: {host: b, port: 7, user: u, password_file: /p, topic: t}\n")
    broker = Broker.load(path, "n1", "me", "mine")
    assert (broker.port, broker.user, broker.password_file, broker.topic) == (7, "me", "mine", "t")
    assert Broker.load(path, "n1", None, None).user == "u"


def test_each_finds_its_own_key_by_one_configuration(tmp_path):
    path = tmp_path / "joulemark.yaml"
    files = "ca_file: /50%%/ca.pem, cert_file: /%n.pem, key_file: /%n.key"
    path.write_text(GOOD + f"mqtt: {{host: b, {files}}}\n")
    broker = Broker.load(path, "joulemark-top", None, None)
    found = (broker.ca_file, broker.cert_file, broker.key_file)
    assert list(map(str, found)) == ["/50%/ca.pem", "/joulemark-top.pem", "/joulemark-top.key"]


def test_a_key_that_cannot_be_read_is_named(tmp_path):
    pytest.importorskip("paho.mqtt.client")
    path = tmp_path / "joulemark.yaml"
    path.write_text(GOOD + "mqtt: {host: b, tls: true, cert_file: /nowhere/%n.pem}\n")
    with pytest.raises(UserError, match=r"/nowhere/joulemark-top\.pem: .*: check ca_file,"):
        Broker.load(path, "joulemark-top", None, None).client("x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ": mqtt: missing: add `mqtt: {host: broker.example.org}`"),
        ("mqtt: broker\n", ":4: mqtt: must be keys such as `{host: broker.example.org}`"),
        ("mqtt:\n  port: 1\n", ":5: mqtt.host: missing: add `host: broker.example.org`"),
        ("mqtt:\n  host: b\n  port: abc\n", ":6: mqtt.port: 'abc' is not a whole number from 1"),
        ("mqtt: {host: b, port: 70000}\n", ":4: mqtt.port: '70000' is not"),
        ("mqtt: {host: b, tls: maybe}\n", ":4: mqtt.tls: 'maybe' is not true or false"),
        ("mqtt: {host: b, prot: 1}\n", ":4: mqtt.prot: is not known; did you mean 'port'?"),
        ("mqtt: {host: b, ca_file: ca.pem}\n", ":4: mqtt.ca_file: 'ca.pem' is not an absolute"),
    ],
)
def test_error_in_the_broker_s_section_names_file_line_and_key(tmp_path, text, expected):
    path = tmp_path / "joulemark.yaml"
    path.write_text(GOOD + text)
    with pytest.raises(UserError) as caught:
        Broker.load(path, "n1", None, None)
    assert str(caught.value).startswith(f"{path}{expected}")


def test_missing_file_says_how_to_name_it(tmp_path):
    with pytest.raises(UserError, match="set JOULEMARK_CONFIG"):
        config.load(tmp_path / "none.yaml")


def test_file_is_found_as_documented(tmp_path, monkeypatch):
    monkeypatch.delenv("JOULEMARK_CONFIG", raising=False)
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    assert str(config.find()) == "/etc/slurm/joulemark.yaml"
    beside = tmp_path / "joulemark.yaml"
    beside.write_text(GOOD)
    assert config.find() == beside
    monkeypatch.setenv("JOULEMARK_CONFIG", "/elsewhere.yaml")
    assert str(config.find()) == "/elsewhere.yaml"


def test_each_place_without_the_file_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("JOULEMARK_CONFIG", raising=False)
    monkeypatch.setattr(config, "USUAL", tmp_path / "joulemark.yaml")
    beside = tmp_path / "conf-cache" / "joulemark.yaml"
    monkeypatch.setenv("SLURM_CONF", str(beside.with_name("slurm.conf")))
    named = f"{config.USUAL}: No such file or directory, nor is {beside} seen: set"
    with pytest.raises(UserError, match=re.escape(named)):
        config.load()


def test_what_cannot_be_looked_into_has_no_file(tmp_path, monkeypatch):
    """As a job's user, where slurmd's spool is root's alone."""
    monkeypatch.delenv("JOULEMARK_CONFIG", raising=False)
    monkeypatch.setenv("SLURM_CONF", f"/{'longer than a name may be' * 20}/slurm.conf")
    assert config.find() == config.USUAL


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("n1", "n1"),
        ("n1,n2", "n1 n2"),
        ("n[1-3]", "n1 n2 n3"),
        ("n[08-10,12],gpu4", "n08 n09 n10 n12 gpu4"),
        ("r[1-2]n[1-2]x", "r1n1x r1n2x r2n1x r2n2x"),
        ("n1,n[1-2]", "n1 n2"),
    ],
)
def test_node_lists_expand_as_slurm_writes_them(text, nodes):
    assert hostlist.expand(text) == nodes.split()


@pytest.mark.parametrize(
    "text", ["n[1-2", "n[a-b]", "n[]", "n1,,n2", ",", "n[2-1]", "n[0-65536]", "\udce9"]
)
def test_broken_node_list_is_an_error(text):
    with pytest.raises(UserError, match="--nodes"):
        hostlist.expand(text)


@pytest.mark.parametrize(
    "text",
    [
        "n[1-65536]m[1-65536]",
        "n[1-2]" * 60,
        "n[1-65536,1-65536]",
        "n[1-40000],m[1-40000]",
    ],
)
def test_more_nodes_than_slurm_can_have_are_not_counted_out(text):
    with pytest.raises(UserError, match="--nodes: more than 65536 nodes"):
        hostlist.expand(text)
    assert len(hostlist.expand("n[1-40000],n[30000-65536]")) == 65536
