# Which job is meant by the name that a file system has for it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Lustre has a name of at most 31 bytes with each request, as its clients say by jobid_var and
jobid_name: CLUSTER.JOB.STEP where our SPANK plugin says it, JOB.STEP where that is too long; JOB
by `jobid_var=SLURM_JOB_ID` alone; what it makes of a site's own jobid_name such as `%j:%e:%u`.

Source: Lustre's manual, 12.2 "Lustre Jobstats", on the escapes of jobid_name.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from joulemark.errors import UsageError

OURS = ("%c.%j.%s", "%j.%s", "%j")  # a long cluster's name does not fit
STEP = r"\d+|batch|extern|interactive"
ESCAPES = {
    **{"c": "(?P<cluster>.+)", "j": r"(?P<job>\d+)", "s": f"(?P<step>{STEP})"},
    **dict.fromkeys("eghHpu", ".*"),
    "%": "%",
}
NOBODY = ""


def reader(cluster: str, template: str | None) -> Callable[[str], str]:
    """From a name to JOB.STEP, JOB. where it does not tell the step, or NOBODY of this cluster's.

    template: the clients' jobid_name, with %c and %s as ours has them; None: OURS.
    """
    patterns = [_pattern(one) for one in ([template] if template else OURS)]

    def read(name: str) -> str:
        for pattern in patterns:
            found = pattern.fullmatch(name)
            if found and found.groupdict().get("cluster", cluster) == cluster:
                return f"{found['job']}.{found.groupdict().get('step', '')}"
        return NOBODY

    return read


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split("%(.?)", template)
    for escape in parts[1::2]:
        if escape not in ESCAPES or not escape:
            known = ", ".join(f"%{one}" for one in ESCAPES)
            raise UsageError(f"--names {template}: %{escape} is not known: of {known}")
    if parts[1::2].count("j") != 1:
        raise UsageError(f"--names {template}: must have %j, the job's number, once")
    texts = [ESCAPES[part] if number % 2 else re.escape(part) for number, part in enumerate(parts)]
    try:
        return re.compile("".join(texts), re.S)
    except re.error:  # a group twice
        raise UsageError(f"--names {template}: has %c or %s twice; say each once") from None
