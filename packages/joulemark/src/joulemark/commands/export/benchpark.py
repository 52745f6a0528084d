# `joulemark export benchpark`: its options; joulemark.bench.export.benchpark does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands.report import sources

SUMMARY = "write benchmarks' results as workspaces of Benchpark and its Ramble"
EPILOG = """\
A folder of workspaces, BENCHMARK/VARIANT-threadsN/SCALING-.../CLUSTER, each with
experiments/.../NAME.cali, which `benchpark analyze` and `benchpark query` read, and with
results.latest.json, the figures of merit as Ramble writes them. A workspace is one study: one
version, manifest and set of options of one benchmark; runs with estimated joules are another. A
problem that ran again is an experiment of its own, NAME-2; `benchpark analyze` draws these as
lines (--chart-kind line), not as an area, and `ramble results report` has to be told which
(--pandas-where 'jobid == "12"'), as of a benchmark of several kernels, its contexts ('context ==
"triad"').

Metrics and metadata are those of `joulemark export thicket`, with the time as Caliper's
`Avg time/rank (exc)`, `Calls/rank (max)` 1, because all is of one iteration, and Benchpark's own
names in the metadata (n_nodes, n_resources, total_problem_size, ...). Figures of merit have their
SI units; `J (estimated)` is a model's. An experiment in which a result failed its verification is
FAILED; the result has no figures.

--scaling: throughput  the same ranks and nodes, the size varies (default)
           strong      the same size, ranks and nodes vary
           weak        ranks and nodes vary, and the size with them, so that a rank's part of the
                       memory stays the same: by the ranks (jm-stream, mod2f), their fourth root
                       (qcd), else their square root, rounded as job-templates/scaling.sbatch
                       does
process_problem_size is the size that one rank alone would have by that rule.

examples:
  joulemark export benchpark --from results/ --out study
  benchpark analyze --workspace-dir study/mod2am/blas-threads2/throughput-nodes1-ranks1/n \\
      --yaxis-metric energy_j --chart-kind line
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """From which results, what varies in a workspace, and where to."""
    sources.add_all(parser)
    parser.add_argument(
        "--scaling",
        choices=("throughput", "strong", "weak"),
        default="throughput",
        help="what a workspace varies (default: throughput)",
    )
    output.add_new_folder(parser)


def run(options: argparse.Namespace) -> int:
    """Writes the workspaces."""
    from joulemark.bench.export import benchpark

    found = sources.measurements(options)
    output.write_folder(options.out, benchpark.files(found, options.scaling))
    return 0
