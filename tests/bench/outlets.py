# Many outlets of real SNMP agents, and the joulemarkd that reads them: for `snmp` and `gateway`.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import os
import shutil
from contextlib import ExitStack
from pathlib import Path

from tests.bench.figures import bring_build_up_to_date, make_parser
from tests.peers.agent import Agent
from tests.peers.peer import PATH

POWER = ".1.3.6.1.4.1.318.1.1.26.9.4.3.1.7"  # rPDU2OutletMeteredStatusPower


def make_ready() -> None:
    """Builds joulemarkd where $JOULEMARKD names none; ends the program where a part is missing."""
    if "JOULEMARKD" not in os.environ:
        bring_build_up_to_date()
    if not shutil.which("snmpd", path=PATH):
        raise SystemExit("bench: snmpd is not installed: apt-get install snmpd")


def make_agents_parser(text: str) -> argparse.ArgumentParser:
    parser = make_parser(text)
    parser.add_argument("--agents", type=int, default=40)
    parser.add_argument("--outlets", type=int, default=25, help="of each agent (default: 25)")
    return parser


def run_agents(stack: ExitStack, folder: Path, count: int, outlets: int) -> list[Agent]:
    agents = [Agent(folder / f"agent-{i}", [POWER]) for i in range(count)]
    for i, agent in enumerate(agents):
        agent.set({f"{POWER}.{o}": ("gauge", 100 + i + o) for o in range(1, outlets + 1)})
        stack.enter_context(agent)
    return agents
