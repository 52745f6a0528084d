# `joulemark export thicket`: its options; joulemark.bench.export.thicket does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands.report import sources

SUMMARY = "write benchmarks' results as .cali files for LLNL's Thicket"
EPILOG = """\
A folder of Caliper's .cali files, one for each run of a problem: a tree of the benchmark's
kernels, and what tells runs apart as metadata.

metrics, of one iteration, in SI units:
  time (s), time_spread_s (its standard deviation, k=1), operations, performance, energy_j,
  energy_uncertainty_j (k=2, the instrument's), power_w, efficiency (operations per joule),
  estimated (1: the energy is a model's, 0: it was measured), verified. Units of performance and
  efficiency, such as F/s and F/J, are performance_unit and efficiency_unit in the metadata. What
  is not known is NaN; a result that failed its verification has no figures and verified 0.

metadata, by Adiak's names where it has one:
  application_name, variant, problem_size, threads, jobsize (ranks), numhosts, hostname, cluster
  (the node's name without its number), target, cpu, device, jobid, launchdate (Unix seconds),
  energy_source (measured or estimated), options (the program's own, such as fill=0.15), and the
  manifest: version, compiler, flags, libraries, spack_spec, spack_hash, os_kernel, governor,
  pinning (core, NUMA node, none), slurm, instruments (which the joules come from).
  Thicket takes a text that reads as a number for one.

examples:
  joulemark export thicket --from results/ --out profiles
  python
  >>> from thicket import Thicket
  >>> profiles = Thicket.from_caliperreader("profiles")
  >>> profiles.groupby("variant")
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """From which results, and where to."""
    sources.add_all(parser)
    output.add_new_folder(parser)


def run(options: argparse.Namespace) -> int:
    """Writes the files."""
    from joulemark.bench.export import thicket

    output.write_folder(options.out, thicket.files(sources.measurements(options)))
    return 0
