"""Processes that tests talk to: real servers, simulators of meters, our own daemons."""

# SPDX-License-Identifier: Apache-2.0 OR MIT
