# Sorts sacct's options: how to print is ours to do, all others go to sacct untouched.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from dataclasses import dataclass, field

from joulemark.errors import UserError

SHORT_WITH_VALUE = set("ACEfgiIjkKMNoqrsSuWx")
_WITH_VALUE = """
    accounts associations cluster clusters delimiter endtime file format gid group jobs name
    ncpus nnodes nodelist partition qos starttime state timelimit-max timelimit-min uid units
    user wckeys"""
_ALONE = """
    allclusters allocations allusers array batch-script brief completion duplicates env-vars
    expand-patterns federation help helpformat json local long noconvert noheader parsable
    parsable2 truncate usage verbose version whole-hetjob yaml"""
LONG_WITH_VALUE = _WITH_VALUE.split()
LONG_ALONE = _ALONE.split()
# What we do ourselves, under one name for the short and the long spelling.
OURS = {
    "b": "brief",
    "B": "batch-script",
    "c": "completion",
    "e": "helpformat",
    "h": "help",
    "l": "long",
    "n": "noheader",
    "o": "format",
    "p": "parsable",
    "P": "parsable2",
    "V": "version",
}
OUR_NAMES = {*OURS.values(), "json", "yaml", "delimiter", "env-vars", "usage"}


@dataclass
class SacctArgs:
    """What the user asked of sacct, taken apart."""

    passed: list[str] = field(default_factory=list)  # goes to the real sacct as it is
    format: list[str] = field(default_factory=list)
    delimiter: str = "|"
    chosen: set[str] = field(default_factory=set)  # options of OUR_NAMES that take no value
    duplicates: bool = False  # goes to sacct too


def parse(argv: list[str]) -> SacctArgs:
    """Reads the command line as getopt_long does; what it does not know is sacct's to judge."""
    args = SacctArgs()
    words = iter(argv)
    for word in words:
        if word == "--":
            args.passed += [word, *words]
        elif word.startswith("--"):
            _long(args, word, words)
        elif word.startswith("-") and len(word) > 1:
            _short(args, word[1:], words)
        else:
            args.passed.append(word)
    return args


def _value(words, option: str) -> str:
    value = next(words, None)
    if value is None:
        raise UserError(f"sacct: {option}: it needs a value; see `joulemark sacct --help`")
    return value


def _long(args: SacctArgs, word: str, words) -> None:
    typed, equals, value = word[2:].partition("=")
    name = _full_name(typed)
    if name in LONG_WITH_VALUE and not equals:
        value = _value(words, word)
    args.duplicates |= name == "duplicates"
    if name in OUR_NAMES:
        _choose(args, name, value)
    elif name in LONG_WITH_VALUE:
        args.passed += [f"--{name}={value}"]
    else:
        args.passed.append(word)


def _full_name(typed: str) -> str:
    """getopt takes any unique beginning of a long option for the whole."""
    names = [*LONG_WITH_VALUE, *LONG_ALONE]
    found = [name for name in names if name.startswith(typed)]
    return found[0] if typed not in names and len(found) == 1 else typed


def _short(args: SacctArgs, letters: str, words) -> None:
    for index, letter in enumerate(letters):
        value = ""
        takes_value = letter in SHORT_WITH_VALUE
        if takes_value:
            value = letters[index + 1 :] or _value(words, f"-{letter}")
        args.duplicates |= letter == "D"
        if letter in OURS:
            _choose(args, OURS[letter], value)
        else:
            args.passed += [f"-{letter}", value] if takes_value else [f"-{letter}"]
        if takes_value:
            return


def _choose(args: SacctArgs, name: str, value: str) -> None:
    if name == "format":
        args.format += [part.strip() for part in value.split(",") if part.strip()]
    elif name == "delimiter":
        args.delimiter = value
    else:
        args.chosen.add(name)
