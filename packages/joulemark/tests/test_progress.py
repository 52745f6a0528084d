# The line that counts on a terminal while a command works, and never elsewhere.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import sys

import pytest
from joulemark import progress


@pytest.fixture
def terminal(monkeypatch):
    """All takes long; called in a test, it makes stderr a terminal."""
    monkeypatch.setattr(progress, "AFTER_S", 0.0)
    monkeypatch.setattr(progress, "EVERY_S", 0.0)

    def look():
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    return look


def on_screen(err):
    """What is left to be seen of it."""
    line = []
    for text in err.split("\r"):
        line[: len(text)] = text
    return "".join(line).strip()


def test_a_merge_counts_jobs(site, terminal):
    terminal()
    for job in (1, 2, 3):
        site.leave(job)
    code, out, err = site.run("merge")
    assert code == 0 and len(out.splitlines()) == 3
    assert err.split("\r")[1:4] == [f"{done} of 3 jobs' records made" for done in (1, 2, 3)]
    assert on_screen(err) == ""


@pytest.mark.parametrize("is_terminal", [False, True])
def test_an_export_counts_records_unless_they_are_seen(site, terminal, monkeypatch, is_terminal):
    terminal()
    site.leave(1)
    site.leave(2)
    site.run("merge")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    code, out, err = site.run("report", "jobs", "--all", "--format", "json")
    assert code == 0 and len(json.loads(out)) == 2
    assert ("2 records written" in err) is not is_terminal and on_screen(err) == ""


def test_what_fails_leaves_no_line(capsys, terminal):
    terminal()

    def fail():
        yield 1
        raise ValueError

    with pytest.raises(ValueError):
        list(progress.counted(fail(), "steps"))
    err = capsys.readouterr().err
    assert "1 steps" in err and on_screen(err) == ""


def test_what_is_short_or_no_terminal_is_silent(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert list(progress.counted([1, 2], "steps")) == [1, 2]
    monkeypatch.setattr(progress, "AFTER_S", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert list(progress.counted([1, 2], "steps")) == [1, 2]
    assert capsys.readouterr().err == ""
