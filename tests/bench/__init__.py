"""Benchmarks: what Joulemark costs, and how exact it is."""

# SPDX-License-Identifier: Apache-2.0 OR MIT
