"""A real Slurm cluster on one machine, without systemd, for `make demo` and the tests.

    cluster = Cluster(Path("/var/tmp/x/test"), build=Build.load(cache))
    cluster.up()      # munged, MariaDB, slurmdbd, slurmctld, and per node joulemarkd and slurmd
    job = cluster.sbatch("--wrap", "sleep 1")
    row = cluster.wait_job(job)  # {"State": "COMPLETED", "ConsumedEnergyRaw": "123", ...}
    cluster.node("n1").daemon.kill(9)
    cluster.up()      # starts what is dead
    cluster.down()

Standard library only: it runs before the tests' virtual environment exists.
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from tests.cluster import processes
from tests.cluster.child import end_children, one_at_a_time, run_child, stop_on_signals
from tests.cluster.cluster import Cluster, Node
from tests.cluster.config import machine_instruments
from tests.cluster.errors import ClusterError, Waited
from tests.cluster.place import (
    BUILD_LIMIT_S,
    CHECKOUT,
    ORDINARY_USER,
    Build,
    cache_folder,
    exclusive,
    state_folder,
)
from tests.cluster.service import Service
from tests.cluster.waiting import PATIENCE_S, meanwhile, pause, wait_for

__all__ = [
    "BUILD_LIMIT_S",
    "CHECKOUT",
    "ORDINARY_USER",
    "PATIENCE_S",
    "Build",
    "Cluster",
    "ClusterError",
    "Node",
    "Service",
    "Waited",
    "cache_folder",
    "end_children",
    "exclusive",
    "machine_instruments",
    "meanwhile",
    "one_at_a_time",
    "pause",
    "processes",
    "run_child",
    "state_folder",
    "stop_on_signals",
    "wait_for",
]
