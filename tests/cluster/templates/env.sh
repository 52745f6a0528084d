# Source this to talk to the cluster: sacct, sbatch, joulemark.
# SPDX-License-Identifier: Apache-2.0 OR MIT
export SLURM_CONF='$state/etc/slurm.conf'
export JOULEMARK_CONFIG='$state/etc/joulemark.yaml'
export JOULEMARK_MODULES='$modules'
export PATH='$bin':"$$PATH"
