# Completion for fish 3 and later.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from joulemark.shell.tree import FILES, FOLDERS, Argument, Command

HEAD = """\
# fish completion of joulemark
function __joulemark_in --description 'a command was typed, and maybe more'
    set -l words (commandline -opc)
    set -e words[1]
    for i in (seq (count $argv))
        test "$words[$i]" = $argv[$i]; or return 1
    end
end
function __joulemark_at --description 'just this group was typed'
    test (count (commandline -opc)) -eq (math (count $argv) + 1); and __joulemark_in $argv
end
complete -c joulemark -f
"""
VALUES = {FILES: "-r -F", FOLDERS: "-x -a '(__fish_complete_directories)'", "": "-x"}


def script(root: Command) -> str:
    """The file's text."""
    return HEAD + "".join(f"{line}\n" for one in root.all() for line in _lines(one))


def _lines(command: Command):
    words = " ".join(command.words)
    for below in command.below:
        at = f"-n '__joulemark_at {words}' -a {below.words[-1]}"
        yield f"complete -c joulemark {at} -d {_quoted(below.summary)}"
    group = "at" if command.below else "in"
    for one in command.arguments:
        if one.flags or one.kind == FILES:
            yield f"complete -c joulemark -n '__joulemark_{group} {words}' {_argument(one)}"


def _argument(one: Argument) -> str:
    if not one.flags:
        return "-F"
    names = " ".join(
        f"-l {flag[2:]}" if flag[:2] == "--" else f"-s {flag[1:]}" for flag in one.flags
    )
    value = VALUES[one.kind] if one.metavar else ""
    value = f"-x -a {_quoted(' '.join(one.choices))}" if one.choices else value
    told = f"-d {_quoted(one.help)}" if one.help else ""
    return " ".join(filter(None, (names, value, told)))


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
