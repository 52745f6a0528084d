# One HTML page that needs nothing else: its parts, and the text in them escaped.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import base64
import hashlib
import html
import re
from dataclasses import dataclass
from pathlib import Path

from joulemark import units
from joulemark.layout import Text

FOLDER = Path(__file__).parent
EXPONENTS = {name: exponent for exponent, name in units.PREFIXES.items()}
NUMBER = re.compile(r"~?(-?\d+(?:\.\d+)?)\*?(?: ± [\d.]+)?(?: ([^\s*]+).*)?")
UNIT = re.compile(r"\[(.+)\]")


@dataclass(frozen=True)
class Section:
    """A heading with its parts, which are HTML, and its notes, which are text."""

    name: str
    title: str
    parts: list[str]
    notes: list[str]


def escaped(text: object) -> str:
    """For an element or an attribute; half a character, which UTF-8 does not have, becomes `?`."""
    return html.escape(str(text).encode("utf-8", "replace").decode())


def table(text: Text) -> str:
    """A value's row and the rows of its errors are one tbody, which sorting keeps together."""
    units_of = [_unit(head) or _unit(text.title) for head in text.heads]
    values = [cells for kind, cells in text.body if kind == "value"]
    looks = [
        "" if any(map(NUMBER.fullmatch, column)) else ' class="word"' for column in zip(*values)
    ] or [""] * len(text.heads)
    heads = "".join(
        f'<th scope="col"{look}>{escaped(head)}</th>' for head, look in zip(text.heads, looks)
    )
    body = ""
    for kind, cells in text.body:
        begin = "</tbody>\n<tbody>" if kind != "error" and body else ""
        row = "".join(map(_cell, range(len(cells)), cells, units_of, looks))
        body += f'{begin}<tr class="{kind}">{row}</tr>'
    return (
        f'<div class="wide"><table><caption>{escaped(text.title)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(index: int, text: str, unit: str, look: str) -> str:
    value = sort_value(text, unit)
    said = look if value in (None, text) else f'{look} data-value="{value}"'
    if index == 0 and text:
        return f'<th scope="row"{said}>{escaped(text)}</th>'
    return f"<td{said}>{escaped(text)}</td>"


def _unit(head: str) -> str:
    found = UNIT.search(head)
    return found.group(1) if found else ""


def sort_value(cell: str, unit: str) -> str | None:
    """The number of a cell in its column's unit: `~37 mJ` in kJ is 3.7e-05; None: it has none."""
    found = NUMBER.fullmatch(cell)
    if not found:
        return None
    number, own = found.groups()
    factor = _factor(own, unit) if own else 1
    return number if factor == 1 else f"{float(number) * factor:.6g}"


def _factor(own: str, unit: str) -> float:
    for prefix, exponent in EXPONENTS.items():
        base = unit[len(prefix) :]
        if unit.startswith(prefix) and base and own.endswith(base):
            own_exponent = EXPONENTS.get(own[: -len(base)])
            if own_exponent is not None:
                return 10.0 ** (own_exponent - exponent)
    return 1


def document(title: str, about: str, sections: list[Section]) -> str:
    """The page. Its policy lets nothing be loaded, and no script run but its own."""
    style, script = ((FOLDER / f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"
    links = "".join(f'<a href="#{one.name}">{escaped(one.title)}</a>\n' for one in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escaped(title)}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{escaped(title)}</h1><p>{escaped(about)}</p><nav>{links}</nav></header>
<main>{"".join(map(_section, sections))}</main>
<script>{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _section(one: Section) -> str:
    notes = "".join(f"<li>{escaped(note)}</li>" for note in one.notes)
    listed = f'<ul class="notes">{notes}</ul>' if notes else ""
    parts = "\n".join(one.parts)
    return f'<section id="{one.name}"><h2>{escaped(one.title)}</h2>\n{parts}\n{listed}</section>\n'
