# The configured instruments, as joulemarkd itself has them and reads them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from joulemark import config
from joulemark.errors import UsageError, UserError

SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
WRONG_ARGUMENTS, BAD_CONFIG = 2, 78  # joulemarkd's exit codes
DESCRIBE_S = 60  # no instrument touches its network to be described


def describe(daemon: str | None, node: str | None) -> list[dict]:
    """Each line of `joulemarkd --describe`: all channels of the configuration."""
    words = command(daemon, node, "--describe")
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=DESCRIBE_S)
    except OSError as error:
        raise UsageError(f"{words[0]}: {error}: name another one with --daemon") from None
    except subprocess.TimeoutExpired as error:
        raise UserError(f"{error}: try again") from None
    print(done.stderr, end="", file=sys.stderr)
    if done.returncode not in (0, 1):
        kind = UsageError if done.returncode in (WRONG_ARGUMENTS, BAD_CONFIG) else UserError
        raise kind(f"{words[0]} --describe: it failed (exit {done.returncode}); see above")
    try:
        found = [json.loads(line) for line in done.stdout.splitlines()]
        _ = [one["outermost"] for one in found]
    except (ValueError, TypeError, KeyError):
        why = "does not answer --describe as joulemarkd does: name joulemarkd with --daemon"
        raise UsageError(f"{words[0]}: {why}") from None
    return found


def command(daemon: str | None, node: str | None, *options: str) -> list[str]:
    """joulemarkd's words for this configuration."""
    of_node = ["-N", node] if node else []
    return [_daemon(daemon), *of_node, "-c", str(config.find()), *options]


def _daemon(given: str | None) -> str:
    own = Path(sys.argv[0]).resolve()
    client = Path(shutil.which("joulemarkctl") or own).resolve()  # of the daemon's package
    beside = [str(own.parent), *(f"{program.parents[1]}/sbin" for program in (own, client))]
    path = os.pathsep.join([os.environ.get("PATH", ""), *beside, SBIN])
    found = given or os.environ.get("JOULEMARKD") or shutil.which("joulemarkd", path=path)
    if not found:
        raise UsageError("joulemarkd: not in PATH: name it with --daemon")
    return found
