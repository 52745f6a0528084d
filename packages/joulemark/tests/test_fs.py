# `joulemark fs`: scans of random trees, and what is told of them, against os.walk.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import csv
import grp
import json
import os
import pwd
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import joulemark
import pytest
from joulemark import cli, regions, units
from joulemark.files import changes, database, sizes
from joulemark.folders import owner_name

FS_SCAN = Path(joulemark.__file__).parents[3] / "fs-scan"
sys.path.insert(0, str(FS_SCAN / "tests"))
from trees import COLUMNS, Tree, state  # noqa: E402

SEEDS = range(5)
NOBODY = 65534
FIELD = {name: at for at, name in enumerate(COLUMNS)}


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """The folder of fs-scan, built; its own tests are with it."""
    folder = tmp_path_factory.mktemp("fs-scan")
    folder.chmod(0o755)
    words = ["cc", "-std=c17", "-D_GNU_SOURCE", "-O1", *(FS_SCAN / "src").glob("*.c")]
    subprocess.run([*words, "-o", folder / "fs-scan", "-lsqlite3", "-lpthread"], check=True)
    return folder


@pytest.fixture
def there(tmp_path, program, monkeypatch, capsysbinary):
    """A folder in which to work, with fs-scan on the PATH."""
    monkeypatch.setenv("PATH", f"{program}:{os.environ['PATH']}")
    monkeypatch.delenv("JOULEMARK_SOCKET", raising=False)
    monkeypatch.chdir(tmp_path)
    return There(tmp_path, capsysbinary)


class There:
    def __init__(self, folder: Path, capsysbinary) -> None:
        self.folder, self._capsys = folder, capsysbinary
        self.root = folder / "tree"

    def run(self, *words: object) -> tuple[int, str, str]:
        code = cli.main(["fs", *map(str, words)])
        told = self._capsys.readouterr()
        return code, os.fsdecode(told.out), os.fsdecode(told.err)

    def out(self, *words: object, status: int = 0) -> str:
        code, out, err = self.run(*words)
        assert code == status, err
        return out

    def records(self, *words: object, status: int = 0) -> list[dict]:
        return json.loads(self.out(*words, "--format", "json", status=status))

    def scan(self, name: str = "a.db", **options) -> Path:
        self.out("scan", self.root, name, **options)
        return self.folder / name

    def tree(self, seed: int, steps: int = 100) -> Tree:
        tree = Tree(os.fsencode(self.root), seed)
        tree.change(steps)
        return tree


def paths_of(root: Path) -> dict[tuple, bytes]:
    """By folder and name, as trees.state has them."""
    found = {(0, b""): os.fsencode(root)}
    for at, below, others in os.walk(os.fsencode(root)):
        parent = os.lstat(at).st_ino
        found |= {(parent, name): os.path.join(at, name) for name in [*below, *others]}
    return found


def is_file(row: tuple) -> bool:
    return stat.S_ISREG(row[FIELD["mode"]])


# -- scan ----------------------------------------------------------------------------------------


def test_a_scan_is_shown(there):
    tree = there.tree(1)
    [told] = there.records("scan", there.root, "a.db")
    rows = state(tree.root)
    once = {row[0]: row for row in rows.values()}
    assert told["root"] == str(there.root) and told["names"] == len(rows)
    assert told["objects"] == len(once)
    assert told["size_bytes"] == sum(row[FIELD["size"]] for row in once.values())
    assert told["names_per_second"] == pytest.approx(told["names"] / told["scan_seconds"])
    assert [told[name] for name in ("denied", "failed", "moved", "mounts")] == [0] * 4
    assert told["energy_j"] is None and told["estimated"] is None
    assert "not measured" in there.out("sizes", "a.db", "--by", "scan")


@pytest.mark.parametrize("estimated", [False, True])
def test_a_scan_s_joules_are_kept(there, monkeypatch, estimated):
    there.tree(2)
    energy = regions.Energy(1234.5678, 67.8, 9.0, 90, estimated)

    class Region:
        def __init__(self, name, measure):
            assert (name, measure) == ("fs-scan", True)

        def __enter__(self):
            self.energy = None
            return self

        def __exit__(self, *_):
            self.energy = energy

    monkeypatch.setattr(regions, "region", Region)
    there.scan()
    monkeypatch.undo()
    assert (there.folder / "a.db").exists()
    [told] = there.records("sizes", there.folder / "a.db", "--by", "scan")
    assert (told["energy_j"], told["energy_error_j"]) == (1234.5678, 67.8)
    assert told["estimated"] is estimated
    assert told["energy_per_name_j"] == pytest.approx(1234.5678 / told["names"])
    text = there.out("sizes", there.folder / "a.db", "--by", "scan")
    if estimated:
        assert "~1235" in text and "ESTIMATED" in text
    else:
        assert "1234.6" in text and units.digits(1e6 * 1234.5678 / told["names"]) in text


def test_a_program_that_is_not_there_is_named(there, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    there.root.mkdir()
    code, _, err = there.run("scan", there.root, "a.db")
    assert code == 1 and "fs-scan: is not on the PATH" in err and "spack install fs-scan" in err


def test_no_new_database_is_exit_code_3(there):
    there.root.mkdir()
    assert there.run("scan", there.root, there.folder / "none" / "a.db")[0] == 3
    (there.folder / "text").write_text("of a user" * 99)
    assert there.run("scan", there.root, "text")[0] == 3
    assert (there.folder / "text").read_text() == "of a user" * 99


def test_a_link_to_a_database_stays_one(there):
    there.tree(3)
    (there.folder / "link.db").symlink_to("a.db")
    there.scan("link.db")
    assert (there.folder / "link.db").is_symlink() and (there.folder / "a.db").is_file()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", ["scan tree b.db", "diff a.db"])
def test_a_signal_ends_fs_scan_too(there, tmp_path, number, command):
    """A stand-in that says when it is there, and that it was ended."""
    there.root.mkdir()
    there.scan()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    stub = tmp_path / "bin" / "fs-scan"
    stub.parent.mkdir()
    stub.write_text(
        f"#!/bin/bash\ntrap 'echo ended >{tmp_path}/said; kill $!; exit 3' TERM INT\n"
        f"sleep 60 &\necho there >{fifo}\nwait\n"
    )
    stub.chmod(0o755)
    source = str(Path(joulemark.__file__).parents[1])
    env = {**os.environ, "PATH": f"{stub.parent}:{os.environ['PATH']}", "PYTHONPATH": source}
    words = [sys.executable, "-m", "joulemark", "fs", *command.split()]
    with subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert fifo.read_text() == "there\n"
        process.send_signal(number)
        said = process.communicate(timeout=30)[1]
    assert process.returncode == 128 + number and number.name in said
    assert (tmp_path / "said").read_text() == "ended\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody is closed out but by root")
def test_what_is_closed_is_told_everywhere(there, program):
    """As a user without rights: exit code 1, a folder named, and told of each answer."""
    (there.root / "closed").mkdir(parents=True)
    (there.root / "file").write_text("x")
    there.scan("before.db")
    (there.root / "closed").chmod(0)
    for folder in (there.folder, *there.folder.parents[:2]):
        folder.chmod(0o777 if folder == there.folder else 0o755)
    words = ["fs-scan", str(there.root), str(there.folder / "a.db")]
    user = {"user": NOBODY, "group": NOBODY}
    done = subprocess.run(words, capture_output=True, text=True, **user)
    assert done.returncode == 1 and f"{there.root}/closed: Permission denied" in done.stderr
    [told] = there.records("sizes", "a.db", "--by", "scan")
    assert (told["denied"], told["failed"]) == (1, 0)
    assert "1 could not be read: it is not all there." in there.out(
        "sizes", "a.db", "--by", "scan"
    )
    for words in (["sizes", "a.db"], ["list", "a.db"]):
        assert "1 could not be read" in there.out(*words)
        assert "1 could not be read" in there.run(*words, "--format", "csv")[2]
    assert "1 folders could not be read" in there.out("diff", "before.db", "a.db", status=1)


# -- sizes ---------------------------------------------------------------------------------------


def once_each(tree: Tree) -> list[tuple]:
    return list({row[0]: row for row in state(tree.root).values()}.values())


def sums(rows: list[tuple], key) -> dict:
    found: dict = {}
    for row in rows:
        one = found.setdefault(key(row), [0, 0, 0])
        one[0] += 1
        one[1] += row[FIELD["size"]]
        one[2] += 512 * row[FIELD["blocks"]]
    return found


def told_sums(records: list[dict], key: str) -> dict:
    return {one[key]: [one[name] for name in sizes.SUMS] for one in records}


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_by_owner_group_and_kind(there, seed):
    tree = there.tree(seed)
    if not os.geteuid():
        for number, path in enumerate(tree.paths(folders=False)):
            os.chown(path, number % 3, number % 2, follow_symlinks=False)
    there.scan()
    rows = once_each(tree)
    for by, key in (
        ("owner", lambda row: owner_name(row[FIELD["uid"]])),
        ("group", lambda row: grp.getgrgid(row[FIELD["gid"]]).gr_name),
        ("kind", lambda row: database.kind_of(row[FIELD["mode"]])),
    ):
        assert told_sums(there.records("sizes", "a.db", "--by", by), by) == sums(rows, key)


LIMITS = {"1 B": 1, "4 KiB": 4 << 10, "64 KiB": 64 << 10, "1 MiB": 1 << 20, "16 MiB": 1 << 24}
LIMITS |= {"256 MiB": 1 << 28, "4 GiB": 1 << 32, "64 GiB": 1 << 36, "1 TiB": 1 << 40}


def test_sums_by_size(there):
    there.root.mkdir()
    for limit in LIMITS.values():
        for size in (limit - 1, limit):
            with open(there.root / str(size), "wb") as file:
                file.truncate(size)
    there.scan()
    told = [(one["size"], one["size_bytes"]) for one in there.records("sizes", "a.db")]
    expected, held = [], 0
    for name, limit in LIMITS.items():
        expected.append((f"below {name}", held + limit - 1))
        held = limit
    assert told == [*expected, ("1 TiB and more", held)]


def test_sums_of_files_that_say_to_be_huge(there):
    """Whoever may write can make them."""
    there.root.mkdir()
    for name in "ab":
        (there.root / name).touch()
    there.scan()
    with closing(sqlite3.connect("a.db")) as connection, connection:
        connection.execute("UPDATE object SET size = ? WHERE name <> ''", [2**63 - 1])
    assert there.records("sizes", "a.db")[-1]["size_bytes"] == 2 * (2**63 - 1)
    assert there.records("sizes", "a.db", "--by", "scan")[0]["size_bytes"] >= 2 * (2**63 - 1)


@pytest.mark.parametrize("time", ["mtime", "atime"])
def test_sums_by_age(there, time):
    there.root.mkdir()
    days = (0, 1, 6, 8, 29, 31, 89, 91, 179, 181, 364, 366, 729, 731)
    for number in days:
        (there.root / str(number)).write_text("x" * number)
    there.scan()
    with closing(sqlite3.connect("a.db")) as connection, connection:
        (began,) = connection.execute("SELECT began_ns FROM scan").fetchone()
        for number in days:
            at = began - number * 86_400 * 10**9
            connection.execute(
                f"UPDATE object SET {time}_ns = ? WHERE name = ?", [at, str(number).encode()]
            )
    told = {
        one["age"]: one["size_bytes"]
        for one in there.records("sizes", "a.db", "--by", "age", "--time", time)
    }
    assert told == {
        **{"below 1 d": 0, "below 7 d": 1 + 6, "below 30 d": 8 + 29, "below 90 d": 31 + 89},
        **{"below 180 d": 91 + 179, "below 365 d": 181 + 364, "below 730 d": 366 + 729},
        "730 d and more": 731,
    }


def test_a_table_has_the_whole_and_shares(there):
    there.root.mkdir()
    (there.root / "a").write_text("x" * 3000)
    (there.root / "b").write_text("x" * 5000)
    there.scan()
    text = there.out("sizes", "a.db")
    assert "below 64 KiB" in text and "37.5%" in text and "62.5%" in text
    assert text.split("all")[1].split()[:4] == ["2", "100.0%", "8", "kB"]


# -- list ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_lists_are_those_of_os_walk(there, seed):
    tree = there.tree(seed)
    now_ns = 1_700_000_000 * 10**9
    for number, path in enumerate(tree.paths(folders=False)):
        os.utime(path, ns=(now_ns, now_ns - number * 10**15), follow_symlinks=False)
    there.scan()
    rows, paths = state(tree.root), paths_of(there.root)
    files = {paths[key]: row for key, row in rows.items() if is_file(row)}
    told = there.out("list", "a.db", "--print0")
    assert sorted(os.fsencode(told).split(b"\0")[:-1]) == sorted(files)
    records = there.records("list", "a.db")
    assert Counter(one["path"] for one in records) == Counter(map(database.text_of, files))
    big = there.records("list", "a.db", "--bigger", "4k", "--top", "3")
    expected = sorted((row[FIELD["size"]] for row in files.values()), reverse=True)
    assert [one["size_bytes"] for one in big] == [size for size in expected if size > 4096][:3]
    with database.opened("a.db") as scan:
        limit = scan.told["began_ns"] - 2 * 31_557_600 * 10**9
    old = {path for path, row in files.items() if row[FIELD["mtime_ns"]] < limit}
    told = there.out("list", "a.db", "--print0", "--older", "2y")
    assert set(os.fsencode(told).split(b"\0")[:-1]) == old


@pytest.mark.skipif(os.geteuid() != 0, reason="files of others are root's to make")
def test_lists_of_an_owner(there):
    there.root.mkdir()
    for uid in (0, 1, 54321):
        (there.root / str(uid)).touch()
        os.chown(there.root / str(uid), uid, 0)
    there.scan()
    for owner, uid in ((pwd.getpwuid(1).pw_name, 1), ("1", 1), ("54321", 54321)):
        [one] = there.records("list", "a.db", "--owner", owner)
        assert one["path"] == f"{there.root}/{uid}" and one["owner"] == owner_name(uid)
    code, _, err = there.run("list", "a.db", "--owner", "no-such-user")
    assert code == 2 and "--owner no-such-user: is no user here" in err


def test_bigger_is_not_as_big(there):
    there.root.mkdir()
    for size in (4095, 4096, 4097):
        (there.root / str(size)).write_text("x" * size)
    there.scan()
    [one] = there.records("list", "a.db", "--bigger", "4k")
    assert one["size_bytes"] == 4097


def test_people_see_the_largest_and_how_many_there_are(there):
    there.root.mkdir()
    for number in range(120):
        (there.root / f"{number:03}").write_text("x" * number)
    there.scan()
    text = there.out("list", "a.db")
    assert "/119 " in text and "/020 " in text and "/019 " not in text
    assert "The 100 largest of 120 files" in text
    assert "120 files." in there.out("list", "a.db", "--top", "200")
    assert len(there.records("list", "a.db")) == 120


def test_a_name_commands_no_terminal(there):
    there.root.mkdir()
    for name in (b"a\x1b[2Jb", b"new\nline", b"\xff"):
        (there.root / os.fsdecode(name)).touch()
    there.scan()
    (there.root / os.fsdecode(b"\xfe")).touch()
    for words in (["list", "a.db"], ["diff", "a.db"]):
        text = there.out(*words)
        assert text.replace("\n", "").isprintable()
    assert "a?[2Jb" in there.out("list", "a.db")
    paths = {one["path"].rpartition("/")[2] for one in there.records("list", "a.db")}
    assert paths == {"a\x1b[2Jb", "new\nline", "\\xff"}


# -- diff ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_changes_lead_from_one_state_to_the_other(there, seed):
    tree = there.tree(seed, 80)
    for steps in (0, 1, 5, 60):
        before = there.scan("before.db")
        was, paths_before = state(tree.root), paths_of(there.root)
        tree.change(steps)
        after = there.scan("after.db")
        now, paths_after = state(tree.root), paths_of(there.root)
        with database.opened(str(before)) as one, database.opened(str(after)) as other:
            pairs = changes.between(one, other).pairs
            for left, right in pairs:
                assert left is None or one.path_of(*left[:2]) == paths_before[left[:2]]
                assert right is None or other.path_of(*right[:2]) == paths_after[right[:2]]
        check_pairs(pairs, was, now)


def check_pairs(pairs: list, was: dict, now: dict) -> None:
    moved = [(left, right) for left, right in pairs if left and right and left[:2] != right[:2]]
    gone = {left[:2] for left, right in pairs if not right} | {one[:2] for one, _ in moved}
    came = {right[:2] for left, right in pairs if not left} | {one[:2] for _, one in moved}
    assert (gone, came) == (was.keys() - now.keys(), now.keys() - was.keys())
    for left, right in moved:
        assert was[left[:2]][0] == now[right[:2]][0]
    same = [(left, right) for left, right in pairs if left and right and left[:2] == right[:2]]
    # a new folder may have the number of the one whose name it took: os.stat tells no birth
    born = changes.PLACE["btime_ns"]
    again = {left[:2] for left, right in same if left[born] != right[born]}
    changed = {left[:2] for left, _ in same}
    expected = {key for key in was.keys() & now.keys() if differs(was[key], now[key])}
    assert changed - again == expected - again and expected <= changed


def differs(was: tuple, now: tuple) -> bool:
    if stat.S_ISDIR(was[FIELD["mode"]]) and stat.S_ISDIR(now[FIELD["mode"]]):
        return any(was[FIELD[name]] != now[FIELD[name]] for name in ("ino", "mode", "uid", "gid"))
    return was[:-1] != now[:-1]


def test_what_is_said_of_changes(there):
    (there.root / "folder" / "below").mkdir(parents=True)
    (there.root / "gone").mkdir()
    for name in ("folder/in", "gone/in", "written", "mode", "linked", "read", "moved"):
        (there.root / name).write_text("some")
    there.scan()
    (there.root / "folder").rename(there.root / "elsewhere")
    shutil.rmtree(there.root / "gone")
    (there.root / "written").write_text("some more")
    (there.root / "mode").chmod(0o604)
    os.link(there.root / "linked", there.root / "second")
    os.utime(there.root / "read", ns=(1, (there.root / "read").stat().st_mtime_ns))
    (there.root / "moved").rename(there.root / "elsewhere" / "moved")
    told = there.records("diff", "a.db")
    shown = [
        (one["change"], one["kind"], one["path"].removeprefix(f"{there.root}/"), one["what"])
        for one in told
    ]
    assert shown == [
        ("moved", "folder", "elsewhere", ""),
        ("moved", "file", "elsewhere/moved", ""),
        ("removed", "folder", "gone", ""),
        ("removed", "file", "gone/in", ""),
        ("changed", "file", "linked", "links"),
        ("changed", "file", "mode", "mode"),
        ("changed", "file", "read", "attributes"),
        ("made", "file", "second", ""),
        ("changed", "file", "written", "size content"),
    ]
    assert told[0]["path_before"] == f"{there.root}/folder"
    assert (told[-1]["size_before_bytes"], told[-1]["size_bytes"]) == (4, 9)
    text = there.out("diff", "a.db")
    assert "1 made, 2 removed, 4 changed, 2 moved." in text
    assert f"{there.root}/folder -> {there.root}/elsewhere" in text


def test_what_one_scan_could_not_read_is_not_gone(there):
    (there.root / "closed" / "below" / "deeper").mkdir(parents=True)
    (there.root / "closed" / "below" / "deeper" / "file").touch()
    (there.root / "gone" / "below").mkdir(parents=True)
    there.scan("whole.db")
    shutil.rmtree(there.root / "gone")
    inos = [os.lstat(path).st_ino for path in sorted((there.root / "closed").rglob("*"))]
    closed = os.lstat(there.root / "closed").st_ino
    there.scan("part.db")
    with closing(sqlite3.connect("part.db")) as connection, connection:
        connection.execute(
            "UPDATE folder SET whole = 0, count = 0, digest = 0 WHERE ino = ?", [closed]
        )
        for ino in inos:
            connection.execute("DELETE FROM folder WHERE ino = ?", [ino])
    for words, change in ((("whole.db", "part.db"), "removed"), (("part.db", "whole.db"), "made")):
        told = there.records("diff", *words, status=1)
        shown = [(one["change"], one["path"].removeprefix(f"{there.root}/")) for one in told]
        assert shown == [(change, "gone"), (change, "gone/below")]
        assert "1 folders could not be read" in there.run("diff", *words, "--format", "csv")[2]


@pytest.mark.parametrize(
    ("databases", "birth"),
    [
        (("a.db", "b.db"), "UPDATE object SET btime_ns = 0"),  # is not told
        (("b.db",), "UPDATE object SET btime_ns = btime_ns + 1 WHERE name = x'62'"),
    ],
)
def test_a_number_alone_does_not_say_that_an_object_moved(there, databases, birth):
    there.root.mkdir()
    (there.root / "a").touch()
    there.scan()
    (there.root / "a").rename(there.root / "b")
    there.scan("b.db")
    for name in databases:
        with closing(sqlite3.connect(name)) as connection, connection:
            connection.execute(birth)
    told = there.records("diff", "a.db", "b.db")
    assert [one["change"] for one in told] == ["removed", "made"]


def test_csv_has_all_and_people_the_first(there):
    there.root.mkdir()
    there.scan()
    for number in range(130):
        (there.root / f"{number:03}").touch()
    text = there.out("diff", "a.db")
    assert "/099 " in text and "/100 " not in text and "The first 100 are shown" in text
    rows = list(csv.DictReader(there.out("diff", "a.db", "--format", "csv").splitlines()))
    assert len(rows) == 130 and tuple(rows[0]) == changes.COLUMNS


def test_scans_of_two_folders_are_not_compared(there):
    there.root.mkdir()
    there.scan()
    (there.folder / "other").mkdir()
    there.out("scan", "other", "b.db")
    code, _, err = there.run("diff", "a.db", "b.db")
    assert code == 2 and "name two scans of one folder" in err


def test_other_files_are_no_databases(there):
    Path("text").write_text("no database, and longer than a header of one would be" * 9)
    with closing(sqlite3.connect("foreign.db")) as connection, connection:
        connection.execute("CREATE TABLE t(x)")
    there.root.mkdir()
    there.scan("later.db")
    with closing(sqlite3.connect("later.db")) as connection, connection:
        connection.execute("PRAGMA user_version = 99")
    for name, said in (
        ("text", "text: file is not a database"),
        ("foreign.db", "foreign.db: is no database of `joulemark fs scan`"),
        ("later.db", "later.db: is of fs-scan's version 99, not 2"),
        ("none.db", "none.db: no such file: make it by `joulemark fs scan"),
    ):
        for words in (["sizes", name], ["list", name], ["diff", name]):
            code, _, err = there.run(*words)
            assert code == 2 and said in err
