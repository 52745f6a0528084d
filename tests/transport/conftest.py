"""A file system of a test's own that it can fill and freeze."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.disks import fill


def run(*words: object) -> None:
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=60)
    if done.returncode:
        pytest.skip(f"{words[0]}: {done.stderr.strip()}: it takes root and loop devices")


class Disk:
    """A real ext4 in a file: `freeze` makes writers wait in the kernel, as a dead NFS would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "disk"
        self.image = folder / "image"
        self.frozen = False
        self.folder.mkdir()
        self.image.touch()
        os.truncate(self.image, 4 << 20)
        run("mkfs.ext4", "-q", "-O", "^has_journal", self.image)
        run("mount", "-o", "loop", self.image, self.folder)

    def freeze(self) -> None:
        run("fsfreeze", "--freeze", self.folder)
        self.frozen = True

    def thaw(self) -> None:
        if self.frozen:
            subprocess.run(["fsfreeze", "--unfreeze", self.folder], check=True)
            self.frozen = False

    def fill(self) -> Path:
        return fill(self.folder)

    def remove(self) -> None:
        self.thaw()
        subprocess.run(["umount", "--lazy", self.folder], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    made = Disk(tmp_path)
    yield made
    made.remove()
