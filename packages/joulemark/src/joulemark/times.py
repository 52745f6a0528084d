# Times as people and files write them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from datetime import datetime


def from_iso(text: str) -> datetime:
    """ISO 8601's; also with Z, which Python knows since 3.11. ValueError: it is none."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
