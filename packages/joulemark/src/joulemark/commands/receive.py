# `joulemark receive`: its options; joulemark.accounting.receive does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark.commands import arguments

SUMMARY = "take the records that nodes send over MQTT, and put them into record_dir"
EPILOG = """\
For sites whose configuration says `transport: mqtt`. Runs until it is stopped, on a machine that
has record_dir, as a user who may write there; `joulemark merge` finds the records as if the nodes
had written them. Nodes keep what has no receipt yet, so nothing is lost while this, the broker or
the network is away, and what comes twice counts once. Prints a line a record.

The broker is that of the configuration's `mqtt:`, where %n in a path is joulemark-receive for us,
so that one file serves the nodes, too. It must let us read TOPIC/CLUSTER/record/# and
TOPIC/CLUSTER/profile/#, and write TOPIC/CLUSTER/receipt/#. Let a node write under
TOPIC/CLUSTER/+/NODE alone: then no node can send another's records.

examples:
  joulemark receive
  joulemark receive --user receiver --password-file /etc/joulemark/receiver.secret
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Who we are to the broker."""
    arguments.add_broker(parser)


def run(options: argparse.Namespace) -> int:
    """Receives until it is stopped."""
    from joulemark.accounting import receive

    return receive.run(options.user, options.password_file)
