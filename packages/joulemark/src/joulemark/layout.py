# Tables and notes for people, on a terminal or as Markdown.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace

from joulemark import output, progress, units

ESTIMATE_MARK = "~"
ESTIMATED = "energy ESTIMATED by a model, not measured"
LEGEND_ESTIMATED = f"{ESTIMATE_MARK}: {ESTIMATED}."
GAP = 2  # spaces between columns
WIDEST = 100_000  # characters of a table, which the terminal may break, but nothing cuts


def joules(energy_j: float, error_j: float, estimated: bool) -> str:
    """`1234.5 J +- 6.7 J`; an estimate has its mark and no digit that its error leaves unknown."""
    error = error_j if estimated else 0.0
    text = " +- ".join(f"{units.fixed(one, 1, error)} J" for one in (energy_j, error_j))
    return ESTIMATE_MARK + text if estimated else text


@dataclass(frozen=True)
class Text:
    """One table, ready to be laid out: a body row is (kind, cells), kind is value or error.

    optional: columns that a narrow terminal can do without, a value with its error, the first
    ones first.
    """

    title: str
    heads: list[str]
    body: list[tuple[str, list[str]]]
    optional: tuple[tuple[int, ...], ...] = ()

    def printable(self) -> Text:
        """Without what a terminal would obey."""
        heads, *body = (
            list(map(output.printable, cells))
            for cells in (self.heads, *(cells for _, cells in self.body))
        )
        kinds = (kind for kind, _ in self.body)
        title = output.printable(self.title)
        return replace(self, title=title, heads=heads, body=list(zip(kinds, body)))

    def fitted(self, width: int) -> tuple[Text, list[str]]:
        """Without as many of the optional columns as do not fit, and the names of these."""
        from rich.cells import cell_len

        columns = list(zip(self.heads, *(cells for _, cells in self.body)))
        widths = [max(map(cell_len, column)) + GAP for column in columns]
        left, dropped = list(range(len(columns))), []
        for group in self.optional:
            if sum(widths[index] for index in left) - GAP > width:
                left = [index for index in left if index not in group]
                dropped.append(self.heads[group[0]])

        def of(cells: list[str]) -> list[str]:
            return [cells[index] for index in left]

        body = [(kind, of(cells)) for kind, cells in self.body]
        return replace(self, heads=of(self.heads), body=body), dropped


def show(
    options,
    records: list[dict],
    tables: Iterable[Text],
    notes: list[str],
    columns: Iterable[str] = (),
    left_out: Iterable[str] = (),
) -> None:
    """Tables and notes for people or records for programs, as --format says, where --out says.

    columns: the records' keys, where they are known though there is no record.
    left_out: what is in no record, a note for people and on stderr beside what programs read.
    """
    show_each(options, records, [(tables, [*notes, *left_out])], columns)
    if options.format in output.FORMATS:
        output.tell(left_out)


def show_each(
    options,
    records: list[dict],
    answers: Iterable[tuple[Iterable[Text], list[str]]],
    columns: Iterable[str],
) -> None:
    """Likewise of several answers, each with tables and notes of its own; they are made only
    where they are shown, for they may be long."""
    if options.format in output.FORMATS:
        output.write([records], options.format, options.out, columns)
        return
    with progress.shown("laying tables out"):
        text = "\n".join(as_text(options, *one) for one in answers)
    output.write_text(text, options.out)


def as_text(options, tables: Iterable[Text], notes: list[str]) -> str:
    """For people, as --format and --out say."""
    if options.format == "markdown":
        return as_markdown(tables, notes)
    is_seen = options.out is None and sys.stdout.isatty()
    return as_terminal(tables, notes, to_terminal=is_seen)


def as_terminal(tables: Iterable[Text], notes: list[str], to_terminal: bool) -> str:
    """For eyes: aligned, error lines dim where the terminal can; no cell is ever cut.

    A terminal too narrow for a table is not shown its optional columns, and told so.
    """
    import shutil

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text as Styled

    width = shutil.get_terminal_size().columns if to_terminal else 132
    console = Console(
        file=io.StringIO(), force_terminal=to_terminal, width=WIDEST, highlight=False
    )
    for whole in (table.printable() for table in tables):
        text, dropped = whole.fitted(width) if to_terminal else (whole, [])
        console.print(Styled(text.title, style="bold"))
        table = Table(box=None, pad_edge=False)
        for index, head in enumerate(text.heads):
            justify = "left" if index == 0 else "right"
            table.add_column(Styled(head), justify=justify, no_wrap=True)
        for kind, cells in text.body:
            style = {"error": "dim", "failed": "red"}.get(kind)
            table.add_row(*map(Styled, cells), style=style)
        console.print(table)
        if dropped:
            console.print(Styled(f"Not shown for want of width: {', '.join(dropped)}."))
        console.print()
    console.width = width
    for note in notes:
        console.print(Styled(output.printable(note)))
    return console.file.getvalue()


def as_markdown(tables: Iterable[Text], notes: list[str]) -> str:
    """For documents."""
    parts = []
    for text in (table.printable() for table in tables):
        align = [":--"] + ["--:"] * (len(text.heads) - 1)
        lines = [text.heads, align, *(cells for _, cells in text.body)]
        table = "\n".join("| " + " | ".join(map(_escaped, line)) + " |" for line in lines)
        parts.append(f"**{_escaped(text.title)}**\n\n{table}\n")
    return "\n".join([*parts, *(f"{_escaped(output.printable(note))}\n" for note in notes)])


def _escaped(text: str) -> str:
    """A ~ pair would strike text out; a | would end the cell."""
    return text.replace("|", "\\|").replace("~", "\\~")
