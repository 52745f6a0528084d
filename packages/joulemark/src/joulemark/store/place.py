# Where the site's store is: an SQLite file, or a database of MariaDB or PostgreSQL.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

SCHEMES = {
    "sqlite": "sqlite",
    "mysql": "mariadb",
    "mysql+pymysql": "mariadb",
    "mariadb": "mariadb",
    "mariadb+pymysql": "mariadb",
    "postgresql": "postgresql",
    "postgresql+psycopg": "postgresql",
    "postgresql+psycopg2": "postgresql",
}
PARAMETERS = {
    "sqlite": (),
    "mariadb": ("unix_socket", "ssl_ca", "ssl_cert", "ssl_key"),
    "postgresql": ("host", "sslmode", "sslrootcert", "sslcert", "sslkey"),
}


@dataclass(frozen=True)
class Place:
    """A store's place; `kind` is sqlite, mariadb or postgresql."""

    kind: str
    name: str  # as configured: it never holds a password
    path: Path | None = None  # of an SQLite file
    host: str | None = None
    port: int | None = None
    user: str | None = None
    database: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    password_file: Path | None = None

    def __str__(self) -> str:
        return self.name

    @classmethod
    def parse(cls, text: str, password_file: Path | None = None) -> Place:
        """Reads an absolute path or a URL; ValueError says what is wrong with it."""
        if os.path.isabs(text):
            return cls("sqlite", text, path=Path(text))
        scheme, colon, _ = text.partition("://")
        if not colon:
            raise ValueError(f"'{text}' is neither an absolute path nor a URL")
        if scheme not in SCHEMES:
            raise ValueError(f"'{scheme}://': must be one of {', '.join(SCHEMES)}")
        return _from_url(SCHEMES[scheme], text, password_file)


def _from_url(kind: str, text: str, password_file: Path | None) -> Place:
    from urllib.parse import parse_qsl, unquote, urlsplit  # paths alone do without

    url = urlsplit(text)
    if url.password is not None:  # and the message must not repeat it
        raise ValueError(
            "holds a password: move it to a file and name that in store_password_file"
        )
    database = unquote(url.path).lstrip("/")
    if kind == "sqlite":
        return Place(kind, text, path=Path("/" + database))
    parameters = dict(parse_qsl(url.query, keep_blank_values=True))
    for key in parameters:
        if key not in PARAMETERS[kind]:
            raise ValueError(f"'{key}' is not one of {', '.join(PARAMETERS[kind])}")
    if not database:
        raise ValueError(f"'{text}' names no database: end it in /joulemark")
    return Place(
        kind,
        text,
        host=url.hostname,
        port=url.port,
        user=unquote(url.username) if url.username else None,
        database=database,
        parameters=parameters,
        password_file=password_file,
    )
