# Completion for zsh 5 and later.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import re

from joulemark.shell.tree import FILES, FOLDERS, Argument, Command

GROUP = """\
{name}() {{
    local line state
    local -a commands=({commands})
    _arguments -C {arguments} '1: :->command' '*:: :->words'
    case $state in
    command) _describe command commands ;;
    words)
        case $line[1] in
{cases}
        esac
        ;;
    esac
}}
"""
ONE = """\
{name}() {{
    _arguments {arguments}
}}
"""
ACTIONS = {FILES: "_files", FOLDERS: "_files -/"}


def script(root: Command) -> str:
    """The file's text: a function a command."""
    functions = "".join(map(_function, root.all()))
    return f'#compdef joulemark\n{functions}_joulemark "$@"\n'


def _function(command: Command) -> str:
    arguments = [spec for one in command.arguments for spec in _specs(one)]
    cases = (f"        {one.words[-1]}) {_name(one)} ;;" for one in command.below)
    described = (f"{one.words[-1]}:{_escaped(one.summary)}" for one in command.below)
    return (GROUP if command.below else ONE).format(
        name=_name(command),
        arguments=" ".join(map(_quoted, arguments)),
        commands=" ".join(map(_quoted, described)),
        cases="\n".join(cases),
    )


def _name(command: Command) -> str:
    return "_".join(("_joulemark", *command.words))


def _specs(one: Argument):
    """For _arguments: one a flag, or one for a positional."""
    action = ACTIONS.get(one.kind, " ")
    action = f"({' '.join(one.choices)})" if one.choices else action
    value = f":{_escaped(one.metavar)}:{action}"
    if not one.flags:
        yield ("*" if one.many else "") + value
    for flag in one.flags:
        takes = "" if not one.metavar else "=" if flag[:2] == "--" else "+"
        told = f"[{_escaped(one.help)}]" if one.help else ""
        more = f":*{value}" if one.many else value if one.metavar else ""
        others = f"({' '.join(one.flags)})" if len(one.flags) > 1 else ""
        yield f"{others}{flag}{takes}{told}{more}"


def _escaped(text: str) -> str:
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
