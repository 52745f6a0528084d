# Who may only read the SQLite store, as most users: no side files of WAL, so no locks either.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import subprocess
import sys

import pytest
from joulemark import config, store

SUM = "SELECT COUNT(*), SUM(ConsumedEnergy_uj) FROM job_run WHERE Step = 'job'"


@pytest.fixture
def no_side_files(site):
    """Makes opening WAL's shared memory fail, as in a folder that the reader may not write to."""
    in_the_way = site.folder / "store.sqlite-shm"

    def forbid(yes: bool) -> None:
        if yes:
            in_the_way.symlink_to("nowhere")
        else:
            in_the_way.unlink()

    return forbid


def merge(site, jobs):
    """In a process of its own: SQLite's connections of one process know of each other."""
    for job in jobs:
        site.leave(job)
    words = [sys.executable, "-m", "joulemark", "merge"]
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)


def test_a_reader_without_locks_sees_what_is_merged_meanwhile(site, no_side_files):
    merge(site, range(1, 101))
    no_side_files(True)
    with store.reading(config.load().store) as session:
        assert session.rows(SUM) == [(100, 100 * 100_000_000)]
        no_side_files(False)
        merge(site, range(101, 401))
        no_side_files(True)
        assert session.rows(SUM) == [(400, 400 * 100_000_000)]


def test_pages_that_a_merge_changed_under_a_query_are_read_again(site, no_side_files, monkeypatch):
    """The merge comes after the rows were found, and before they are believed."""
    merge(site, range(1, 101))
    no_side_files(True)
    with store.reading(config.load().store) as session:
        settled, merged = session._is_settled, []

        def merge_first() -> bool:
            if not merged:
                no_side_files(False)
                merge(site, range(101, 201))
                no_side_files(True)
                merged.append(True)
            return settled()

        monkeypatch.setattr(session, "_is_settled", merge_first)
        assert session.rows(SUM) == [(200, 200 * 100_000_000)]


def test_a_damaged_store_is_told_at_once(site, no_side_files):
    merge(site, [1])
    site.store.write_bytes(b"SQLite format 3\0" + b"damaged " * 4096)
    no_side_files(True)
    assert "the store cannot be used: file is not a database" in site.fails("report", "usage")
