"""guides/backup.md word for word, with SQLite, MariaDB and PostgreSQL, while merges go on."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import builders
import databases
import pytest

from tests.cluster import CHECKOUT, wait_for
from tests.long.shown import begins
from tests.long.test_guides import commands, text_of

#: what the guide says of this site, instead of a real one's
PLACES = re.compile(r"^(?:(\w+)=\S+ ?)+$")
CHAPTERS = {"sqlite": "SQLite", "mariadb": "MariaDB", "postgresql": "PostgreSQL"}
ACCOUNTS = ("blue", "red", "green")
ENERGY_UJ = 10_000_003


def of_store(guide: str, kind: str) -> str:
    """Without the paragraphs of the other stores."""
    own = CHAPTERS[kind]
    parts = re.split(r"(?m)^(?=\*\*|## )", guide)
    others = tuple(f"**{name}" for name in CHAPTERS.values() if name != own)
    return "".join(part for part in parts if not part.startswith(others))


class Site:
    """A merge host whose jobs end one after the other; sacct tells of them what Slurm would."""

    def __init__(self, folder: Path, kind: str, server: databases.Server | None) -> None:
        self.folder, self.kind = folder, kind
        self.records, self.jobs = folder / "records", 0
        self.config = folder / "joulemark.yaml"
        for name in ("records", "backup", "bin", "ended"):
            (folder / name).mkdir()
        where = server.database("joulemark") if server else folder / "store.sqlite"
        text = f"cluster: demo\nrecord_dir: {self.records}\nstore: {where}\n"
        if server:
            text += f"store_password_file: {server.password_file}\n"
        self.config.write_text(text)
        (folder / "bin" / "joulemark").write_text(
            f'#!/bin/sh\nexec {sys.executable} -m joulemark "$@"\n'
        )
        (folder / "bin" / "sacct").write_text(
            f'#!/bin/sh\necho "$@" >sacct.asked\ncat {folder}/slurm\n'
        )
        for program in (folder / "bin").iterdir():
            program.chmod(0o755)
        (folder / "slurm").touch()
        self.env = {
            **os.environ,
            "HOME": str(folder),
            "JOULEMARK_CONFIG": str(self.config),
            "PYTHONPATH": str(CHECKOUT / "packages" / "joulemark" / "src"),
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            **(self._client(server) if server else {}),
        }

    def _client(self, server: databases.Server) -> dict[str, str]:
        """How an administrator's own programs find the database."""
        if self.kind == "postgresql":
            return {
                "PGHOST": str(server.folder),
                "PGUSER": "joulemark",
                "PGPASSWORD": databases.PASSWORD,
            }
        (self.folder / ".my.cnf").write_text(
            f'[client]\nsocket={server.folder}/socket\nuser=joulemark\npassword="{databases.PASSWORD}"\n'
        )
        return {}

    def run(self, line: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", line],
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr

    def joulemark(self, words: str) -> str:
        status, said = self.run(f"joulemark {words}")
        assert status == 0, said
        return said

    def end_job(self) -> None:
        """On two nodes; its records and what Slurm says of it are there."""
        self.jobs += 1
        account = ACCOUNTS[self.jobs % len(ACCOUNTS)]
        for node in ("n1", "n2"):
            accounts = [builders.account(energy_uj=ENERGY_UJ * self.jobs)]
            builders.write(self.records, builders.record(self.jobs, node, accounts))
        notice = self.folder / "ended" / f"{self.jobs}.0"
        draft = notice.with_name(f".{notice.name}")
        draft.write_text(f"n[1-2]\nuser\n{account}\nmain\n")
        draft.rename(notice)
        with (self.folder / "slurm").open("a") as told:
            told.write(f"{self.jobs}|n[1-2]|user|{account}|main|2026-11-26T03:04:05\n")

    def merge(self) -> None:
        self.joulemark(f"merge --ended {self.folder}/ended")

    def usage(self) -> dict[str, tuple[int, int]]:
        """Jobs and microjoules of each account."""
        table = self.joulemark("report usage --by account --format csv")
        return {
            row["account"]: (int(row["jobs"]), int(row["energy_uj"]))
            for row in csv.DictReader(io.StringIO(table))
        }

    def follow(self, chapter: str, **places: str) -> None:
        """Types what the guide says, with this site's own places."""
        env = dict(places)
        for command in commands(chapter):
            names = re.findall(r"(\w+)=", command.line) if PLACES.match(command.line) else []
            assert set(names) <= set(places), command.line
            if names:
                self.env.update({name: env[name] for name in names})
                continue
            status, printed = self.run(command.line)
            said = f"$ {command.line}\nexit status {status}\n{printed}"
            assert status == 0, said
            assert begins(printed, command.shown), f"{said}\nthe guide shows:\n{command.shown}"

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Jobs end, and are merged, all the time."""
        over = threading.Event()

        def work() -> None:
            while not over.is_set():
                self.end_job()
                self.run("joulemark merge")  # as an administrator may, beside the one below
                time.sleep(0.05)

        threads = [
            threading.Thread(target=work),
            threading.Thread(target=self._merges, args=(over,)),
        ]
        for thread in threads:
            thread.start()
        try:
            before = self.jobs
            wait_for(lambda: self.jobs > before + 2, what="jobs to be merged")
            yield
            before = self.jobs
            wait_for(lambda: self.jobs > before + 2, what="jobs to be merged")
        finally:
            over.set()
            for thread in threads:
                thread.join()

    @contextlib.contextmanager
    def report_under_way(self) -> Iterator[None]:
        """A long one, for which SQLite keeps in its log what is merged meanwhile."""
        if self.kind != "sqlite":
            yield
            return
        with contextlib.closing(sqlite3.connect(self.folder / "store.sqlite")) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM job_run").fetchone()
            wait_for(lambda jobs=self.jobs: self.jobs > jobs + 2, what="jobs to be merged")
            yield

    def _merges(self, over: threading.Event) -> None:
        while not over.is_set():
            self.run(f"joulemark merge --ended {self.folder}/ended")


@pytest.fixture(params=list(CHAPTERS))
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with contextlib.ExitStack() as stack:
        server = None
        if request.param != "sqlite":
            server = stack.enter_context(databases.SERVERS[request.param]())
        yield Site(tmp_path, request.param, server)


def test_a_store_comes_back_as_it_was(site: Site) -> None:
    guide = of_store(text_of("backup"), site.kind)
    back_up, heading, rest = guide.partition("## Bring it back")
    assert heading
    bring_back, heading, up_to_date = rest.partition("## Bring it up to date")
    assert heading
    for _ in range(20):
        site.end_job()
    site.merge()
    names = {"store": "store.sqlite", "backup": "backup", "config": "joulemark.yaml"}
    places = {what: str(site.folder / name) for what, name in names.items()}
    since = datetime.now().isoformat(timespec="seconds")
    with site.busy(), site.report_under_way():
        merged = sum(jobs for jobs, _ in site.usage().values())
        site.follow(back_up, **places)
    site.merge()
    lost = site.usage()
    assert sum(jobs for jobs, _ in lost.values()) == site.jobs

    site.follow(bring_back)
    restored = site.usage()
    found = sum(jobs for jobs, _ in restored.values())
    assert merged <= found < site.jobs  # what was merged later is not in it
    whole = sum(2 * ENERGY_UJ * job for job in range(1, found + 1))
    assert sum(energy_uj for _, energy_uj in restored.values()) == whole  # no job in part
    site.follow(up_to_date, since=since)
    assert site.usage() == lost
    assert f"-S {since}" in (site.folder / "sacct.asked").read_text()
    site.end_job()
    site.merge()
    assert sum(jobs for jobs, _ in site.usage().values()) == site.jobs
    if site.kind == "sqlite":
        assert site.run(f'sqlite3 {places["store"]}.2 "PRAGMA journal_mode"')[1] == "wal\n"
