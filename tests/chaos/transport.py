"""A broker and a receiver to be killed: one node's records go by MQTT, the other's by folder."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping

from tests.cluster import Cluster
from tests.cluster.config import service_user
from tests.peers.mosquitto import Broker
from tests.peers.peer import PATH, Peer
from tests.peers.receiver import Receiver

BY_FOLDER = "n1"


@contextlib.contextmanager
def transported(
    cluster: Cluster, skip: Callable[[str, str], None]
) -> Iterator[Mapping[str, Peer]]:
    """What can be killed of the way that the other nodes' records go."""
    if not shutil.which("mosquitto", path=PATH):
        skip("records by MQTT", "mosquitto is not installed")
        yield {}
        return
    assert cluster.options.build and cluster.options.build.bin
    receiver = [cluster.options.build.bin / "joulemark"]
    if os.geteuid() == 0:  # another user's wish to die with us is forgotten
        as_user = ["setpriv", f"--reuid={service_user()}", "--clear-groups", "--pdeathsig", "KILL"]
        receiver = [*as_user, *receiver]
    with Broker(cluster.state / "transport") as broker:
        mqtt = {"host": "localhost", "port": broker.port}
        daemon = {**cluster.options.daemon, "transport": "mqtt", "mqtt": mqtt}
        cluster.change(daemon=daemon, node_daemon={BY_FOLDER: {"transport": "directory"}})
        config = cluster.state / "etc" / "joulemark.yaml"
        with Receiver(config, cluster.state / "log", receiver) as receive:
            yield {"mosquitto": broker, "receive": receive}
