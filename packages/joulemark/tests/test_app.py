# `joulemark app`: what a definition may say, what is run, what is a result, what is left.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import joulemark
import pytest
from joulemark import cli
from joulemark.bench import app, cooked
from joulemark.errors import UsageError

from tests.cluster import wait_for

PACKAGES = Path(joulemark.__file__).parents[1]
APPS = Path(__file__).parents[2] / "apps"
DEFINITION = """\
summary: "dd: bytes"
spack: coreutils@9
source: https://example.org
program: dd
version: '^dd (\\d+)'
threads: "{threads}"
settings: {size: 4k, threads: 2, word: sound}
inputs:
  - {file: given, text: "{word}\\n"}
phases:
  - name: write
    command: sh -c 'cat {folder}/given; echo dd 9; echo "speed 2.5 of {ranks}"; echo a >{folder}/b'
    figures:
      - kernel: write
        variant: seq
        pattern: 'speed ([\\d.]+)'
        factor: 1000
        unit: B/s
        size: "{size}"
        operations: "{size} * {ranks}"
        operation: byte
    checks:
      - {pattern: '^sound$'}
  - name: count
    command: cat {folder}/b
    launch: alone
    checks:
      - {pattern: x, absent: true}
"""


@pytest.fixture
def define(tmp_path, monkeypatch):
    """`define(old, new, ...)`: a file of it with other words; its path."""
    monkeypatch.chdir(tmp_path)

    def write(*words):
        text = DEFINITION
        for old, new in zip(words[::2], words[1::2]):
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "own.yaml").write_text(text)
        return "./own.yaml"

    return write


def run(*words):
    return cli.main(["app", "run", *words, "--out", "out", "--cooked", "own.cooked.jsonl"])


def lines():
    return [json.loads(line) for line in Path("own.cooked.jsonl").read_text().splitlines()]


def test_a_run_is_cooked_and_leaves_nothing(define, capsys):
    Path("work").mkdir()
    assert run(define(), "--set", "size=8k", "--folder", "work") == 0
    [line] = lines()
    assert line["performance"] == 2500 and line["time_s"] == pytest.approx(8192 / 2500)
    assert (line["benchmark"], line["kernel"], line["variant"]) == ("own", "write", "seq")
    assert (line["size"], line["threads"], line["ranks"], line["nodes"]) == (8192, 2, 1, 1)
    assert line["manifest"]["version"].startswith("9 (dd ") and line["verified"]
    assert line["option_size"] == "8k" and line["option_word"] == "sound"
    assert list(Path("work").iterdir()) == []
    [measured] = cooked.load(["own.cooked.jsonl"])
    assert measured.options == "size=8k threads=2 word=sound"
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--set", "word=loud"), "write: no ^sound$"),
        (("; echo a", "; exit 4; echo a"), "write: exit status"),
        (("cat {folder}/b\n", "echo x\n"), "count: 'x' (x)"),
        (("cat {folder}/b\n", "cat {folder}/none\n"), "count: exit status 1"),
        (("speed ([", "pace (["), "write: no figure of write"),
        (("speed 2.5", "speed 0"), "write: no figure of write"),
        (("speed 2.5", "speed 1..2"), "write: no figure of write"),
    ],
)
def test_what_is_not_verified_has_no_performance(define, capsys, words, why):
    is_set = words[0] == "--set"
    path = define() if is_set else define(*words)
    assert run(path, *(words if is_set else ())) == 1
    [line] = lines()
    assert not line["verified"] and line["performance"] is None and line["time_s"] is None
    assert why in capsys.readouterr().err
    cooked.load(["own.cooked.jsonl"])


def test_a_phase_after_one_that_failed_is_not_run(define, capsys):
    fails = define("cat {folder}/given; ", "exit 3; ")
    assert run(fails) == 1
    assert not Path("out/count.out").exists()
    assert "own count: has not run" in capsys.readouterr().err


def test_a_check_without_figures_verifies_what_was_before_it(define):
    """The second group's failure says nothing of the first one's."""
    more = """  - name: read
    command: echo speed 7
    figures:
      - {kernel: read, variant: seq, measures: seconds, pattern: 'speed (.*)', unit: op/s,
         size: 1, operations: 14, operation: op}
    checks: [{pattern: speed}]
  - name: bad
    command: echo bad
    checks: [{lines: 2}]
"""
    assert run(define("absent: true}\n", "absent: true}\n" + more)) == 1
    assert [(one["kernel"], one["verified"]) for one in lines()] == [
        ("write", True),
        ("read", False),
    ]
    results = ["app", "results", "./own.yaml", "out", "--cooked", "again.cooked.jsonl"]
    define("absent: true}\n", "absent: true}\n" + more.replace("lines: 2", "lines: 1"))
    assert cli.main(results) == 0
    again = [json.loads(line) for line in Path("again.cooked.jsonl").read_text().splitlines()]
    assert [(one["performance"], one["time_s"]) for one in again] == [(2500, 4096 / 2500), (2, 7)]


@pytest.mark.parametrize(
    ("check", "output", "is_sound"),
    [
        ({"pattern": "e = (.*)", "reference": "2.5", "tolerance": 0.1}, "e = 2.6", True),
        ({"pattern": "e = (.*)", "reference": "2.5", "tolerance": 0.1}, "e = 2.8", False),
        ({"pattern": "e = (.*)", "reference": "2.5", "tolerance": 0.1}, "e = nan", False),
        ({"pattern": "e = (.*)", "reference": "2.5"}, "e = 2.5", True),
        ({"pattern": "e = (.*)", "reference": "1k"}, "e = 1024", True),
        ({"pattern": "e = (.*)", "reference": "all"}, "e = all", True),
        ({"pattern": "e = (.*)", "reference": "all"}, "e = none", False),
        ({"json": "a.1.b", "reference": "3"}, 'note: {"a": [0, {"b": 3}]}', True),
        ({"json": "a.1.b", "reference": "3"}, '{"a": [0]}', False),
        ({"json": "a"}, "no JSON", False),
        ({"json": "a"}, '{"a": {}}', False),
        ({"lines": "2"}, "a\nb\n", True),
        ({"lines": "2"}, "a\n", False),
    ],
)
def test_checks(define, check, output, is_sound):
    text = json.dumps(output)
    path = define("      - {pattern: '^sound$'}\n", f"      - {json.dumps(check)}\n")
    [one] = app.load(Path(path)).phases[0].checks
    assert (one.failure(json.loads(text), {}) is None) == is_sound


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("spack: coreutils@9\n", "", "spack: missing: add what `spack install` takes"),
        ("spack:", "spak:", "spak: is not known; did you mean 'spack'?"),
        ("{threads}", "{thread}", "threads: {thread} is no setting: give one of size"),
        ('"{threads}"', '"{threads} * 2"', None),
        ('"{threads}"', '"{word}"', "threads: 'sound' is no product"),
        ('"{threads}"', '"{threads}+2"', "threads: '2+2' is no product of numbers"),
        ("word: sound", "word: a b", "settings: word: has letters, digits and"),
        ("word: sound", "folder: sound", "settings: 'folder' is a name of the run's"),
        ("file: given", "file: ../x", "inputs.file: '../x' is no plain name"),
        ("text: ", "url: ", "inputs.url: '{word}\n' does not begin with https://"),
        ('text: "{word}\\n"', "url: https://x", "inputs.sha256: missing: add 64 digits"),
        ("speed ([", "speed (", None),
        ("'speed ([\\d.]+)'", "'speed ('", "phases.figures.pattern: 'speed (': miss"),
        (
            "'speed ([",
            "'(s)peed ([",
            "phases.figures.pattern: '(s)peed ([\\d.]+)' has 2",
        ),
        (
            "        variant: seq\n",
            "",
            "phases.figures.variant: missing: add by which way",
        ),
        ("name: count", "name: write", "phases: two have one name"),
        ("name: count", "name: Count!", "phases.name: 'Count!' is not a word of small letters"),
        ("variant: seq", 'variant: "{sq}"', "phases.figures.variant: {sq} is no setting"),
        ("speed ([", "{sped} ([", "phases.figures.pattern: {sped} is no setting: give one of"),
        ("{word}", "{wrd}", "inputs.text: {wrd} is no setting: give one of size, threads, word"),
        ("word: sound", "'Wo rd': sound", "settings: 'Wo rd' is no word of small letters"),
        ("program: dd", "program: d d", "program: 'd d' is not the program's name"),
        ("launch: alone", "launch: lone", "phases.launch: 'lone' is not ranks or"),
        ("cat {folder}/b", "cat 'made", "phases.command: No closing quotation"),
        ("absent: true", "absent: yes", "phases.checks.absent: 'yes' is not true"),
        (
            "    checks:\n      - {pattern: '^sound$'}\n",
            "",
            "phases.figures: nothing verifies them: add `checks`",
        ),
        ("phases:\n", "phases: 3\nsource:\n", "source: is given twice; remove one"),
    ],
)
def test_a_wrong_definition_is_named_with_its_line(define, old, new, said):
    path = Path(define(old, new))
    if said is None:
        app.load(path)
        return
    with pytest.raises(UsageError) as refused:
        app.load(path)
    place, told = re.fullmatch(
        "own.yaml(?::([0-9]+))?: (.*)", str(refused.value), re.DOTALL
    ).groups()
    assert told.startswith(said)
    key = told.partition(":")[0].rpartition(".")[2]
    if place and "missing: add" not in told:
        line = int(place)  # a list begins below its key
        assert any(key in one for one in path.read_text().splitlines()[line - 2 : line])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "size"), "--set size: give NAME=VALUE of own's size, threads, word"),
        (("--set", "siz=2"), "--set siz=2: give NAME=VALUE of own's size, threads, word"),
        (("--set", "size=2;ls"), "--set size=2;ls: a value has letters, digits"),
        (("--set", "size=1mb"), "own: write: size: '1mb' is no product of numbers"),
        (("--set", "size=0"), "own: write: size: 0 is out of range: see --set"),
        (("--set", "threads=all"), "own: threads: 'all' is no product"),
        (("--ranks", "2"), "2 ranks: say what starts them"),
        (("--ranks", "0"), "--ranks 0: must be at least 1"),
        (("--folder", "none"), "none: No such file or directory"),
        (("--launcher", "no-such-launcher"), "no-such-launcher: No such file or directory"),
    ],
)
def test_a_wrong_word_is_said(define, capsys, words, said):
    assert run(define(), *words) in (1, 2)
    assert said in capsys.readouterr().err
    assert not list(Path().glob("joulemark-own-*"))


def test_a_program_that_is_not_there_says_how_to_have_it(define, capsys):
    assert run(define("program: dd", "program: no-such-program")) == 1
    assert "load its module, or install it: spack install coreutils@9" in capsys.readouterr().err


def test_an_input_is_what_its_checksum_says(define, tmp_path, capsys):
    (tmp_path / "there").write_text("sound\n")
    digest = "0" * 64
    url = f'url: "file://{tmp_path}/there", sha256: "{digest}"'
    assert run(define('text: "{word}\\n"', url)) == 1
    said = capsys.readouterr().err
    assert f"not {digest}" in said
    shutil.rmtree("out")
    right = said.split("has sha256 ")[1][:64]
    assert run(define('text: "{word}\\n"', url.replace(digest, right))) == 0


def test_ranks_are_started_by_the_launcher(define):
    Path("launch").write_text('#!/bin/sh\n[ "$1" = -n ] && shift 2; "$@" >/dev/null; exec "$@"\n')
    Path("launch").chmod(0o755)
    assert run(define(), "--ranks", "3", "--launcher", "./launch -n 3") == 0
    [line] = lines()
    assert line["ranks"] == 3 and line["operations"] == 3 * 4096
    assert "of 3" in Path("out/write.out").read_text()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("app", 3),
        ("phases", {"write": 3}),
        ("phases", {"write": {"status": 0, "start_s": 1e300}}),
        ("manifest", {}),
        ("ranks", 0),
        ("ran", {}),
        ("settings", {"size": 3}),
    ],
)
def test_a_damaged_run_is_refused(define, capsys, key, value):
    assert run(define()) == 0
    told = json.loads(Path("out/run.json").read_text())
    Path("out/run.json").write_text(json.dumps({**told, key: value}))
    assert cli.main(["app", "results", "./own.yaml", "out"]) == 2
    assert capsys.readouterr().err.startswith("joulemark: out/run.json: ")


def test_results_are_of_where_it_ran(define, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    assert run(define()) == 0
    monkeypatch.delenv("SLURM_JOB_ID")
    monkeypatch.delenv("SLURMD_NODENAME")
    assert cli.main(["app", "results", "./own.yaml", "out", "--cooked", "own.cooked.jsonl"]) == 0
    assert [(line["job"], line["node"]) for line in lines()] == [("12", "n7")] * 2


CTL = """\
#!/bin/bash
[[ $1 == region && $3 == -- ]] || exit 9
name=$2; shift 3
"$@"; status=$?
echo "$name: 12.5 J +- 0.5 J (k=2) in 2.0 s" >&2
exit $status
"""


def test_each_phase_has_its_energy(define, tmp_path, monkeypatch):
    (tmp_path / "joulemarkctl").write_text(CTL)
    (tmp_path / "joulemarkctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("JOULEMARK_SOCKET", "/nowhere")
    assert run(define("; echo a", "; echo hm >&2; echo a")) == 0
    [line] = lines()
    assert (line["energy_j"], line["energy_uncertainty_j"], line["power_w"]) == (12.5, 0.5, 6.25)
    assert Path("out/write.energy.0").read_text().startswith("own-write: 12.5 J")
    assert Path("out/write.err").read_text() == "hm\n"


def test_energy_that_not_all_nodes_told_is_none(define, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")
    test_energy = "own-write: 12.5 J +- 0.5 J (k=2) in 2.0 s\n"
    assert run(define()) == 0
    Path("out/write.energy.0").write_text(test_energy)
    results = ["app", "results", "./own.yaml", "out", "--cooked", "again.cooked.jsonl"]
    assert cli.main(results) == 0
    assert json.loads(Path("again.cooked.jsonl").read_text())["energy_j"] is None
    assert "1 lines of a region for 2 nodes" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_ended_leaves_no_files_and_no_processes(define, number):
    path = define("; echo a", "; sleep 2763 & sleep 2763; echo a")
    Path("work").mkdir()
    words = ["app", "run", path, "--folder", "work", "--out", "out"]
    env = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    running = subprocess.Popen([sys.executable, "-m", "joulemark", *words], env=env)
    wait_for(lambda: Path("out/write.out").exists() and list(Path("work").iterdir()), what="run")
    time.sleep(0.3)  # its processes are there
    running.send_signal(number)
    assert running.wait(60) == 128 + number
    assert list(Path("work").iterdir()) == []
    assert subprocess.run(["pgrep", "-f", "sleep 2763"]).returncode == 1


def test_a_signal_while_files_are_removed_leaves_none(define, monkeypatch):
    import joulemark.bench.apprun as apprun

    remove = shutil.rmtree

    def interrupted(*words, **more):
        os.kill(os.getpid(), signal.SIGTERM)
        remove(*words, **more)

    monkeypatch.setattr(apprun.shutil, "rmtree", interrupted)
    Path("work").mkdir()
    assert run(define(), "--folder", "work") == 128 + signal.SIGTERM
    assert list(Path("work").iterdir()) == []


def test_two_folders_may_have_definitions(define, tmp_path, monkeypatch, capsys):
    define()
    monkeypatch.setenv("JOULEMARK_APPS", f"{tmp_path}:{APPS}")
    assert cli.main(["app", "list", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    ours = {path.stem for path in APPS.glob("*.yaml")}
    assert {row["name"] for row in rows} == {"own", *ours}
    assert rows[0]["spack"] == "coreutils@9" and rows[0]["phases"] == "write count"


@pytest.mark.parametrize("path", sorted(APPS.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_definition_is_sound_and_in_the_readme(path):
    one = app.load(path)
    readme = (APPS / "README.md").read_text()
    assert f"[{path.name}]({path.name})" in readme
    assert all(phase.checks for phase in one.phases)
    assert not one.phases[-1].figures or path.stem == "none", "the last phase verifies"


def test_the_readme_knows_each_key():
    readme = (APPS / "README.md").read_text()
    for key in (*app.KEYS, *app.INPUT_KEYS, *app.PHASE_KEYS, *app.FIGURE_KEYS, *app.CHECK_KEYS):
        assert f"`{key}" in readme, key


def test_fio_runs_here_and_its_wrong_bytes_are_seen(tmp_path, monkeypatch):
    if not shutil.which("fio"):
        pytest.skip("no fio")
    monkeypatch.chdir(tmp_path)
    small = ("--set", "size=1m", "--set", "block=64k", "--set", "processes=2")
    assert run(str(APPS / "fio.yaml"), *small) == 0
    assert [line["kernel"] for line in lines()] == ["write", "read", "random-read"]
    text = (APPS / "fio.yaml").read_text()
    spoilt = text.replace("  - name: compare", SPOIL + "  - name: compare")
    (tmp_path / "own.yaml").write_text(spoilt)
    shutil.rmtree("out")
    Path("own.cooked.jsonl").unlink()
    assert run("./own.yaml", *small) == 1
    assert not any(line["verified"] for line in lines())


SPOIL = """\
  - name: spoil
    command: sh -c 'printf wrong | dd of={folder}/jm.1.0 bs=1 seek=300000 conv=notrunc; echo 1'
    figures:
      - {kernel: spoil, variant: dd, pattern: '^(\\d+)', unit: op/s,
         size: 1, operations: 1, operation: op}
    checks: [{lines: 1}]
"""


#: What h5bench 675c86d writes and says, by its h5bench_patterns/h5bench_write.c and h5bench_read.c
#: (github.com/hpc-io/h5bench), with two ranks.
H5BENCH = """\
#!{python}
import h5py, numpy, re, sys
config = dict(line.split("=") for line in open(sys.argv[1]).read().splitlines())
particles, steps, ranks = int(config["DIM_1"]), int(config["TIMESTEPS"]), 2
i = numpy.arange(particles)
if config["IO_OPERATION"] == "WRITE":
    z = (i.astype("f4") / numpy.float32(particles)) * numpy.float32(37)
    values = dict(id_1=i.astype("i4"), id_2=(2 * i).astype("f4"), z=z, pz=2 * z)
    for name in ("x", "y", "px", "py"):
        values[name] = numpy.random.random(particles).astype("f4")
    with h5py.File(sys.argv[2], "w") as file:
        for step in range(steps):
            for name, value in values.items():
                file["Timestep_%d/%s" % (step, name)] = numpy.tile(value, ranks)
        {spoil}
    print("Total number of ranks: 2\\nObserved completion time: 0.500 s")
else:
    print("Total number of ranks: 2\\nObserved read completion time: 0.250 s")
"""


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("", None),
        ('file["Timestep_0/id_1"][0] = 1', "id_1"),
        ('file["Timestep_1/id_2"][1999] = 0', "id_2"),
        ('file["Timestep_0/pz"][1000] = 5', "pz"),
        ('file["Timestep_1/x"][1500] = 5', "x"),
        ('del file["Timestep_3"]', "Timestep_3"),
    ],
)
def test_h5benchs_wrong_bytes_are_seen(tmp_path, monkeypatch, spoil, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}")
    for name in ("h5bench_write", "h5bench_read"):
        Path(name).write_text(H5BENCH.format(python=sys.executable, spoil=spoil or "pass"))
        Path(name).chmod(0o755)
    words = ("--set", "particles=1000", "--ranks", "2", "--launcher", "env")
    assert run(str(APPS / "h5bench.yaml"), *words) == (1 if said else 0)
    rates = {line["kernel"]: line["performance"] for line in lines()}
    due = 1000 * 4 * 2 * 32
    assert rates == (
        {"write": None, "read": None} if said else {"write": 2 * due, "read": 4 * due}
    )
    assert said is None or said in Path("out/compare.err").read_text()


def test_h5benchs_ranks_are_joined(tmp_path, monkeypatch, capsys):
    test_h5benchs_wrong_bytes_are_seen(tmp_path, monkeypatch, "", None)
    told = json.loads(Path("out/run.json").read_text())
    Path("out/run.json").write_text(json.dumps({**told, "ranks": 3}))
    assert cli.main(["app", "results", str(APPS / "h5bench.yaml"), "out"]) == 1
    assert "h5bench write: no ^Total number of ranks: {ranks}$;" in capsys.readouterr().err
