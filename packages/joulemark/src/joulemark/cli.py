# The command line: finds the command's module, and imports only what the one that runs needs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import re
import sys
from types import ModuleType

from joulemark import __version__, commands
from joulemark.errors import UsageError, UserError

NO_VALUE = re.compile("--[a-z-]+=(--)?")  # -- Python would take for a list
EPILOG = """\
`joulemark COMMAND --help` says more, with examples.

Exit, of every command:
    0  done
    1  the work failed, or the answer is no: something is worse, over its budget, set up wrongly or
       not known; the command's own help says which
    2  wrong arguments or configuration
  130  ended by Ctrl-C
Three differ: `sacct` ends as Slurm's own does, `merge --ended` with 3 where it is to go on, and
`fs scan` with 3 where there is no new database.
"""


def main(argv: list[str] | None = None) -> int:
    """Runs one command; errors that a user can act on are one line on stderr."""
    argv = sys.argv[1:] if argv is None else argv
    if sys.stdout is None:  # its caller closed it: to write fails, and no file takes its number
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    try:
        try:
            return _dispatch(argv)
        finally:
            sys.stdout.flush()  # what is still held may fail, too
    except UserError as error:
        _tell(error)
        return error.exit_code
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _drop_output()
        return 1
    except OSError as error:
        _tell(error)
        _drop_output()
        return 1
    except KeyboardInterrupt:
        return 130


def _tell(error: Exception) -> None:
    from joulemark import output  # which --help need not load

    output.tell([error])


def _drop_output() -> None:
    """Else Python would try once more to write it, and complain, when it ends."""
    with contextlib.suppress(OSError):  # it is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(argv: list[str]) -> int:
    if argv and argv[0] in commands.COMMANDS:
        own_main = getattr(_load(commands, argv[0]), "main", None)
        if own_main:
            return own_main(argv[1:])
    _refuse_nothing(argv)
    options = parser(argv).parse_args(argv)
    if {"format", "out"} <= set(vars(options)):
        from joulemark import output

        output.settle_format(options)
    return options.run(options)


def _refuse_nothing(argv: list[str]) -> None:
    """Where a script's variable is not set: else a figure, a file or a filter is left out."""
    for before, word in zip(["", *argv], argv):
        if not word or NO_VALUE.fullmatch(word):
            said = word or f"{before} ''"
            raise UsageError(f"{said}: is no value: give one, or leave the option away")


class _Parser(argparse.ArgumentParser):
    def _print_message(self, message, file=None):
        """Python 3.12's own hides from the user that his disk is full."""
        if message:
            (file or sys.stderr).write(message)


def parser(argv: list[str]) -> argparse.ArgumentParser:
    """Knows the command that argv names, or, where it names none, all of them."""
    made = _Parser(
        prog="joulemark",
        description="What Slurm jobs cost in joules, with error bars.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action="version", version=f"joulemark {__version__}")
    _add_commands(made, commands, argv, "COMMAND")
    return made


def _add_commands(
    above: argparse.ArgumentParser, group: ModuleType, argv: list[str], metavar: str
) -> None:
    below = above.add_subparsers(metavar=metavar, required=True)
    named = [name for name in argv[:1] if name in group.COMMANDS]
    for name in named or group.COMMANDS:
        module = _load(group, name)
        made = below.add_parser(
            name,
            help=module.SUMMARY,
            description=f"{module.SUMMARY[0].upper()}{module.SUMMARY[1:]}.",
            epilog=getattr(module, "EPILOG", None),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if hasattr(module, "COMMANDS"):
            _add_commands(made, module, argv[1:], "KIND")
        elif hasattr(module, "add_arguments"):
            module.add_arguments(made)
            made.set_defaults(run=module.run)


def _load(group: ModuleType, name: str) -> ModuleType:
    return importlib.import_module(f"{group.__name__}.{name}")
