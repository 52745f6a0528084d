# Source this to talk to the cluster: sacct, sbatch, joulemark, joulemarkctl.
# SPDX-License-Identifier: Apache-2.0 OR MIT
export SLURM_CONF='$state/etc/slurm.conf'
export JOULEMARK_CONFIG='$state/etc/joulemark.yaml'
export JOULEMARK_MODULES='$modules'
export JOULEMARK_RESULTS='$state/results'
export PATH='$bin':'$prefix/bin':"$$PATH"
# how ranks of Open MPI meet whose nodes are one machine (OPEN_MPI in tests/cluster/config.py)
export $open_mpi
