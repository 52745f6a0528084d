# The site's configuration and Slurm's node lists: what is read, and what each error names.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import pytest
from joulemark import config, hostlist
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
        (GOOD.replace("store: /s.sqlite\n", ""), ": store: missing: add the site's store"),
        (GOOD.replace("demo", "[a, b]"), ":1: cluster: expected one text value"),
        (GOOD.replace("demo", ""), ":1: cluster: expected one text value"),
        (GOOD + "a: b: c\n", ":4: not YAML"),
        ("- 1\n", ":1: expected `key: value` lines"),
        ("", ":1: expected `key: value` lines"),
    ],
)
def test_error_names_file_line_and_key(tmp_path, text, expected):
    path = tmp_path / "joulemark.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        config.load(path)
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


@pytest.mark.parametrize("text", ["n[1-2", "n[a-b]", "n[]", "n1,,n2", ","])
def test_broken_node_list_is_an_error(text):
    with pytest.raises(UserError, match="--nodes"):
        hostlist.expand(text)
