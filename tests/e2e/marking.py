"""What users' programs mark with, where users can read it: a checkout may be root's alone."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path

from tests.cluster import CHECKOUT, Cluster

SOURCE = CHECKOUT / "packages" / "joulemark" / "src" / "joulemark"

#: how a program of any language asks the daemon: one packet a question, over a SEQPACKET socket,
#: which its last argument names, or in a job without any the environment
CLIENT = """
import json, os, socket, sys, time

def connect():
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link.connect(sys.argv[-1] if sys.argv[1:] else os.environ["JOULEMARK_SOCKET"])
    link.settimeout(10)
    return link

def ask(link, text):
    link.send(text.encode())
    return link.recv(4096).decode()
"""


def folder(cluster: Cluster) -> Path:
    """For programs of any user; `from joulemark import region` works for those in it."""
    path = cluster.state / "scripts"
    package = path / "joulemark"
    package.mkdir(parents=True, exist_ok=True)
    for name in ("__init__.py", "regions.py"):
        shutil.copy(SOURCE / name, package / name)
        (package / name).chmod(0o644)
    for one in (path, package):
        one.chmod(0o755)
    return path


def python(cluster: Cluster, name: str, text: str) -> str:
    """The command that runs this Python program in a job."""
    path = folder(cluster) / f"{name}.py"
    path.write_text(textwrap.dedent(text))
    path.chmod(0o644)
    return f"{sys.executable} -B {path}"


def client(cluster: Cluster, name: str, text: str) -> str:
    """As `python`, for a program that begins with CLIENT."""
    return python(cluster, name, CLIENT + text)


def say_outside(cluster: Cluster, program: str, user: str | None) -> str:
    """What a client prints outside of any job, asking n1's daemon, whatever it may inherit."""
    words = [*program.split(), cluster.node("n1").socket]
    return cluster.run(words, user=user, env={"JOULEMARK_SOCKET": "/nowhere"})
