"""Tests of the whole: real Slurm, real daemons, and energy that is known beforehand."""

# SPDX-License-Identifier: Apache-2.0 OR MIT
