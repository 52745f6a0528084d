# Which job is meant by the name that a file system has for it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Lustre has a name of at most 31 bytes with each request. Our SPANK plugin makes it
CLUSTER.JOB.STEP, or JOB.STEP where that is too long, for clients with `jobid_var=session`; with
`jobid_var=SLURM_JOB_ID` it is the job's number, as each process says. A site's jobid_name, such as
`%j:%e:%u`, has either for its %j.

What has no session name is named by a jobid_name without %j, `%e.%u` by default: of a program that
its user names as he likes. So a number alone is a job's only where --names says so.

Source: lustre_get_jobid() of lustre/obdclass/jobid.c, lustre-release at c881f8e (2.17).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from joulemark.errors import UsageError

MOST = 31  # bytes of a name
STEP = "(?P<step>[0-9]+|batch|extern|interactive)"
JOB = "(?P<job>[0-9]+)"
NOBODY = ""


def reader(cluster: str, template: str | None, option: str = "--names") -> Callable[[str], str]:
    """From a name to JOB.STEP, JOB. where it does not tell the step, or NOBODY of this cluster's.

    template: the clients' jobid_name, or their mounts' place, with one %j; None: what our plugin
    makes, alone. option: that says the template.
    """
    is_long = len(f"{cluster}.4294967295.interactive") > MOST
    ours = rf"(?:{re.escape(cluster)}\.){'?' if is_long else ''}{JOB}\.{STEP}"
    pattern = re.compile(ours if template is None else _around(template, ours, option), re.S)

    def read(name: str) -> str:
        found = pattern.fullmatch(name)
        if not found:
            return NOBODY
        told = found.groupdict()
        return f"{told['job'] or told['number']}.{told['step'] or ''}"

    return read


def _around(template: str, ours: str, option: str) -> str:
    before, mark, after = template.partition("%j")
    if not mark or "%j" in after:
        raise UsageError(f"{option} {template}: must have %j, the job, once")
    number = "(?P<number>[0-9]+)"
    return f"{_any(before)}(?:{ours}|{number}){_any(after)}"


def _any(text: str) -> str:
    """What else Lustre fills in may be any text."""
    return ".*".join(map(re.escape, re.split("%.", text)))
