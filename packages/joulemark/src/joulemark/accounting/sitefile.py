# Reads a site's CSV file, which joulemark.yaml names: prices, carbon, budgets.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from joulemark.errors import UsageError


def rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Its lines with their numbers, but for empty ones and those that begin with #."""
    line = 0
    try:
        # Spreadsheets mark UTF-8; of a byte that is none the line is to be told.
        with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            for line, row in enumerate(csv.reader(file), 1):
                ",".join(row).encode()
                if row and not row[0].lstrip().startswith("#"):
                    yield line, row
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}: it is named in joulemark.yaml") from None
    except UnicodeEncodeError as error:
        byte = ord(error.object[error.start]) - 0xDC00
        why = f"byte 0x{byte:02x} is not UTF-8: save the file as CSV in UTF-8"
        raise UsageError(f"{path}:{line}: {why}") from None
    except csv.Error as error:
        raise UsageError(f"{path}:{line + 1}: not CSV: {error}: save the file as CSV") from None
