"""Instruments against real peers: the protocol's own servers, and trees of real machines."""

# SPDX-License-Identifier: Apache-2.0 OR MIT
