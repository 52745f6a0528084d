# Reads the keys of the site's joulemark.yaml that this command needs; joulemarkd checks the rest.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from joulemark.errors import UserError

NEEDED = {
    "cluster": "the ClusterName of slurm.conf",
    "record_dir": "the absolute path of the folder that joulemarkd writes its records to",
    "store": "the absolute path of the site's SQLite store",
}


@dataclass(frozen=True)
class Config:
    """What the Python command takes from the site's configuration."""

    cluster: str
    record_dir: Path
    store: Path


def find() -> Path:
    """$JOULEMARK_CONFIG, else joulemark.yaml beside slurm.conf, else /etc/slurm/joulemark.yaml."""
    named = os.environ.get("JOULEMARK_CONFIG")
    if named:
        return Path(named)
    slurm_conf = os.environ.get("SLURM_CONF")
    if slurm_conf:
        beside = Path(slurm_conf).parent / "joulemark.yaml"
        if beside.exists():
            return beside
    return Path("/etc/slurm/joulemark.yaml")


def load(path: Path | None = None) -> Config:
    """The checked configuration; raises UserError with file, line and key."""
    path = path or find()
    nodes = _top_level(path)
    values = {key: _scalar(path, nodes, key) for key in NEEDED}
    for key in ("record_dir", "store"):
        if not os.path.isabs(values[key]):
            line = nodes[key].start_mark.line + 1
            raise UserError(f"{path}:{line}: {key}: '{values[key]}' is not an absolute path")
    return Config(values["cluster"], Path(values["record_dir"]), Path(values["store"]))


def _top_level(path: Path) -> dict:
    """The file's top-level keys and their YAML nodes, which know their lines."""
    import yaml  # here, because --help and reports need no YAML

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(path.read_bytes(), Loader=loader)
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror}: set JOULEMARK_CONFIG to the site's joulemark.yaml"
        ) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or error
        raise UserError(f"{path}{line}: not YAML: {problem}") from None
    if not isinstance(root, yaml.MappingNode):
        raise UserError(f"{path}:1: expected `key: value` lines, such as `cluster: NAME`")
    return {key.value: value for key, value in root.value}


def _scalar(path: Path, nodes: dict, key: str) -> str:
    node = nodes.get(key)
    if node is None:
        raise UserError(f"{path}: {key}: missing: add {NEEDED[key]}")
    if not isinstance(node.value, str) or not node.value:
        line = node.start_mark.line + 1
        raise UserError(f"{path}:{line}: {key}: expected one text value, {NEEDED[key]}")
    return node.value
