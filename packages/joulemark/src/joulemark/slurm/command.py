# Runs one of Slurm's commands, and says what to do where it does not answer.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import secrets
import subprocess

from joulemark import progress
from joulemark.errors import UserError

ANSWER_S = 60


def mark() -> str:
    """What is in no text of a user, who cannot foresee it: to tell fields or rows apart by."""
    return secrets.token_hex(8)


def split_rows(text: str, mark: str, count: int) -> list[list[str]]:
    """sacct's rows of so many fields with a mark between them; one may hold newlines, as a comment
    does, the last never."""
    rows, held = [], ""
    for line in text.splitlines(keepends=True):
        held += line
        if held.count(mark) >= count - 1:
            rows.append(held.rstrip("\n").split(mark))
            held = ""
    return rows


def run(
    fix: str, *words: str, env: dict[str, str] | None = None, limit_s: float | None = None
) -> subprocess.CompletedProcess[str]:
    """One that has ended; UserError where there is none, or fix where it does not end in time."""
    limit_s = limit_s or ANSWER_S
    try:
        with progress.shown("asking Slurm"):
            return subprocess.run(
                words,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                env=env,
                timeout=limit_s,
            )
    except subprocess.TimeoutExpired:
        raise UserError(f"{words[0]}: no answer in {limit_s:g} s: {fix}") from None
    except FileNotFoundError:
        raise UserError(f"{words[0]}: not found on PATH: install Slurm's commands") from None
    except OSError as error:
        raise UserError(f"{words[0]}: {error.strerror}") from None


def answer(fix: str, *words: str) -> str:
    """What it prints; fix: what to do where it fails."""
    done = run(fix, *words)
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise UserError(f"{' '.join(words)}: {said}: {fix}")
    return done.stdout
