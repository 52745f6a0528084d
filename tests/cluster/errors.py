"""What can go wrong with the cluster, in words for the person at the terminal."""

# SPDX-License-Identifier: Apache-2.0 OR MIT


class ClusterError(RuntimeError):
    """A service or command failed; the message says which, why, and which log tells more."""


class Waited(ClusterError):
    """A condition did not come true in time."""
