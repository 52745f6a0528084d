# Random trees, how they change, and what they are by os.walk: what a scan must find.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
import random
import shutil
import socket
import stat

#: of an object, as the database has them
COLUMNS = (
    *("ino", "mode", "nlink", "size", "blocks", "uid", "gid"),
    *("mtime_ns", "ctime_ns", "atime_ns"),
)
NAMES = (b"plain", b"new\nline", b"\xff\xfe\x80", b"-rf", b" ", b"\x1b[31m", "Straße".encode())
State = dict[tuple[int, bytes], tuple]  # by parent and name


def row(path: bytes) -> tuple:
    told = os.lstat(path)
    return settled(
        *(told.st_ino, told.st_mode, told.st_nlink, told.st_size, told.st_blocks),
        *(told.st_uid, told.st_gid, told.st_mtime_ns, told.st_ctime_ns, told.st_atime_ns),
    )


def settled(*row: int) -> tuple:
    """Without atime_ns of what the scan, or os.walk, reads: folders and links."""
    mode = row[COLUMNS.index("mode")]
    return row if not stat.S_ISDIR(mode) and not stat.S_ISLNK(mode) else (*row[:-1], 0)


def state(root: bytes) -> State:
    """All that is there, by os.walk; where a folder is closed to us, without what is in it."""
    found = {(0, b""): row(root)}
    for at, below, others in os.walk(root):
        parent = os.lstat(at).st_ino
        found |= {(parent, name): row(os.path.join(at, name)) for name in [*below, *others]}
    return found


class Tree:
    """A folder that a seed's random steps fill and change."""

    def __init__(self, root: bytes, seed: int) -> None:
        self.root, self.draw, self.made = root, random.Random(seed), 0
        os.makedirs(root, exist_ok=True)

    def paths(self, folders: bool) -> list[bytes]:
        """Those of folders, the root among them, or of what is none."""
        found = [self.root] if folders else []
        for at, below, others in os.walk(self.root):
            found += [os.path.join(at, name) for name in sorted(below if folders else others)]
        if not folders:  # os.walk takes links to folders for folders
            found += [
                os.path.join(at, name)
                for at, below, _ in os.walk(self.root)
                for name in sorted(below)
                if os.path.islink(os.path.join(at, name))
            ]
        return [path for path in found if not folders or not os.path.islink(path)]

    def a_folder(self) -> bytes:
        return self.draw.choice(self.paths(folders=True))

    def another(self) -> bytes | None:
        """What is no folder; None: there is none."""
        found = self.paths(folders=False)
        return self.draw.choice(found) if found else None

    def new_path(self) -> bytes:
        self.made += 1
        return os.path.join(self.a_folder(), self.draw.choice(NAMES) + b"%d" % self.made)

    def change(self, steps: int) -> None:
        for _ in range(steps):
            self.draw.choice(STEPS)(self)

    def make_file(self) -> None:
        with open(self.new_path(), "wb") as file:
            file.write(b"x" * self.draw.choice((0, 1, 5000)))
            if not self.draw.randrange(4):
                file.truncate(1 << 33)

    def make_folder(self) -> None:
        os.mkdir(self.new_path())

    def make_other(self) -> None:
        path = self.new_path()
        kind = self.draw.randrange(3)
        if kind == 0:
            os.mkfifo(path)
        elif kind == 1:
            os.symlink(self.draw.choice((b"nowhere", b"..", self.root)), path)
        else:
            here = os.getcwd()
            with socket.socket(socket.AF_UNIX) as made:
                os.chdir(os.path.dirname(path))  # its address has room for a name alone
                made.bind(os.path.basename(path))
                os.chdir(here)

    def link(self) -> None:
        if (path := self.another()) is not None:
            os.link(path, self.new_path(), follow_symlinks=False)

    def write(self) -> None:
        if (path := self.another()) is not None and stat.S_ISREG(os.lstat(path).st_mode):
            with open(path, "ab") as file:
                file.write(b"more")

    def change_mode(self) -> None:
        if (path := self.another()) is not None and not os.path.islink(path):
            os.chmod(path, self.draw.choice((0o600, 0o644, 0o4755)))

    def read(self) -> None:
        """Which only its atime tells."""
        if path := self.another():
            os.utime(path, ns=(self.draw.randrange(1 << 60), 1), follow_symlinks=False)

    def remove(self) -> None:
        if path := self.another():
            os.unlink(path)

    def remove_folder(self) -> None:
        if (path := self.a_folder()) != self.root:
            shutil.rmtree(path)

    def move(self) -> None:
        if path := self.another():
            os.rename(path, self.new_path())

    def move_folder(self) -> None:
        path, place = self.a_folder(), self.new_path()
        if not (place + b"/").startswith(path + b"/"):
            os.rename(path, place)

    def replace(self) -> None:
        """A folder by a file of the same name, or the other way."""
        if path := self.another():
            os.unlink(path)
            os.mkdir(path)
        if (path := self.a_folder()) != self.root:
            shutil.rmtree(path)
            self.draw.choice((os.mkfifo, os.mkdir))(path)


STEPS = (
    *(Tree.make_file, Tree.make_file, Tree.make_file, Tree.make_folder, Tree.make_folder),
    *(Tree.make_other, Tree.link, Tree.write, Tree.change_mode, Tree.read, Tree.remove),
    *(Tree.remove_folder, Tree.move, Tree.move_folder, Tree.replace),
)
