# `joulemark trend`: its options; joulemark.bench.trend does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands.diff import add_threshold
from joulemark.commands.report import sources

SUMMARY = "tell a benchmark's results over the days, and whether the last got worse"
EPILOG = """\
From cooked files of many days, such as a nightly job leaves. Each problem and size has a table,
and each set of the program's own options that ran on its last day: a line a day and manifest, and
by which keys the manifest changed. Lines by other options are left out, but those of a release
that did not know one of them. The day is that of the run's start, else of the file, by the
`timezone:` of the site's joulemark.yaml, UTC without.

The last line is laid beside the median of all earlier ones: slower or faster, costlier or
thriftier, where it is farther off than one more day may be (by the scatter of the earlier days and
the last line's own; a single job has none, and scatters as the earlier days' jobs do), else `not
told apart`. That takes three earlier lines, of many sizes more: all of one call are tested
together by Holm's method, so that where nothing changed at most one night of 20 tells any apart
(see `joulemark diff --help`).

Of several manifests that ran on the last day, such as two compilers' builds, each has a table and
its verdict: by its own lines and those of earlier manifests that differ least from it; before it
has three, by those of the manifest that it is most like, too.

Energies that other instruments or channels measured than the last line's, or several of them
within one line, are another quantity: they are marked, and in no ratio. Of the same channels of
the same node the instrument's error drops out of the ratio, else it is in it, as in `joulemark
diff`. csv, json and parquet hold SI numbers, and the verdicts at each last line.

Exit: 0 nothing got worse; 1 a last line is slower or costlier, or its result is wrong where an
earlier one was right; 2 wrong arguments, or no results.

examples:
  joulemark trend mod2am --from nightly/
  joulemark trend triad --from nightly/ --threshold 2 --format csv --out triad.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which results, what counts, and how to print it."""
    sources.add_measured(parser)
    add_threshold(parser)
    output.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the days; 1 where the last of them got worse."""
    from joulemark import config, layout
    from joulemark.bench import cooked, trend

    zone, measured = config.zone(), cooked.load(options.sources)
    found = trend.find(measured, options.kernel, options.threshold, zone)
    layout.show(options, trend.records(found), map(trend.as_text, found), trend.notes(found, zone))
    return 1 if any(one.is_worse for one in found) else 0
