# Reads a site's CSV file, which joulemark.yaml names: prices, carbon, budgets.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from joulemark.errors import UsageError


def rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Its lines with their numbers, but for empty ones and those that begin with #."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # spreadsheets mark UTF-8
            for number, row in enumerate(csv.reader(file), 1):
                if row and not row[0].lstrip().startswith("#"):
                    yield number, row
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}: it is named in joulemark.yaml") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: not a CSV file in UTF-8: {error}: save it as one") from None
