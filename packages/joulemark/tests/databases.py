# Private servers of MariaDB and PostgreSQL for tests and benchmarks: a socket, no port.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import getpass
import glob
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

PASSWORD = "se:cr@t/"  # every character that a URL would have to escape
SBIN = "/usr/sbin:/usr/local/sbin:/sbin"
numbers = itertools.count(1)


class Missing(Exception):
    """A server's program or its Python driver is not here; says which."""


class Server:
    """One running server; `database()` makes an empty one."""

    def __init__(self, kind: str, folder: Path, execute: Callable[[str], None], url: str):
        self.kind, self.folder = kind, folder
        self.password_file = folder / "password"
        self.password_file.write_text(PASSWORD + "\n")
        self.password_file.chmod(0o600)
        self._execute = execute
        self._url = url

    def database(self, name: str = "") -> str:
        """The URL of a database that nothing is in."""
        name = name or f"test{next(numbers)}"
        self._execute(f"CREATE DATABASE {name}")
        return self._url.format(name=name)


def program(name: str) -> str:
    """A server's program; PostgreSQL keeps its own apart from everybody's."""
    versions = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    path = ":".join([os.environ.get("PATH", os.defpath), SBIN, *versions])
    found = shutil.which(name, path=path)
    if not found:
        raise Missing(f"{name} is not installed: see tests/packages.txt")
    return found


def driver(name: str):
    """A Python module that is an optional dependency."""
    try:
        return __import__(name)
    except ImportError:
        raise Missing(
            f"the Python module {name} is not installed: see tests/requirements.txt"
        ) from None


@contextlib.contextmanager
def folder_for(user: str | None) -> Iterator[tuple[Path, list[str]]]:
    """A folder with a short path, for a socket has 107 bytes; and words to run as user."""
    with tempfile.TemporaryDirectory(prefix="jm-db-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        as_user: list[str] = []
        if os.geteuid() == 0 and user:
            who = pwd.getpwnam(user)  # a user's group need not have its name: Debian's nobody's
            os.chown(folder, who.pw_uid, who.pw_gid)
            as_user = ["setpriv", f"--reuid={who.pw_uid}", f"--regid={who.pw_gid}"]
            as_user.append("--clear-groups")
        yield folder, as_user


@contextlib.contextmanager
def running(words: list[str], log: Path, ready: Callable[[], object]) -> Iterator[None]:
    """A server from its first answer on; stopped at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/"
        )
    try:
        _wait_until(ready, process, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until(ready: Callable[[], object], process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            ready()
            return
        except Exception as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{error}\n{log.read_text()[-2000:]}") from error
        time.sleep(0.05)


def prepare(*words: str) -> None:
    """Makes a server's data."""
    subprocess.run(words, check=True, capture_output=True, cwd="/")


@contextlib.contextmanager
def mariadb() -> Iterator[Server]:
    """A MariaDB server of its own."""
    pymysql = driver("pymysql")
    install, server = program("mariadb-install-db"), program("mariadbd")
    with folder_for("nobody") as (folder, as_user):
        me, socket = getpass.getuser(), folder / "socket"
        prepare(
            *(*as_user, install, "--no-defaults", f"--datadir={folder}/data", "--force"),
            *("--auth-root-authentication-method=socket", f"--auth-root-socket-user={me}"),
            *("--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=16M"),
        )

        def execute(statement: str) -> None:
            connection = pymysql.connect(unix_socket=str(socket), user=me, autocommit=True)
            with contextlib.closing(connection):
                connection.cursor().execute(statement)

        words = [*as_user, server, "--no-defaults", f"--datadir={folder}/data"]
        words += [f"--socket={socket}", f"--pid-file={folder}/pid", "--skip-networking"]
        # half of what Slurm's accounting page has a site give it: in 512 MB a million jobs swap
        words += ["--skip-name-resolve", "--innodb-buffer-pool-size=2G"]
        words.append(f"--tmpdir={folder}")  # in /tmp they went away under it
        with running(words, folder / "log", lambda: execute("SELECT 1")):
            execute(f"CREATE USER joulemark@localhost IDENTIFIED BY '{PASSWORD}'")
            execute("GRANT ALL ON *.* TO joulemark@localhost")
            url = f"mysql+pymysql://joulemark@localhost/{{name}}?unix_socket={socket}"
            yield Server("mariadb", folder, execute, url)


@contextlib.contextmanager
def postgresql() -> Iterator[Server]:
    """A PostgreSQL server of its own; it refuses to run as root."""
    psycopg2 = driver("psycopg2")
    initdb, server = program("initdb"), program("postgres")
    with folder_for("postgres") as (folder, as_user):
        secret = folder / "pwfile"
        secret.write_text(PASSWORD + "\n")
        secret.chmod(0o644)
        prepare(
            *(*as_user, initdb, "-D", f"{folder}/data", "-U", "joulemark", "-E", "UTF8"),
            *("--locale=C", "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync"),
        )
        place = {"host": str(folder), "user": "joulemark", "dbname": "postgres"}

        def execute(statement: str) -> None:
            connection = psycopg2.connect(**place, password=PASSWORD)
            connection.autocommit = True
            with contextlib.closing(connection):
                connection.cursor().execute(statement)

        words = [*as_user, server, "-D", f"{folder}/data", "-k", str(folder)]
        words += ["-c", "listen_addresses=", "-c", "shared_buffers=256MB"]
        with running(words, folder / "log", lambda: execute("SELECT 1")):
            url = f"postgresql://joulemark@/{{name}}?host={folder}"
            yield Server("postgresql", folder, execute, url)


SERVERS = {"mariadb": mariadb, "postgresql": postgresql}
