# `joulemark export reframe`: its options; joulemark.bench.export.reframe does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands.report import sources

SUMMARY = "write benchmarks' results as a session of ReFrame's"
EPILOG = """\
ReFrame's run report (JSON, data version 4.2), or with --database a session in its database of
results, which is made where there is none, and whose id is printed. The same results are the same
session, which is there once.

Each run is a test, such as `mod2am %kernel=mod2am %variant=blas %size=1000 %threads=2 %ranks=1
%nodes=1`, and the program's own options (`%fill=0.15`); its system is the node's name without its
number, its partition the target, its environment the compiler, and its time of completion that of
its begin. Performance variables, of one iteration, in SI units: time_s, time_spread_s (k=1),
operations, performance, energy_j, energy_uncertainty_j (k=2, the instrument's), power_w,
efficiency (operations per joule). Their units are F/s, J, F/J, ...; `J (estimated)` is a model's,
never averaged or compared with what was measured. The manifest's keys, energy_source, cpu and
device are attributes to group and filter by. A result that failed its verification is a test that
failed in its sanity phase, without figures.

examples:
  joulemark export reframe --from results/ --out report.json
  joulemark export reframe --from results/ --database results.db
  RFM_ENABLE_RESULTS_STORAGE=1 RFM_SQLITE_DB_FILE=results.db reframe --list-stored-sessions
  ... reframe --performance-compare=ID_BEFORE/ID_AFTER/mean:/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """From which results, and where to."""
    sources.add_all(parser)
    where = parser.add_mutually_exclusive_group()
    output.add_out(where)
    where.add_argument("--database", metavar="FILE", help="add the session to ReFrame's database")


def run(options: argparse.Namespace) -> int:
    """Writes the report, or adds the session."""
    import json

    from joulemark.bench.export import reframe

    session = reframe.report(sources.measurements(options))
    if options.database is None:
        output.write_text(json.dumps(session, indent=2) + "\n", options.out)
    else:
        reframe.store(session, options.database)
        print(session["session_info"]["uuid"])
    return 0
