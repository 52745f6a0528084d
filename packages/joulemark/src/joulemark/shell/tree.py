# The commands with their options as plain data, from argparse's parsers.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from joulemark import cli
from joulemark.slurm import sacct, sacctargs

FILES, FOLDERS = "files", "folders"
KINDS = {"FILE": FILES, "PATH": FILES, "PROGRAM": FILES, "DIR": FOLDERS, "FOLDER": FOLDERS}


@dataclass(frozen=True)
class Argument:
    """An option, or, without flags, a positional."""

    flags: tuple[str, ...]
    metavar: str  # of its value; "": it takes none
    help: str
    choices: tuple[str, ...] = ()
    many: bool = False  # values, one after the other
    required: bool = False

    @property
    def kind(self) -> str:
        """What its value names: FILES, FOLDERS, or "" for what is not on a disk."""
        return KINDS.get(self.metavar, "")


@dataclass(frozen=True)
class Command:
    """One command, or a group of them, such as `report`."""

    words: tuple[str, ...]  # below `joulemark`
    summary: str
    arguments: tuple[Argument, ...]
    text: str  # what its help says below the options
    below: tuple[Command, ...] = ()

    @property
    def options(self) -> tuple[Argument, ...]:
        return tuple(one for one in self.arguments if one.flags)

    @property
    def positionals(self) -> tuple[Argument, ...]:
        return tuple(one for one in self.arguments if not one.flags)

    def all(self) -> Iterator[Command]:
        """Itself and those below it."""
        yield self
        for one in self.below:
            yield from one.all()


def read() -> Command:
    """All of `joulemark`."""
    return _of(cli.parser([]), (), "what Slurm jobs cost in joules, with error bars")


def _of(parser: argparse.ArgumentParser, words: tuple[str, ...], summary: str) -> Command:
    if words == ("sacct",):
        return _sacct(summary)
    groups = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    below = [
        _of(group.choices[listed.dest], (*words, listed.dest), listed.help)
        for group in groups
        for listed in group._choices_actions
    ]
    return Command(
        words=words,
        summary=summary,
        arguments=tuple(_argument(parser, one) for one in parser._actions if one not in groups),
        text=parser.epilog or "",
        below=tuple(below),
    )


def _argument(parser: argparse.ArgumentParser, one: argparse.Action) -> Argument:
    metavar = "" if one.nargs == 0 else one.metavar or one.dest.upper()
    return Argument(
        flags=tuple(one.option_strings),
        metavar=metavar,
        help=parser._get_formatter()._expand_help(one) if one.help else "",
        choices=tuple(one.choices or ()),
        many=one.nargs == "+",
        required=one.required,
    )


def _sacct(summary: str) -> Command:
    """It judges its options itself, for they are sacct's."""
    _, _, text = sacct.help_text().partition("\n")  # its usage
    options = [
        Argument((f"--{name}",), "VALUE" if kind == sacctargs.NEEDS_VALUE else "", "")
        for name, (_, kind) in sacctargs.LONG.items()
    ]
    return Command(("sacct",), summary, tuple(options), text)
