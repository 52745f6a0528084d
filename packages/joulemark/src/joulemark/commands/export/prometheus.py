# `joulemark export prometheus`: its options; joulemark.accounting.prometheus does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output

SUMMARY = "write a text file for node_exporter's textfile collector"
EPILOG = """\
Sums over all ended jobs of the store, by cluster, user, account and partition: joulemark_jobs,
joulemark_energy_joules with joulemark_energy_uncertainty_joules (k=2), overhead, the joules, bytes
and operations of file servers (joulemark_storage_...), carbon, cost, and how many jobs are
estimated or incomplete; of how many jobs a sum is, joulemark_covered_jobs says, and of a
currency's joulemark_cost joulemark_cost_jobs; and by node joulemark_node_jobs,
joulemark_node_energy_joules with its uncertainty, joulemark_node_job_seconds, and of how many jobs
these two are, joulemark_node_covered_jobs. What is not known has no sample. The file is replaced
whole, so that the collector never reads half of it. Who is shown his own sums alone
(`joulemark report usage --help`) is refused: root, SlurmUser, an operator or the store's owner
exports them.

All are gauges: a correction, and a record or a user's name that comes late, can make a sum smaller
(`joulemark store prune` does not). Of a time they are what they were at its end less what they
were at its begin: joulemark_energy_joules - joulemark_energy_joules offset 1d. rate() and
increase() are of counters, and would count all anew after a refund. Grafana's dashboards, which
ask so, are in PREFIX/share/joulemark/grafana.

examples:
  joulemark export prometheus --out /var/lib/prometheus/node-exporter/joulemark.prom
  joulemark export prometheus | promtool check metrics
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where to."""
    output.add_out(parser, "--output")


def run(options: argparse.Namespace) -> int:
    """Writes all families."""
    import sys

    from joulemark import config, progress, store
    from joulemark.accounting import bynode, prometheus
    from joulemark.slurm import rights
    from joulemark.store.node_sums import node_uses
    from joulemark.store.sums import Chosen, uses

    site = config.load()
    rights.of_caller(site).refuse("usage", "sums for Prometheus")
    with progress.shown("summing jobs"), store.reading(site.store) as session:
        everything = Chosen()
        found = (
            uses(session, None, everything),
            bynode.by_node(node_uses(session, everything)),
        )
    if options.out is None:
        sys.stdout.writelines(prometheus.lines(*found))
        return 0
    with output.replaced(options.out) as file:
        file.writelines(prometheus.lines(*found))
    return 0
