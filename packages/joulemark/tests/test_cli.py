# The command line itself: help, its examples, the version, and how fast `merge` starts.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import argparse
import errno
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import joulemark
import pytest
from joulemark import cli, output
from joulemark.slurm import sacct

COMMANDS = (["merge"], ["report", "table"], ["report", "plot"], ["diff"], ["trend"])


def leaves(parser, words=()):
    """Every command's parser, by its words."""
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    for name, below in [pair for group in groups for pair in group.choices.items()]:
        yield from leaves(below, (*words, name))
    if not groups:
        yield words, parser


def test_formats_have_the_same_words_everywhere():
    found = {}
    for words, parser in leaves(cli.parser([])):
        for action in parser._actions:
            if {"--format", "--json", "--out"} & set(action.option_strings):
                found.setdefault(words, []).append(action)
    found = {words: some for words, some in found.items() if len(some) > 1}
    commands = {("report", "usage"), ("compare",), ("doctor",), ("plan",), ("job",), ("top",)}
    assert commands <= set(found)
    for words, (form, alias, out) in found.items():
        assert form.option_strings == ["--format"] and out.option_strings == ["--out"], words
        assert form.choices == output.WORDS and form.default is None
        assert (alias.option_strings, alias.dest, alias.const) == (["--json"], "format", "json")


@pytest.mark.parametrize("option", ["--out", "--output"])
def test_every_command_writes_to_out(site, option):
    site.leave()
    site.out("merge")
    path = site.folder / "joulemark.prom"
    assert site.out("export", "prometheus", option, str(path)) == ""
    assert path.read_text() == site.out("export", "prometheus")


def help_of(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main([*command, "--help"])
    assert stopped.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "command", [words for words, _ in leaves(cli.parser([])) if words != ("sacct",)]
)
def test_examples_in_help_are_valid(command, capsys):
    examples = re.findall(
        r"^  joulemark (.*?)(?:(?:  | \|).*)?$", help_of(command, capsys), re.MULTILINE
    )
    assert examples
    for example in examples:
        assert callable(cli.parser(shlex.split(example)).parse_args(shlex.split(example)).run)


def test_sacct_s_help_has_examples():
    assert len(re.findall(r"^  joulemark sacct ", sacct.HELP, re.MULTILINE)) >= 3


@pytest.mark.parametrize("command", [[], ["report"]])
def test_help_lists_the_commands(command, capsys):
    text = help_of(command, capsys)
    for name in ("table", "plot") if command else ("merge", "sacct", "report"):
        assert name in text


def test_version(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"joulemark {joulemark.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["merge", "--job", "x"],
        ["merge", "--wait", "-1"],
        ["merge", "--wait", "86400.1"],
        ["report", "plot", "copy"],
        ["report", "plot", "copy", "--out", "x", "--peak", "0"],
        ["report", "table", "copy", "--compare", "plain"],
        ["report", "jobs", "--top", "0"],
        ["report", "jobs", "--top", "99999999999999999999"],
        [],
    ],
)
def test_wrong_usage_is_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2


LEAVES = [words for words, _ in leaves(cli.parser([])) if words != ("sacct",)]
# Arguments with which each command finds the configuration, or an argument, wrong as it runs.
WRONG = {
    **{"merge": "", "receive": "", "job": "12", "top": "--nodes n1 --once", "budget": ""},
    **{"report usage": "", "report jobs": "", "report nodes": "", "report html": ""},
    **{"report profile": "12", "export prometheus": "", "store correct": "12 --charge 0% --why x"},
    **{"store corrections": "", "store prune": "--keep 5y", "doctor": "--nodes n[1-"},
    **{"calibrate": "a/b --against c/d --daemon /nowhere", "plan": "--accuracy 200%"},
    **{"hpl dat": "--ranks 0", "hpl results": "nowhere"},
    **{f"report {name}": "triad --from nowhere" for name in ("table", "scaling")},
    **{"report plot": "triad --from nowhere --out plots", "diff": "nowhere nowhere"},
    **{"compare": "triad --with LRS", "trend": "triad --from nowhere"},
    **{f"export {name}": "--from nowhere --out x" for name in ("thicket", "benchpark")},
    **{"export reframe": "--from nowhere", "io collect": "--period 0"},
    **{"io survey": "nowhere", "io rpcs": "nowhere"},
    **{"report interval": "--mtbf 1h --from nowhere", "app list": "--out x.foo"},
    **{"fs scan": "nowhere x.db", "fs sizes": "nowhere.db", "fs list": "nowhere.db"},
    **{"fs diff": "nowhere.db"},
    **{"app run": "nothing", "app results": "fio nowhere"},
}


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_an_option_that_no_command_has_is_exit_code_2(words):
    with pytest.raises(SystemExit) as stopped:
        cli.main([*words, "--no-such-option"])
    assert stopped.value.code == 2


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_what_is_wrong_only_as_it_runs_is_exit_code_2_in_one_line(site, monkeypatch, words):
    monkeypatch.chdir(site.folder)
    monkeypatch.setenv("SLURM_CONF", str(site.folder / "slurm.conf"))
    site.configure("prize_per_kwh: 0.3\n")
    said = site.refuses(*words, *WRONG[" ".join(words)].split())
    assert said.startswith("joulemark: ") and said.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "left_out"),
    [
        ("merge --tell x", "--tell"),
        ("merge --nodes n1", "--nodes"),
        ("report usage --levels 50", "--levels"),
        ("report usage --budget --by user", "--by"),
        ("report usage --budget --since 2026-11-01", "--since"),
        ("report usage --budget --plot x.png", "--plot"),
        ("report jobs --steps", "--steps"),
        ("report jobs --all --top 5 --format csv", "--top"),
        ("report profile 12 --overlay", "--overlay"),
        ("report profile 12 --label one --label two", "--label two"),
        ("report scaling triad --with LRZ --figures svg", "--figures svg"),
        ("compare triad --with LRZ --figures svg", "--figures svg"),
        ("doctor --wait 3", "--wait"),
        ("hpl results out --threads 0", "--threads 0"),
        ("fs sizes x.db --time atime", "--time atime"),
        ("fs list x.db --time atime", "--time atime"),
        ("fs list x.db --print0 --out x.csv", "--print0"),
    ],
)
def test_no_option_is_left_out_in_silence(site, monkeypatch, words, left_out):
    monkeypatch.chdir(site.folder)
    Path("out").write_text("T/V N NB P Q Time Gflops\nWR11C2R4 100 10 1 1 0.1 1.0e+00\n")
    assert site.refuses(*words.split()).startswith(f"joulemark: {left_out}")


BAD_VALUES = {
    "merge --job 4294967296": "argument --job: '4294967296' is not a job's raw id",
    "merge --job 12 --nodes n[5-1]": "--nodes: '[5-1]' is not a range of node numbers",
    "merge --job 12 --nodes n[\xb2]": "--nodes: '[\xb2]' is not a range of node numbers",
    "merge --job 12 --nodes \x1bn1": "--nodes: '?n1' is not a node list",
    "doctor --nodes n[1-99999999999]": "--nodes: '[1-99999999999]' is not a range of node numbers",
    "hpl dat --ranks 99999999999999999999": "--ranks 99999999999999999999: must be from 1 to 2147",
    "hpl dat --n 99999999999": "--n 99999999999: must be whole numbers",
    "export reframe --database ": "--database '': is no value",
    "report usage --plot ": "--plot '': is no value",
    "report usage --clusters=": "--clusters=: is no value",
    "report usage --since=--": "--since=--: is no value",
    f"report table triad --from {'x' * 256}": f"--from {'x' * 256}: File name too long: name",
    "plan --accuracy 2% --daemon /bin/echo": "/bin/echo: does not answer --describe",
    "report table triad --from /proc/self/mem": "Input/output error: name other results",
}


@pytest.mark.parametrize("words", BAD_VALUES)
def test_a_bad_value_is_named_with_its_option(site, monkeypatch, capsys, words):
    """Found by a run of all options with values that are none."""
    monkeypatch.chdir(site.folder)
    monkeypatch.setenv("SLURM_CONF", str(site.folder / "slurm.conf"))
    (site.folder / "slurm.conf").write_text("ClusterName=demo\nNodeName=n1\n")
    try:
        code, _, said = site.run(*words.split(" "))
    except SystemExit as stopped:
        code, said = stopped.code, capsys.readouterr().err
    assert code == 2 and BAD_VALUES[words] in said


def test_a_file_that_cannot_be_written_is_named_with_its_option(site):
    site.leave()
    site.out("merge")
    out = site.folder / "no" / "such.csv"
    said = site.fails("report", "usage", "--out", str(out))
    assert said == f"joulemark: --out {out}: No such file or directory: name another file\n"


def test_readme_and_help_have_the_same_exit_codes():
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    in_help = re.findall(r"^ +(\d+)  ", cli.EPILOG, re.MULTILINE)
    assert in_help == re.findall(r"^\| (\d+) \|", readme, re.MULTILINE) == ["0", "1", "2", "130"]


def test_a_whole_day_may_be_waited_for(site):
    assert site.run("merge", "--wait", "86400")[0] == 0


def test_nodes_without_a_job_is_an_error(site):
    assert site.run("merge", "--nodes", "n1")[0] == 2


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["sacct", "--help"]])
def test_a_reader_that_has_gone_is_no_error_message(words, unbuffered):
    """`joulemark --help | head -1`: what Python still holds is written when the command ends."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as gone:
        done = run_command(words, gone, unbuffered)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_line(unbuffered):
    with open("/dev/full", "wb") as full:
        done = run_command(["--help"], full, unbuffered)
    assert done.returncode == 1
    assert done.stderr == "joulemark: [Errno 28] No space left on device\n"


@pytest.mark.parametrize(
    "words",
    [
        ["report", "usage"],
        ["report", "jobs"],
        ["report", "nodes"],
        ["report", "html"],
        ["job", "12"],
        ["sacct", "--help"],
        ["--help"],
        ["merge", "--job", "12", "--print-comment"],
    ],
)
def test_a_closed_stdout_is_one_line(site, words):
    site.leave()
    site.out("merge")
    done = run_command(words, None, "", preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (1, "joulemark: [Errno 9] Bad file descriptor\n")


def test_who_writes_to_a_file_needs_no_stdout(site):
    site.leave()
    out = site.folder / "usage.csv"
    site.out("merge")
    words = ["report", "usage", "--out", out]
    done = run_command(words, None, "", preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")
    assert out.read_text()


def run_command(words, output, unbuffered, **how):
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, "-m", "joulemark", *words]
    return subprocess.run(
        command, stdout=output, stderr=subprocess.PIPE, text=True, env=environment, **how
    )


def test_a_folder_that_may_not_be_read_is_one_line(site, monkeypatch):
    def refuse(folder):
        raise PermissionError(errno.EACCES, "Permission denied", folder)

    monkeypatch.setattr(os, "scandir", refuse)
    assert site.fails("merge") == f"joulemark: [Errno 13] Permission denied: '{site.records}'\n"


def test_merge_loads_nothing_heavy(site):
    code = (
        "import sys; from joulemark import cli; cli.main(['merge']);"
        "print(*[m for m in ('matplotlib', 'rich', 'numpy', 'subprocess') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
