# What stands beside Slurm's own commands.
# SPDX-License-Identifier: Apache-2.0 OR MIT
