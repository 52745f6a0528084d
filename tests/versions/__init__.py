"""The same source with another release of Slurm, which `tests/slurm-versions` builds."""

# SPDX-License-Identifier: Apache-2.0 OR MIT
