# What several commands take from their command lines.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse


def job_id(text: str) -> int:
    """A job's raw id."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"'{text}' is not a job's raw id such as 12")
    return int(text)
