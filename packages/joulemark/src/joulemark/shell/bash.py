# Completion for bash 4.4 and later, with or without the package bash-completion.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from joulemark.shell.tree import FILES, FOLDERS, Command

SCRIPT = r"""# bash completion of joulemark
_joulemark() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} command= i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$command/${{COMP_WORDS[i]}}" in
        {commands}) command+=/${{COMP_WORDS[i]}} ;;
        esac
    done
    if [[ $cur == = ]]; then # --option= is two words to bash
        cur=
    elif [[ $prev == = ]]; then
        prev=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    local words= paths=
    case "$command $prev" in
{values}
    *)
        case $command in
{defaults}
        esac
        ;;
    esac
    COMPREPLY=()
    if [[ $paths && $cur != -* ]]; then
        compopt -o filenames 2> /dev/null
        mapfile -t COMPREPLY < <(compgen -A "$paths" -- "$cur")
    else
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    fi
}}
complete -F _joulemark joulemark
"""
ACTIONS = {FILES: "file", FOLDERS: "directory"}


def script(root: Command) -> str:
    """The file's text; what it completes is in the order of help."""
    commands = [one for one in root.all() if one.words]
    values: dict[str, list[str]] = {}  # patterns by what they lead to
    for one in root.all():
        for option in one.options:
            patterns = [f'"{_path(one)} {flag}"' for flag in option.flags if option.metavar]
            values.setdefault(_assigned(option.choices, option.kind), []).extend(patterns)
    return SCRIPT.format(
        commands=" | ".join(_path(one) for one in commands),
        values="\n".join(
            f"    {' | '.join(patterns)}) {found} ;;" for found, patterns in values.items()
        ),
        defaults="\n".join(f'        "{_path(one)}") {_default(one)} ;;' for one in root.all()),
    )


def _path(command: Command) -> str:
    return "".join(f"/{word}" for word in command.words)


def _default(command: Command) -> str:
    """Where no option waits for its value."""
    flags = [flag for option in command.options for flag in option.flags]
    several = [*command.positionals, *(option for option in command.options if option.many)]
    kind = next((one.kind for one in several if one.kind), "")
    names = [below.words[-1] for below in command.below]
    return _assigned([*names, *flags], kind)


def _assigned(words, kind: str) -> str:
    found = [f"words='{' '.join(words)}'"] if words else []
    found += [f"paths={ACTIONS[kind]}"] if kind else []
    return " ".join(found) or ":"
