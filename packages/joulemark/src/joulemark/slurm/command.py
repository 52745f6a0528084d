# Runs one of Slurm's commands, and says what to do where it does not answer.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import secrets
import subprocess

from joulemark.errors import UserError

ANSWER_S = 60


def mark() -> str:
    """What is in no text of a user, who cannot foresee it: to tell fields or rows apart by."""
    return secrets.token_hex(8)


def answer(fix: str, program: str, *words: str) -> str:
    """What it prints; fix: what to do where it fails."""
    try:
        done = subprocess.run(
            [program, *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_S,
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"{program}: no answer in {ANSWER_S} s: {fix}") from None
    except OSError:
        raise UserError(f"{program}: not found on PATH: run this on slurmctld's machine") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise UserError(f"{program} {' '.join(words)}: {said}: {fix}")
    return done.stdout
