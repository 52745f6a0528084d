# Sorts sacct's options: how to print is ours to do, all others go to sacct untouched.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The options of sacct 22.05 to 26.05. No release gives a name or letter of another one a second
meaning; an option that the site's sacct does not have yet it refuses itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from joulemark.errors import UserError

# name, or name/letter
_WITH_VALUE = """
    accounts/A associations/x autocomplete cluster/M clusters/M constraints/C delimiter endtime/E
    fields/o file/f flags/F format/o gid/g group/g jobs/j name ncpus/I nnodes/i nodelist/N
    partition/r qos/q reason/R starttime/S state/s timelimit-max/K timelimit-min/k uid/u units
    user/u wckeys/W"""
_ALONE = """
    allclusters/L allocations/X allusers/a array batch-script/B brief/b completion/c duplicates/D
    env-vars expand-patterns federation help/h help-fields/e helpformat/e helpreason helpstate
    local long/l noconvert noheader/n parsable/p parsable2/P truncate/T usage/U use-local-uid
    verbose/v version/V"""
_MAY_HAVE = "json whole-hetjob yaml"  # after `=`; json and yaml from 23.11 on
NEEDS_VALUE, ALONE, MAY_HAVE_VALUE = "needs a value", "alone", "may have a value"

LONG: dict[str, tuple[str, str]] = {}  # name: its letter or, where it has none, itself; its kind
SHORT = {"t": ("allocations", ALONE)}  # letter: the last of its names; its kind
for _kind, _words in ((NEEDS_VALUE, _WITH_VALUE), (ALONE, _ALONE), (MAY_HAVE_VALUE, _MAY_HAVE)):
    for _word in _words.split():
        _name, _, _letter = _word.partition("/")
        LONG[_name] = (_letter or _name, _kind)
        if _letter:
            SHORT[_letter] = (_name, _kind)

# What we print ourselves; all else is sacct's.
OURS = {"brief", "delimiter", "format", "help", "helpformat", "json", "long", "noheader"}
OURS |= {"parsable", "parsable2", "yaml"}


@dataclass
class SacctArgs:
    """What the user asked of sacct, taken apart."""

    given: list[tuple[str, list[str]]] = field(default_factory=list)  # sacct's: name, its words
    operands: list[str] = field(default_factory=list)  # sacct refuses them
    format: list[str] = field(default_factory=list)
    delimiter: str = "|"
    data_parser: str = ""  # of --json
    chosen: set[str] = field(default_factory=set)  # all options by name

    def passed(self, *more: str, but: str = "") -> list[str]:
        """sacct's options as they were typed, all or but one, with more."""
        words = [word for name, words in self.given if name != but for word in words]
        return [*words, *more, *(["--", *self.operands] if self.operands else [])]


def parse(argv: list[str]) -> SacctArgs:
    """Reads the command line as getopt_long does; what it does not know is sacct's to judge."""
    args = SacctArgs()
    words = iter(argv)
    for word in words:
        if word == "--":
            args.operands += words
        elif word.startswith("--"):
            _take(args, *_long(word, words))
        elif word.startswith("-") and len(word) > 1:
            for option in _short(word[1:], words):
                _take(args, *option)
        else:
            args.operands.append(word)
    return args


def names(text: str) -> list[str]:
    """A list of columns, as in --format and SACCT_FORMAT."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _value(words: Iterator[str], option: str) -> str:
    value = next(words, None)
    if value is None:
        raise UserError(f"sacct: {option}: it needs a value; see `joulemark sacct --help`")
    return value


def _long(word: str, words: Iterator[str]) -> tuple[str, str, list[str]]:
    """Name, value, and the words for sacct."""
    typed, equals, value = word[2:].partition("=")
    name = _full_name(typed)
    option, kind = LONG.get(name, (typed, MAY_HAVE_VALUE))
    if kind == NEEDS_VALUE and not equals:
        value = _value(words, word)
        word = f"{word}={value}"
    elif kind == ALONE and equals:  # sacct says so
        return word, "", [word]
    return SHORT[option][0] if option in SHORT else name, value, [word]


def _full_name(typed: str) -> str:
    """getopt takes any beginning of a long option for the whole, if only one option has it."""
    found = [name for name in LONG if name.startswith(typed)]
    same = len({LONG[name] for name in found}) == 1
    return found[0] if typed not in LONG and same else typed


def _short(letters: str, words: Iterator[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Of each letter likewise; behind one that needs a value all is its value."""
    for index, letter in enumerate(letters):
        name, kind = SHORT.get(letter, (letter, ALONE))
        if kind == NEEDS_VALUE:
            value = letters[index + 1 :] or _value(words, f"-{letter}")
            yield name, value, [f"-{letter}", value]
            return
        yield name, "", [f"-{letter}"]


def _take(args: SacctArgs, name: str, value: str, words: list[str]) -> None:
    args.chosen.add(name)
    if name == "format":
        args.format += names(value)
    elif name == "delimiter":
        args.delimiter = value
    elif name == "json":
        args.data_parser = value
    elif name in ("parsable", "parsable2"):  # the last one counts
        args.chosen -= {"parsable", "parsable2"} - {name}
    elif name not in OURS:
        args.given.append((name, words))
