"""python3 -m tests.cluster up|down|remove|status|env|folder --state DIR"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.cluster import Build, Cluster, ClusterError, cache_folder, state_folder, stop_on_signals


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests.cluster", description="a Slurm cluster on one machine"
    )
    parser.add_argument("action", choices=["up", "down", "remove", "status", "env", "folder"])
    parser.add_argument("--state", type=Path, default=state_folder() / "demo", metavar="DIR")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--cpus", type=int, default=2, help="CPUs of each node")
    parser.add_argument("--plain", action="store_true", help="Slurm alone, without Joulemark")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="folder of build.env")
    args = parser.parse_args()
    stop_on_signals()
    try:
        return act(args)
    except ClusterError as error:
        print(f"tests.cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def act(args: argparse.Namespace) -> int:
    needs_build = args.action in ("up", "status") and not args.plain
    build = Build.load(args.cache) if needs_build else None
    cluster = Cluster(args.state, nodes=args.nodes, cpus=args.cpus, build=build)
    if args.action == "up":
        cluster.up()
        print(f"the cluster is up; to use it: source {args.state}/env.sh")
    elif args.action == "down":
        cluster.down()
    elif args.action == "remove":
        cluster.remove()
    elif args.action == "folder":
        print(state_folder())
    elif args.action == "env":
        print((args.state / "env.sh").read_text(), end="")
    else:
        status = cluster.status()
        for name, pid in status.items():
            print(f"{name:16} {pid or 'does not run'}")
        return 0 if all(status.values()) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
