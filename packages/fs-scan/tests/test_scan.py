#!/usr/bin/env python3
"""What fs-scan's database holds is what is there, whatever names, links and changes there are.

usage: test_scan.py PROGRAM [TEST...]"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

from trees import COLUMNS, State, Tree, settled, state

LIMIT_S = 60
NOBODY = 65534
TREES = 12
ENDING = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM]
ENDING += [signal.SIGPIPE, signal.SIGXCPU, signal.SIGUSR1, signal.SIGUSR2]
NO_CORE = resource.RLIMIT_CORE, (0, 0)
DEEP, NAME = 60, b"n" * 200  # its way is longer than the kernel takes at once


class Scan(unittest.TestCase):
    program: str

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fs-scan-"))
        self.folder.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.folder, onerror=open_and_try_again)
        self.root = os.fsencode(self.folder / "tree")
        self.database = self.folder / "scan.db"

    def start(self, *words: object, **options) -> subprocess.Popen:
        command = [self.program, *map(os.fsdecode, map(bytes_of, words))]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, **pipes, errors="surrogateescape", **options)

    def run_it(self, *words: object, **options) -> tuple[int, str, str]:
        with self.start(*words, **options) as process:
            out, said = process.communicate(timeout=LIMIT_S)
        return process.returncode, out, said

    def scan(self, status: int = 0, **options) -> dict:
        """What it told; where all is well it complains of nothing."""
        ended, out, self.said = self.run_it("--threads", 4, self.root, self.database, **options)
        self.assertEqual((ended, self.said if not status else ""), (status, ""), self.said)
        return json.loads(out) if out else {}

    def ask(self, sql: str) -> list[tuple]:
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            return connection.execute(sql).fetchall()

    def state(self) -> State:
        rows = self.ask(f"SELECT folder, name, {', '.join(COLUMNS)} FROM object")
        found = {row[:2]: settled(*row[2:]) for row in rows}
        self.assertEqual(len(found), len(rows))
        return found

    def digests(self) -> dict[int, int]:
        return dict(self.ask("SELECT ino, digest FROM folder"))

    def new_tree(self, seed: int, steps: int) -> Tree:
        self.root = os.fsencode(self.folder / f"tree{seed}")
        self.database = self.folder / f"{seed}.db"
        tree = Tree(self.root, seed)
        tree.change(steps)
        return tree

    # ---- what is there ----

    def test_a_scan_is_what_is_there(self) -> None:
        for seed in range(TREES):
            with self.subTest(seed=seed):
                self.new_tree(seed, 120)
                told = self.scan()
                there = state(self.root)
                self.assertEqual(self.state(), there)
                inodes = {one[0] for one in there.values()}
                folders = {one[0] for one in there.values() if stat.S_ISDIR(one[1])}
                self.assertEqual((told["names"], told["objects"]), (len(there), len(inodes)))
                self.assertEqual(told["folders"], len(folders))
                self.check_folders(folders)
                once = self.ask("SELECT ino FROM object WHERE NOT again")
                self.assertEqual(sorted(once), sorted((ino,) for ino in inodes))

    def check_folders(self, folders: set[int]) -> None:
        """Their rows lie together, and lead to the root."""
        rows = self.ask("SELECT ino, parent, name, first, count FROM folder")
        self.assertEqual({row[0] for row in rows}, folders | {0})
        place = {
            (folder, name): ino
            for folder, name, ino in self.ask("SELECT folder, name, ino FROM object")
        }
        for ino, parent, name, first, count in rows:
            between = f"id BETWEEN {first} AND {first + count - 1}"
            of_folder = f"SELECT id FROM object WHERE folder = {ino} ORDER BY id"
            self.assertEqual(
                self.ask(f"SELECT id FROM object WHERE {between}"), self.ask(of_folder)
            )
            self.assertIn((parent, name), place) if ino else None
            self.assertEqual(place.get((parent, name)), ino) if ino else None

    def test_the_digest_of_a_folder_tells_a_change_in_it(self) -> None:
        for seed in range(TREES // 2):
            with self.subTest(seed=seed):
                tree = self.new_tree(seed, 80)
                for steps in (0, 1, 5, 40):
                    self.scan()
                    before, were = by_folder(self.state()), self.digests()
                    tree.change(steps)
                    self.scan()
                    after, are = by_folder(self.state()), self.digests()
                    both = before.keys() & after.keys()
                    self.assertEqual(
                        {one for one in both if were[one] != are[one]},
                        {one for one in both if before[one] != after[one]},
                    )

    def test_a_tree_that_changes_meanwhile_is_no_error(self) -> None:
        tree, enough = Tree(self.root, 7), threading.Event()
        tree.change(300)

        def change() -> None:
            while not enough.is_set():
                tree.change(1)

        changing = threading.Thread(target=change)
        changing.start()
        try:
            for _ in range(8):
                ended, out, said = self.run_it("--threads", 4, self.root, self.database)
                told = json.loads(out)
                self.assertEqual((told["denied"], told["failed"]), (0, 0))
                self.assertEqual(ended, 1 if told["moved"] else 0)
                self.assertEqual(len(said.splitlines()), ended, said)
        finally:
            enough.set()
            changing.join()
        self.scan()
        self.assertEqual(self.state(), state(self.root))

    def test_deep_trees_need_few_descriptors(self) -> None:
        at = os.open(self.folder, os.O_RDONLY)
        way = [b"tree", *[NAME] * DEEP]
        for name in way:
            os.mkdir(name, dir_fd=at)
            os.mkdir(b"beside", dir_fd=at) if name == NAME else None
            below = os.open(name, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(at)
        told = self.scan(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16)))
        self.assertEqual(told["names"], 1 + 2 * DEEP)
        self.assertEqual(len(self.state()), 1 + 2 * DEEP)

    def test_a_folder_of_many(self) -> None:
        os.mkdir(self.root)
        for number in range(3000):
            os.mknod(self.root + b"/%d" % number)
        self.scan()
        self.assertEqual(self.state(), state(self.root))

    def test_a_time_that_is_too_far_is_the_last(self) -> None:
        os.mkdir(self.root)
        far_s = 13_500_000_000  # the year 2397
        os.utime(self.root, (far_s, far_s))
        if os.lstat(self.root).st_mtime != far_s:
            self.skipTest("this file system has no such time")
        self.scan()
        self.assertEqual(self.ask("SELECT mtime_ns FROM object"), [((1 << 63) - 1,)])

    # ---- what is not ours to see ----

    def closed(self) -> tuple[Path, dict]:
        """A tree with a folder that is closed, and how to be one to whom it is."""
        tree = self.folder / "tree"
        (tree / "open").mkdir(parents=True)
        (tree / "closed" / "below").mkdir(parents=True)
        (tree / "listed" / "below").mkdir(parents=True)
        self.database = self.folder / "database" / "scan.db"
        self.database.parent.mkdir()
        self.database.parent.chmod(0o777)
        self.use_a_copy()
        return tree, nobody()

    def use_a_copy(self) -> None:
        """That anybody may run."""
        program = self.folder / "fs-scan"
        if not program.exists():
            shutil.copy2(self.program, program)
        self.program = str(program)

    def test_closed_folders_are_counted(self) -> None:
        tree, options = self.closed()
        (tree / "closed").chmod(0)
        (tree / "listed").chmod(0o744)
        if not os.geteuid():
            os.chown(tree / "listed", 1, 1)
        else:
            (tree / "listed").chmod(0o444)
        told = self.scan(1, **options)
        self.assertEqual((told["denied"], told["failed"]), (2, 0))
        self.assertIn(f"{tree}/closed: Permission denied", self.said)
        self.assertIn(f"{tree}/listed/below: Permission denied", self.said)
        found = {name for _, name in self.state()}
        self.assertEqual(found, {b"", b"open", b"closed", b"listed"})
        self.assertEqual(self.ask("SELECT denied, failed FROM scan"), [(2, 0)])
        unread = self.ask("SELECT name FROM folder WHERE NOT whole ORDER BY name")
        self.assertEqual(unread, [(b"closed",), (b"listed",)])

    def scan_beside(self, mounts: str, database: Path) -> subprocess.CompletedProcess:
        """Where nobody else sees them; $1 is the tree."""
        command = ["unshare", "--mount", "sh", "-c", mounts + ' && exec "$0" "$1" "$2"']
        command += [self.program, os.fsdecode(self.root), str(database)]
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)

    def test_other_file_systems_are_left_out(self) -> None:
        if os.geteuid():
            self.skipTest("mounts need root")
        for name in ("own/a/b", "other", "again"):
            os.makedirs(os.path.join(os.fsdecode(self.root), name))
        (self.folder / "tree/file").touch()
        (self.folder / "tree/bound").touch()
        mounts = 'mount -t tmpfs none "$1/other" && mkdir "$1/other/x" && '
        mounts += 'mount --bind "$1/own" "$1/again" && mount --bind "$1/file" "$1/bound"'
        done = self.scan_beside(mounts, self.database)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(json.loads(done.stdout)["mounts"], 3)
        found = {name for _, name in self.state()}
        self.assertEqual(found, {b"", b"own", b"a", b"b", b"file"})

    # ---- whole or not at all ----

    def test_a_scan_that_fails_leaves_the_database_as_it_was(self) -> None:
        tree = Tree(self.root, 3)
        tree.change(50)
        self.scan()
        before = self.database.read_bytes()
        tree.change(500)
        full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 15,) * 2)}
        self.scan(3, **full)
        self.assertEqual(self.said, f"fs-scan: {self.database}: disk I/O error\n")
        self.assertEqual((self.database.read_bytes(), self.beside()), (before, []))

    def test_who_may_read_it(self) -> None:
        os.mkdir(self.root)
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        self.scan()
        self.assertEqual(self.database.stat().st_mode, stat.S_IFREG | 0o600)
        self.database.chmod(0o640)
        if not os.geteuid():
            os.chown(self.database, 1, 2)
        was = self.database.stat()
        self.scan()
        now = self.database.stat()
        self.assertNotEqual(was.st_ino, now.st_ino)
        for name in ("st_mode", "st_uid", "st_gid"):
            self.assertEqual(getattr(now, name), getattr(was, name))

    def test_another_group_s_rights_are_not_given(self) -> None:
        if os.geteuid():
            self.skipTest("files of others are root's to make")
        _, options = self.closed()
        self.scan(**options)
        self.database.chmod(0o664)
        os.chown(self.database, NOBODY, 1)
        self.scan(**options)
        self.assertEqual(self.database.stat().st_mode, stat.S_IFREG | 0o604)

    def test_what_an_earlier_database_left_is_not_played_back(self) -> None:
        os.mkdir(self.root)
        left = [self.folder / f"scan.db{end}" for end in ("-journal", "-wal", "-shm")]
        for path in left:
            path.write_bytes(b"of before")
        self.scan()
        self.assertEqual([path for path in left if path.exists()], [])

    def test_a_folder_that_cannot_be_synced_is_told(self) -> None:
        _, options = self.closed()
        self.database.parent.chmod(0o333)
        ended, out, said = self.run_it(self.root, self.database, **options)
        self.assertEqual((ended, said), (0, f"fs-scan: {self.database}: Permission denied\n"))
        self.assertEqual(self.ask("SELECT names FROM scan"), [(json.loads(out)["names"],)])

    def test_a_full_disk_is_told(self) -> None:
        if os.geteuid():
            self.skipTest("mounts need root")
        Tree(self.root, 3).change(500)
        disk = self.folder / "disk"
        disk.mkdir()
        done = self.scan_beside(f"mount -t tmpfs -o size=32k none {disk}", disk / "scan.db")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        said = f"fs-scan: {disk}/scan.db: database or disk is full\n"
        self.assertEqual(done.stderr, said)

    def test_a_scan_that_is_killed_leaves_the_database_as_it_was_or_is_whole(self) -> None:
        tree = Tree(self.root, 4)
        tree.change(200)
        self.scan()
        partial, met = self.folder / "scan.db.partial", 0
        for _ in range(20):
            before = self.database.read_bytes()
            with self.start(self.root, self.database) as process:
                while process.poll() is None and not size_of(partial):
                    pass
                process.kill()
                process.communicate()
            met += partial.exists()
            if self.database.read_bytes() != before:
                self.assertEqual(self.state(), state(self.root))
            tree.change(10)
            self.scan()
            self.assertEqual((self.state(), self.beside()), (state(self.root), []))
        self.assertGreater(met, 0)

    def beside(self) -> list[Path]:
        return list(self.folder.glob("*.partial"))

    def test_what_a_killed_scan_left_is_taken_over(self) -> None:
        Tree(self.root, 6).change(20)
        (self.folder / "scan.db.partial").write_bytes(b"SQLite format 3\0" + b"half" * 9999)
        self.scan()
        self.assertEqual((self.state(), self.beside()), (state(self.root), []))

    def test_what_no_scan_left_is_not_touched(self) -> None:
        os.mkdir(self.root)
        partial, other = self.folder / "scan.db.partial", self.folder / "other"
        magic = b"SQLite format 3\0"
        other.write_bytes(magic)
        for make in (
            lambda: partial.write_bytes(b"of a user, and longer than a header"),
            lambda: os.link(other, partial),
            lambda: partial.symlink_to(other),
            lambda: os.mkfifo(partial),
            lambda: (partial.write_bytes(magic), os.chown(partial, NOBODY, NOBODY)),
        )[: None if os.geteuid() == 0 else -1]:
            make()
            before = os.lstat(partial)
            self.scan(3)
            said = f"fs-scan: {self.database}: DATABASE.partial is there, and no scan's"
            self.assertEqual(self.said, f"{said}: remove it\n")
            after = os.lstat(partial)
            self.assertEqual((after.st_ino, after.st_size), (before.st_ino, before.st_size))
            partial.unlink()
        self.assertEqual((other.read_bytes(), self.database.exists()), (magic, False))

    def test_its_lock_is_the_only_one(self) -> None:
        """On NFS SQLite's own would meet it."""
        self.waiting()
        with self.beside()[0].open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.assertRaises(OSError, fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def waiting(self, **options) -> subprocess.Popen:
        """A scan of 40 folders, a child in each, that is under way for as long as nobody reads
        what it complains of."""
        self.use_a_copy()
        for number in range(40):
            folder = self.folder / "tree" / str(number)
            (folder / "child").mkdir(parents=True, exist_ok=True)
            for closed in range(20):
                (folder / f"{closed}{'n' * 200}").mkdir(mode=0, exist_ok=True)
        options |= nobody()
        self.folder.chmod(0o777)
        process = self.start("--threads", 1, self.root, self.database, **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertIn("Permission denied", process.stderr.readline())
        self.assertIsNone(process.poll())
        return process

    def test_a_folder_that_moves_meanwhile_is_kept_once(self) -> None:
        process = self.waiting()
        for number in range(40):  # from where it was seen to where it will be, or the other way
            to = self.folder / "tree" / str((number + 20) % 40) / "moved"
            (self.folder / "tree" / str(number) / "child").rename(to)
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 1)
        twice = "SELECT ino FROM object GROUP BY ino HAVING count(*) > 1"
        self.assertNotEqual(self.ask(twice), [])
        kept = "SELECT count(*), count(DISTINCT ino) FROM folder"
        ((rows, folders),) = self.ask(kept)
        self.assertEqual(rows, folders)

    def test_a_folder_that_comes_again_is_read_there(self) -> None:
        process = self.waiting()
        for number in range(0, 40, 2):
            into = self.folder / "tree" / str(number + 1) / "inside"
            (self.folder / "tree" / str(number)).rename(into)
        process.communicate(timeout=LIMIT_S)
        read = "SELECT DISTINCT whole FROM folder JOIN object USING(ino)"
        self.assertEqual(self.ask(f"{read} WHERE object.name = x'{b'inside'.hex()}'"), [(1,)])

    def test_what_is_below_a_folder_that_moves_meanwhile_is_not_whole(self) -> None:
        process = self.waiting()
        for number in range(40):
            (self.folder / "tree" / str(number)).rename(self.folder / "tree" / f"to{number}")
        out, said = process.communicate(timeout=LIMIT_S)
        told = json.loads(out)
        self.assertGreater(told["moved"], 0)
        self.assertLessEqual(told["moved"], 21)  # those of one folder: `tree` is in its place
        self.assertIn(f"that moved before they could be read: {told['moved']}\n", said)
        self.assertEqual(self.ask("SELECT moved FROM scan"), [(told["moved"],)])
        listed = "SELECT count(*) FROM object WHERE mode & 0xf000 = 0x4000"
        self.assertEqual(self.ask(listed), self.ask("SELECT count(*) FROM folder WHERE ino"))

    def test_what_was_removed_meanwhile_did_not_move(self) -> None:
        process = self.waiting()
        for below in (self.folder / "tree").glob("*/*"):
            below.rmdir()
        out, _ = process.communicate(timeout=LIMIT_S)
        self.assertEqual(json.loads(out)["moved"], 0)

    def test_moved_folders_alone_are_exit_status_one(self) -> None:
        top, to = self.folder / "tree" / "top", self.folder / "tree" / "to"
        for number in range(8000):
            (top / str(number)).mkdir(parents=True)
        for tries in range(50):  # until it is met between the listing of `top` and the last in it
            self.database.unlink(missing_ok=True)
            with self.start("--threads", 1, self.root, self.database) as process:
                while not (self.beside() or self.database.exists()):
                    pass
                time.sleep(0.005 * tries)
                top.rename(to)
                out, said = process.communicate(timeout=LIMIT_S)
            top, to = to, top
            if moved := json.loads(out)["moved"]:
                line = f"fs-scan: folders that moved before they could be read: {moved}\n"
                self.assertEqual((process.returncode, said), (1, line))
                unread = self.ask("SELECT count(*) FROM folder WHERE NOT whole AND count = 0")
                self.assertEqual(unread, [(moved,)])
                return
        self.fail("no scan met a folder that moved")

    def test_one_scan_at_a_time(self) -> None:
        self.waiting()
        self.scan(3, **nobody())
        self.assertEqual(self.said, f"fs-scan: {self.database}: another scan writes it\n")
        self.assertEqual(len(self.beside()), 1)

    def test_a_scan_that_is_ended_leaves_nothing(self) -> None:
        for number in ENDING:
            with self.subTest(number.name):
                process = self.waiting(preexec_fn=lambda: resource.setrlimit(*NO_CORE))
                self.assertEqual(len(self.beside()), 1)
                process.send_signal(number)
                process.communicate(timeout=LIMIT_S)
                self.assertEqual(process.returncode, -number)
                self.assertEqual((self.beside(), self.database.exists()), ([], False))

    def test_a_scan_heeds_no_signal_that_its_caller_ignores(self) -> None:
        for number in (signal.SIGHUP, signal.SIGINT):
            with self.subTest(number.name):
                ignore = functools.partial(signal.signal, number, signal.SIG_IGN)
                process = self.waiting(preexec_fn=ignore)
                process.send_signal(number)
                process.communicate(timeout=LIMIT_S)
                self.assertEqual((process.returncode, self.database.exists()), (1, True))
                self.database.unlink()

    # ---- what cannot be ----

    def test_refuses(self) -> None:
        os.mkdir(self.root)
        self.scan()
        other = self.folder / "other"
        other.mkdir()
        text, foreign = self.folder / "text", self.folder / "foreign.db"
        text.write_text("no database, but longer than what a header of one would be" * 9)
        with contextlib.closing(sqlite3.connect(foreign)) as connection:
            connection.execute("CREATE TABLE t(x)")
        for status, part, words in (
            (3, "text: is there, and no database of fs-scan: name another", (other, text)),
            (3, "foreign.db: is there, and no database of fs-scan", (other, foreign)),
            (3, f"{other}: is there, and no database of fs-scan", (other, other)),
            (3, "text: Not a directory", (text, self.folder / "new.db")),
            (3, "none: No such file or directory", (self.folder / "none", self.folder / "new.db")),
            (3, "new.db: No such file or directory", (other, self.folder / "none" / "new.db")),
            (2, "usage: fs-scan", ("relative", self.folder / "new.db")),
            (2, "usage: fs-scan", (other,)),
            (2, "--threads '0': give a whole number", ("--threads", "0", other, "x")),
            (2, "--threads '1x': give a whole number", ("--threads", "1x", other, "x")),
            (2, "unrecognized option", ("--none", other, "x")),
        ):
            with self.subTest(words=words):
                ended, out, said = self.run_it(*words)
                self.assertEqual((ended, out), (status, ""))
                self.assertIn(part, said)
        self.assertFalse((self.folder / "new.db").exists())


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def nobody() -> dict:
    """How to be one without rights."""
    return {} if os.geteuid() else {"user": NOBODY, "group": NOBODY}


def bytes_of(word: object) -> bytes:
    return word if isinstance(word, bytes) else os.fsencode(str(word))


def by_folder(found: State) -> dict[int, State]:
    """Without when an object was read."""
    sorted_: dict[int, State] = {0: {}}
    sorted_ |= {one[0]: {} for one in found.values() if stat.S_ISDIR(one[1])}
    for (folder, name), one in found.items():
        sorted_[folder][folder, name] = one[:-1]
    return sorted_


def open_and_try_again(remove, path, _) -> None:
    os.chmod(os.path.dirname(path), 0o755)
    os.chmod(path, 0o755)
    shutil.rmtree(path) if os.path.isdir(path) else remove(path)


if __name__ == "__main__":
    Scan.program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
