# A program's own options, `every=10 steps=10`: when they tell runs apart, and how a title says so.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Hashable, Iterable


def by_name(options: str) -> dict[str, str]:
    """Each one's value."""
    return dict(word.split("=", 1) for word in options.split())


def agree(one: str, other: str) -> bool:
    """Whether those that both tell are alike: an earlier release may not have known one."""
    ours, theirs = by_name(one), by_name(other)
    return all(ours[name] == theirs[name] for name in ours.keys() & theirs.keys())


def beside(told: str, others: Iterable[str]) -> str | None:
    """Those among others that stand beside these: the same, or the only ones that agree with them;
    None: nobody knows which."""
    agreeing = [other for other in others if agree(told, other)]
    if told in agreeing:
        return told
    return agreeing[0] if len(agreeing) == 1 else None


def labels(runs: Iterable[tuple[Hashable, str]]) -> dict[str, str]:
    """To which of one problem's tables runs with these options belong; a run: its line in a table,
    and its options.

    Of those that no line has several of nothing is told: one that goes with the size, as mod2as's
    fill may, makes a table no other one. Else each value has a table, `fill=0.15`, those at most
    lines first, until what is left is one table again, `fill by size`."""
    at: dict[Hashable, set[str]] = {}
    for line, options in runs:
        at.setdefault(line, set()).add(options)
    varied = set().union(*(_differing(several) for several in at.values()))
    own = {one: _of_names(one, varied) for several in at.values() for one in several}
    lines: dict[str, set[Hashable]] = {}
    for line, several in at.items():
        for one in several:
            lines.setdefault(own[one], set()).add(line)
    left = dict(sorted(lines.items(), key=lambda item: (-len(item[1]), item[0])))
    for label in list(left):
        if sum(map(len, left.values())) == len(set().union(*left.values())):
            break
        del left[label]
    told = _by_size(left)
    return {one: told if label in left else label for one, label in own.items()}


def _differing(several: Iterable[str]) -> set[str]:
    words = [set(one.split()) for one in several]
    unlike = set.union(*words) - set.intersection(*words)
    return {word.partition("=")[0] for word in unlike}


def _of_names(options: str, names: set[str]) -> str:
    return " ".join(word for word in options.split() if word.partition("=")[0] in names)


def _by_size(several: Iterable[str]) -> str:
    """Of one alone: itself."""
    differing = _differing(several)
    words = set().union(*(one.split() for one in several))
    same = sorted(word for word in words if word.partition("=")[0] not in differing)
    return " ".join([*same, *(f"{name} by size" for name in sorted(differing))])
