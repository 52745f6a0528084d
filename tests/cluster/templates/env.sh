# Source this to talk to the cluster: sacct, sbatch, joulemark, joulemarkctl.
# SPDX-License-Identifier: Apache-2.0 OR MIT
export SLURM_CONF='$state/etc/slurm.conf'
export JOULEMARK_CONFIG='$state/etc/joulemark.yaml'
export JOULEMARK_MODULES='$modules'
export JOULEMARK_RESULTS='$state/results'
export PATH='$bin':'$prefix/bin':"$$PATH"
# the nodes are one machine: through shared memory Open MPI would take ranks of two for each other,
# and loopback, which it leaves out of TCP, may be the only interface; version 5
# reaches no rank of its own machine by another
export OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo
# by its other fence a rank may die in MPI_Init (Open MPI's issue 12495)
export SLURM_PMIX_FENCE=tree
