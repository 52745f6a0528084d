# Manual pages: one a command, from what its --help says.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import re
from collections.abc import Iterator

from joulemark import __version__
from joulemark.shell.tree import Argument, Command


def pages(root: Command) -> dict[str, str]:
    """Each page's text by the name of its file."""
    return {f"{_name(one)}.1": "".join(f"{line}\n" for line in _lines(one)) for one in root.all()}


def _name(command: Command) -> str:
    return "-".join(("joulemark", *command.words))


def _lines(command: Command) -> Iterator[str]:
    name = _name(command)
    yield f'.TH {_escaped(name.upper())} 1 "" "joulemark {__version__}" "Joulemark"'
    yield ".SH NAME"
    yield f"{_escaped(name)} \\- {_escaped(command.summary)}"
    yield ".SH SYNOPSIS"
    yield f".B {_escaped(_synopsis(command))}"
    text, _, examples = command.text.partition("examples:\n")
    if text.strip():
        yield ".SH DESCRIPTION"
        for number, part in enumerate(re.split(r"\n\n+", text.strip("\n"))):
            yield from [".PP"] if number else []
            yield from _as_it_is(part) if re.search("^ ", part, re.MULTILINE) else _filled(part)
    yield from _listed("ARGUMENTS", [(one.metavar, one) for one in command.positionals])
    yield from _listed("OPTIONS", [(_flags(one), one) for one in command.options])
    if command.below:
        yield ".SH COMMANDS"
        for one in command.below:
            yield from (".TP", f".B {_escaped(_name(one))}(1)", _escaped(one.summary))
    if examples:
        yield ".SH EXAMPLES"
        yield from _as_it_is(examples.rstrip())
    if command.words:
        yield from (".SH SEE ALSO", f"{_escaped('-'.join(('joulemark', *command.words[:-1])))}(1)")


def _synopsis(command: Command) -> str:
    required = [f"{one.flags[0]} {one.metavar}" for one in command.options if one.required]
    values = [one.metavar + " ..." * one.many for one in command.positionals]
    below = ["COMMAND ..."] if command.below else []
    return " ".join(["joulemark", *command.words, *required, "[OPTION ...]", *values, *below])


def _listed(heading: str, arguments: list[tuple[str, Argument]]) -> Iterator[str]:
    """sacct's are told in its text."""
    told = [(head, one) for head, one in arguments if one.help]
    if told:
        yield f".SH {heading}"
    for head, one in told:
        yield from (".TP", f".B {_escaped(head)}", _escaped(one.help))


def _flags(one: Argument) -> str:
    value = "{" + ",".join(one.choices) + "}" if one.choices else one.metavar
    return f"{', '.join(one.flags)} {value}".rstrip()


def _filled(text: str) -> list[str]:
    return [_escaped(line) for line in text.split("\n")]


def _as_it_is(text: str) -> list[str]:
    return [".nf", *_filled(text.rstrip("\n")), ".fi"]


def _escaped(text: str) -> str:
    """roff's own characters; a line may begin with none that makes it a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text[:1] in ("'", ".") else text
