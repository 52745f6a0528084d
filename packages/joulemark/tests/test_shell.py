# Completion in real shells, and the man pages as their readers' programs take them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest
from joulemark import output
from joulemark.shell import __main__ as shell
from joulemark.shell import man, tree

ROOT = tree.read()
COMPLETED = [
    (["report", "us"], ["usage"]),
    (["merge", "--reb"], ["--rebuild"]),
    (["report", "usage", "--format", "p"], ["parquet"]),
    (["compare", "mod2am", "--figures", ""], ["pdf", "png", "svg"]),
    (["sacct", "--format", "x"], []),
    (["report", "usage", "--by", ""], []),
]


@pytest.fixture(scope="module")
def share(tmp_path_factory):
    """What the build puts into PREFIX/share."""
    prefix = tmp_path_factory.mktemp("prefix")
    shell.main(prefix)
    return prefix / "share"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the user is: a folder and a file."""
    (tmp_path / "results one").mkdir()
    (tmp_path / "results.jsonl").touch()
    monkeypatch.chdir(tmp_path)


def found(name):
    return shutil.which(name) or pytest.skip(f"{name} is not installed")


def in_bash(share, words):
    code = f"""
        . {share}/bash-completion/completions/joulemark
        COMP_WORDS=(joulemark "$@") COMP_CWORD=$#
        _joulemark
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        [found("bash"), "-c", code, "bash", *words], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return sorted(done.stdout.split("\n")[:-1]) if done.stdout != "\n" else []


@pytest.mark.parametrize(("words", "expected"), COMPLETED)
def test_bash(share, words, expected):
    assert in_bash(share, words) == expected


def test_bash_knows_every_command_and_option(share):
    for command in ROOT.all():
        words = [below.words[-1] for below in command.below]
        flags = [flag for option in command.options for flag in option.flags]
        assert set(words) <= set(in_bash(share, [*command.words, ""])), command.words
        assert in_bash(share, [*command.words, "-"]) == sorted(flags), command.words


@pytest.mark.usefixtures("folder")
def test_bash_completes_paths_and_values_after_an_equals_sign(share):
    assert in_bash(share, ["compare", "--plot", "res"]) == ["results one"]
    assert in_bash(share, ["hpl", "results", "res"]) == ["results one", "results.jsonl"]
    named = ["report", "table", "mod2am", "--from", "results.jsonl", "res"]
    assert in_bash(share, named) == ["results one", "results.jsonl"]
    assert in_bash(share, ["plan", "--format", "=", "j"]) == ["json"]
    assert in_bash(share, ["plan", "--format", "="]) == sorted(output.WORDS)


@pytest.mark.parametrize(("words", "expected"), COMPLETED)
def test_fish(share, words, expected):
    code = f"source {share}/fish/vendor_completions.d/joulemark.fish; complete -C $argv[1]"
    line = " ".join(["joulemark", *words])
    done = subprocess.run(
        [found("fish"), "--no-config", "-c", code, line],
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(one.partition("\t")[0] for one in done.stdout.splitlines()) == expected


def in_zsh(share, line):
    """What a Tab after the line makes of it on the screen, which zsh alone knows."""
    program = found("zsh")
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "dumb"
        os.execv(program, [program, "-f", "-i"])

    def read(until):
        text, deadline = "", time.monotonic() + 20
        while not re.search(until, text) and time.monotonic() < deadline:
            if select.select([terminal], [], [], 0.2)[0]:
                text += os.read(terminal, 65536).decode(errors="replace")
        return text

    prepare = f"PS1=; fpath=({share}/zsh/site-functions $fpath); autoload -U compinit; "
    prepare += "compinit -u -D; stty -echo rows 200 cols 200; print READ''Y\n"
    os.write(terminal, prepare.encode())
    read("READY\r")
    os.write(terminal, f"{line}\t\001: \005 END\n".encode())  # as an argument of `:`
    text = read("END")
    os.close(terminal)
    os.waitpid(child, 0)
    return text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("joulemark rep", "joulemark report"),
        ("joulemark report us", "joulemark report usage"),
        ("joulemark report usage --form", "--format="),
        ("joulemark doctor --form", "--format="),  # beside a help with brackets
        ("joulemark report usage --format p", "--format parquet"),
    ],
)
def test_zsh(share, line, expected):
    assert expected in in_zsh(share, line)


def test_every_command_has_a_page_with_its_options(share):
    pages = {path.stem: path.read_text() for path in (share / "man/man1").iterdir()}
    assert set(pages) == {"-".join(("joulemark", *one.words)) for one in ROOT.all()}
    for command in ROOT.all():
        text = pages["-".join(("joulemark", *command.words))].replace("\\-", "-")
        flags = [flag for option in command.options for flag in option.flags if option.help]
        assert not [flag for flag in flags if flag not in text], command.words
        lines = [line for line in command.text.split("\n") if line.strip()]
        assert not [line for line in lines if line not in text and line != "examples:"]


GROFF = ["-man", "-ww", "-Kutf8", "-Tutf8"]


def test_pages_are_clean(share):
    for page in sorted((share / "man/man1").iterdir()):
        done = subprocess.run([found("groff"), *GROFF, "-z", page], capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), page.name


def test_a_page_says_what_the_help_says():
    text = ".TH is no title\n'br is no break\n\n  a\\nb --c\n  .so on\n"
    one = tree.Command(("x",), "says it", (), text)
    page = man.pages(one)["joulemark-x.1"]
    done = subprocess.run(
        [found("groff"), *GROFF, "-P-cbou"], input=page, capture_output=True, text=True
    )
    shown = " ".join(done.stdout.split())
    assert ".TH is no title 'br is no break a\\nb --c .so on" in shown
