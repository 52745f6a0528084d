# Reads a YAML file's keys, each with an error that names the file, its line, the key and the fix.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import math
import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from joulemark.errors import UsageError

if TYPE_CHECKING:
    import yaml


class Keys:
    """Those of a mapping, by name."""

    def __init__(self, path: Path, root, known: Collection[str], prefix: str = ""):
        self._path, self._prefix, self._line = path, prefix, root.start_mark.line + 1
        self.nodes = {}
        for key, value in root.value:
            line = key.start_mark.line + 1
            if key.id != "scalar":
                raise UsageError(f"{path}:{line}: expected `key: value` lines, such as `cpus: 8`")
            if key.value in self.nodes:
                raise UsageError(f"{path}:{line}: {prefix}{key.value}: is given twice; remove one")
            self.nodes[key.value] = value
            if key.value not in known:
                import difflib  # here, because sound files need none

                close = difflib.get_close_matches(key.value, known, 1)
                fix = f"did you mean '{close[0]}'?" if close else "correct or remove it"
                raise self.wrong(key.value, f"is not known; {fix}")

    def text(self, key: str, what: str) -> str:
        """A needed text."""
        if key not in self.nodes:
            raise UsageError(f"{self._place()}: {self._prefix}{key}: missing: add {what}")
        return self.maybe(key, what)

    def maybe(self, key: str, what: str) -> str | None:
        """A text, None where the key is absent."""
        node = self.nodes.get(key)
        if node is None:
            return None
        if not isinstance(node.value, str) or not node.value:
            raise self.wrong(key, f"expected one text value, {what}")
        return node.value

    def maybe_path(self, key: str) -> Path | None:
        """An absolute path, None where the key is absent."""
        text = self.maybe(key, "an absolute path")
        return self.absolute(key, text) if text else None

    def number(self, key: str, what: str = "a number >= 0") -> float | None:
        """A number, None where the key is absent."""
        text = self.maybe(key, what)
        if text is None:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value >= 0):
            raise self.wrong(key, f"'{text}' is not {what}")
        return value

    def whole(self, key: str, least: int, most: int) -> int | None:
        """A whole number, None where the key is absent."""
        what = f"a whole number from {least} to {most}"
        text = self.maybe(key, what)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise self.wrong(key, f"'{text}' is not {what}")
        return int(text)

    def one_of(self, key: str, words: tuple[str, ...]) -> str:
        """One of the words, the first where the key is absent."""
        what = " or ".join(words)
        text = self.maybe(key, what) or words[0]
        if text not in words:
            raise self.wrong(key, f"'{text}' is not {what}")
        return text

    def flag(self, key: str) -> bool | None:
        """true or false, None where the key is absent."""
        text = self.maybe(key, "true or false")
        if text not in (None, "true", "false"):
            raise self.wrong(key, f"'{text}' is not true or false")
        return None if text is None else text == "true"

    def texts(self, key: str, what: str) -> dict[str, str]:
        """The names and texts of a mapping, none where the key is absent."""
        node = self.nodes.get(key)
        if node is None:
            return {}
        if node.id != "mapping":
            raise self.wrong(key, f"expected `name: value` lines, {what}")
        names = [name.value for name, _ in node.value if name.id == "scalar"]
        below = Keys(self._path, node, names, f"{self._prefix}{key}.")
        return {name: below.text(name, what) for name in below.nodes}

    def each_of(self, key: str, known: Collection[str], what: str) -> Keys | None:
        """The keys of a mapping, None where the key is absent."""
        node = self.nodes.get(key)
        if node is None:
            return None
        if node.id != "mapping":
            raise self.wrong(key, f"expected `key: value` lines of {what}")
        return Keys(self._path, node, known, f"{self._prefix}{key}.")

    def each(self, key: str, known: Collection[str], what: str) -> list[Keys]:
        """The mappings of a list, none where the key is absent."""
        node = self.nodes.get(key)
        if node is None:
            return []
        is_sound = node.id == "sequence" and all(one.id == "mapping" for one in node.value)
        if not is_sound:
            raise self.wrong(key, f"expected a list of {what}")
        prefix = f"{self._prefix}{key}."
        return [Keys(self._path, one, known, prefix) for one in node.value]

    def absolute(self, key: str, text: str) -> Path:
        """The text as a path."""
        if not os.path.isabs(text):
            raise self.wrong(key, f"'{text}' is not an absolute path")
        return Path(text)

    def wrong(self, key: str, problem: str) -> UsageError:
        """To be raised, of a key that is there."""
        line = self.nodes[key].start_mark.line + 1
        return UsageError(f"{self._path}:{line}: {self._prefix}{key}: {problem}")

    def _place(self) -> str:
        return f"{self._path}:{self._line}" if self._prefix else str(self._path)


def read(path: Path, example: str, missing: str) -> yaml.MappingNode:
    """The file's mapping; of one that cannot be read MISSING is the fix."""
    import yaml  # here, because --help and reports need no YAML

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    content = b""
    try:
        content = path.read_bytes()
        root = yaml.compose(content, Loader=loader)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}{missing}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{path}{_not_yaml(content, error)}") from None
    if not isinstance(root, yaml.MappingNode):
        raise UsageError(f"{path}:1: expected `key: value` lines, such as `{example}`")
    return root


def _not_yaml(content: bytes, error) -> str:
    """In which line, what, and how it is mended; YAML's reader tells of a character, no line."""
    fix = "correct the line"
    if mark := getattr(error, "problem_mark", None):
        fix += ": it is `key: value`, the value in quotes where it has a colon and a space"
        return f":{mark.line + 1}: not YAML: {error.problem}; {fix}"
    try:
        text = content.decode()
    except UnicodeDecodeError as wrong:
        line = content.count(b"\n", 0, wrong.start) + 1
        return f":{line}: byte 0x{content[wrong.start]:02x} is not UTF-8: save the file as UTF-8"
    line = text.count("\n", 0, text.find(chr(error.character))) + 1
    return f":{line}: not YAML: {error.reason} (0x{error.character:02x}); {fix}"
