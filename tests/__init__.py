# Tests of the whole: a real Slurm cluster, the demo that uses it, and what runs every test.
# SPDX-License-Identifier: Apache-2.0 OR MIT
