# Reads a site's CSV file, which joulemark.yaml names: prices, carbon, budgets.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from joulemark.errors import UsageError

FIX = "save the file as CSV in UTF-8"


def rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Its rows, each with the number of the line where it ends, but for empty ones and those that
    begin with #."""
    try:
        # Spreadsheets mark UTF-8; of a byte that is none the line is to be told.
        with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            reader = csv.reader(file)
            for row in reader:
                ",".join(row).encode()
                if row and not row[0].lstrip().startswith("#"):
                    yield reader.line_num, row
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}: it is named in joulemark.yaml") from None
    except UnicodeEncodeError as error:
        byte = ord(error.object[error.start]) - 0xDC00
        why = f"byte 0x{byte:02x} is not UTF-8: {FIX}"
        raise UsageError(f"{path}:{reader.line_num}: {why}") from None
    except csv.Error as error:
        raise UsageError(f"{path}:{reader.line_num}: not CSV: {error}: {FIX}") from None
