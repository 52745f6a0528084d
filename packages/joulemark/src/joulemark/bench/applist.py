# The table of applications that `joulemark app list` prints.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import layout
from joulemark.bench import app


def write(options: argparse.Namespace) -> int:
    """`joulemark app list`."""
    if options.name:
        known = [app.find(options.name)]
    else:
        known = [app.load(path) for path in app.files().values()]
    records = [
        {
            "name": one.name,
            "program": one.program,
            "module": one.module,
            "spack": one.spack,
            "source": one.source,
            "phases": " ".join(phase.name for phase in one.phases),
            "settings": " ".join(f"{name}={value}" for name, value in one.settings.items()),
            "summary": one.summary,
        }
        for one in known
    ]
    heads = ["Name", "Spack", "Phases", "Settings"]
    body = [
        ("value", [one[key] for key in ("name", "spack", "phases", "settings")]) for one in records
    ]
    table = layout.Text("Applications", heads, body, optional=((2,), (1,)))
    notes = [f"{one['name']}: {one['summary']}." for one in records]
    layout.show(options, records, [table], notes)
    return 0
