# Parts of one program's run: when they were, their joules by samples, and IO500's results.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import os
import random
import re
import shutil
import time
from pathlib import Path

import pytest
from joulemark import cli
from joulemark.bench import cooked, parts

APPS = Path(__file__).parents[2] / "apps"
FORM = parts.Form(
    folder="{folder}",
    file="result.txt",
    begins=re.compile(r"^\[(.+)\]$", re.MULTILINE),
    start=re.compile(r"^start (.+)$", re.MULTILINE),
    end=re.compile(r"^end (.+)$", re.MULTILINE),
    seconds=re.compile(r"^took (.+)$", re.MULTILINE),
    time=None,
    details="{part}.*",
)
KEYS = "energy_uj={} known=1 systematic_uj={} common_uj=0 random_uj=0 ends_uj={} estimated=0"


def samples(points, real_s=0.0, systematic=0.0, ends_j=0.0):
    """As the sampler writes them: of (time since 1970, joules)."""
    lines = [f"clocks real_s={real_s + 50:.6f} boot_s=50.00"]
    for at_s, joules in points:
        values = KEYS.format(round(1e6 * joules), 1e6 * joules * systematic, 1e6 * ends_j)
        lines.append(f"node=n1 job=7 time_ns={round(1e9 * (at_s - real_s))} {values} max_hz=10")
    return "\n".join(lines) + "\n"


def sections(*told, form=FORM, offset_s=0, folder=None):
    text = "".join(f"[{name}]\n{rest}\n" for name, rest in told)
    (folder / "result.txt").write_text(f"before\n{text}")
    return parts.read(form, folder, offset_s)


def test_a_stamp_is_cut_to_its_last_digit(tmp_path):
    (tmp_path / "a.txt").write_text("more of a\n")
    a = ("a", "start 100\nend 102")
    found = sections(a, ("b", "start 103.25\nend 103.50"), ("c", "start 1"), folder=tmp_path)
    assert list(found) == ["a", "b"]
    assert (found["a"].start, found["a"].end) == (parts.Span(100, 101), parts.Span(102, 103))
    assert found["b"].end.most_s == pytest.approx(103.51)
    assert found["a"].text.endswith("end 102\nmore of a\n")


@pytest.mark.parametrize(
    ("took", "start", "end"),
    [
        ("1.50", (100.49, 101), (102, 102.51)),  # begun earlier, it had ended before 102
        ("2.90", (100, 100.1), (102.9, 103)),
        ("9.00", (100, 101), (102, 103)),  # beside the stamps: says nothing
    ],
)
def test_a_finer_time_narrows_both_borders(tmp_path, took, start, end):
    found = sections(("a", f"start 100\nend 102\ntook {took}"), folder=tmp_path)["a"]
    assert (found.start.least_s, found.start.most_s) == pytest.approx(start)
    assert (found.end.least_s, found.end.most_s) == pytest.approx(end)


def test_times_are_of_the_runs_zone(tmp_path):
    form = parts.Form(**{**vars(FORM), "time": "%Y-%m-%d %H:%M:%S"})
    told = ("a", "start 2026-12-01 04:21:23\nend 2026-12-01 05:21:23")
    found = sections(told, form=form, offset_s=7200, folder=tmp_path)["a"]
    assert found.start.least_s == 1796091683 and found.end.least_s == 1796095283


def of(curve, *those):
    return parts.energy_of([curve], those)


def part(start, end):
    return parts.Part("a", "", parts.Span(*start), parts.Span(*end))


def test_the_error_has_what_may_have_been_drawn_beside_the_borders():
    """100 W, sampled each second."""
    curve = parts.Curve(samples([(at_s, 100 * at_s) for at_s in range(11)]))
    exact = of(curve, part((2, 2), (7, 7)))
    assert (exact.joules, exact.error, exact.seconds) == pytest.approx((500, 0, 5))
    between = of(curve, part((2.5, 2.5), (7.5, 7.5)))
    assert (between.joules, between.error) == pytest.approx((500, 100))
    cut = of(curve, part((2, 3), (7, 8)))
    assert (cut.joules, cut.error) == pytest.approx((500, 100))


def test_the_error_has_the_instruments():
    """5 % of what was drawn meanwhile, and the ends of both samples; k=2."""
    curve = parts.Curve(samples([(0, 0), (10, 1000)], systematic=0.05, ends_j=3))
    assert of(curve, part((0, 0), (10, 10))).error == pytest.approx(2 * (50**2 + 18) ** 0.5)


def test_samples_are_of_both_clocks():
    curve = parts.Curve(samples([(1e9, 0), (1e9 + 10, 50)], real_s=1e9 - 77))
    assert curve.at_j(1e9 + 5) == pytest.approx(25)


@pytest.mark.parametrize("span", [(-1, 5), (5, 11)])
def test_what_was_not_sampled_is_not_known(span):
    curve = parts.Curve(samples([(0, 0), (10, 50)]))
    with pytest.raises(parts.PartsError, match="was not sampled from its start to its end"):
        of(curve, part((span[0] - 0.5, span[0]), (span[1], span[1] + 0.5)))


def test_a_part_was_while_the_program_was_sampled():
    """A stamp that is cut may lie before its start."""
    curve = parts.Curve(samples([(0, 0), (10, 50)]))
    energy = of(curve, part((-0.9, 0.1), (9.9, 10.9)))
    assert energy.joules == pytest.approx(5 * 9.9) and energy.error == pytest.approx(49.5)


def test_a_part_of_no_time_may_have_drawn_all_that_is_around_it():
    curve = parts.Curve(samples([(0, 0), (1, 100), (2, 200), (3, 300)]))
    energy = of(curve, part((1.5, 1.5), (1.5, 1.5)))
    assert (energy.joules, energy.error) == (0, pytest.approx(100))


def test_lines_that_are_no_samples_are_passed_over():
    text = samples([(0, 0), (5, 5), (10, 50)]).replace(
        "energy_uj=5000000 known=1", "energy_uj=5000000 known=0"
    )
    curve = parts.Curve(text + "node=n1 job=7 time_ns=11000\njoulemarkctl: no answer\n")
    assert [one.energy_j for one in curve.samples] == [0, 50]
    with pytest.raises(parts.PartsError, match="do not begin with the clocks"):
        parts.Curve(text.partition("\n")[2])


def test_parts_and_what_is_between_are_the_whole():
    """Power that jumps anywhere, stamps that are cut, samples when they come: each part's truth is
    within its error, and so is the whole's."""
    draw = random.Random(7)
    is_within = []
    for _ in range(300):
        grid_s = 0.01
        power_w, powers_w = 100.0, []
        for _ in range(2000):
            if draw.random() < 0.02:
                power_w = draw.choice((20.0, 100.0, 400.0))
            powers_w.append(power_w)
        truth_j = [0.0]
        for one in powers_w:
            truth_j.append(truth_j[-1] + one * grid_s)
        at = [0, *sorted(draw.sample(range(1, 2000), draw.randint(2, 40))), 2000]
        curve = parts.Curve(samples([(i * grid_s, truth_j[i]) for i in at]))
        borders = sorted(draw.sample(range(200, 1800), 5))
        spans = list(zip(borders, borders[1:]))  # parts without a gap between them
        step_s = draw.choice((0.01, 0.1, 1.0))
        found = []
        for i, j in spans:
            start, end = (step_s * (k * grid_s // step_s) for k in (i, j))
            found.append(part((start, start + step_s), (end, end + step_s)))
        energies = [of(curve, one) for one in found]
        for (i, j), energy in zip(spans, energies):
            assert abs(energy.joules - (truth_j[j] - truth_j[i])) <= energy.error + 1e-6
        whole_j = truth_j[borders[-1]] - truth_j[borders[0]]
        together = of(curve, *found)
        assert abs(together.joules - whole_j) <= together.error + 1e-6
        some_j = sum(truth_j[j] - truth_j[i] for i, j in spans[::2])
        some = of(curve, *found[::2])
        is_within.append(abs(some.joules - some_j) <= some.error)
        exact = [part((i * grid_s,) * 2, (j * grid_s,) * 2) for i, j in spans]
        sum_j = sum(of(curve, one).joules for one in exact)
        assert sum_j == pytest.approx(
            curve.at_j(borders[-1] * grid_s) - curve.at_j(borders[0] * grid_s), abs=1e-5
        )
    assert sum(is_within) >= 0.95 * len(is_within)


def test_borders_of_several_parts_are_independent():
    curve = parts.Curve(samples([(at_s, 100 * at_s) for at_s in range(40)]))
    several = [part((at_s + 0.5,) * 2, (at_s + 2.5,) * 2) for at_s in range(0, 36, 4)]
    assert of(curve, several[0]).error == pytest.approx(100)
    assert of(curve, *several).error == pytest.approx(2 / 3**0.5 * 300)
    assert parts.energy_of([curve] * 2, several).error == pytest.approx(2 / 3**0.5 * 600)


# -- a run ---------------------------------------------------------------------------------------

#: `joulemarkctl` of a node that draws 100 W; it takes a while to begin, as `--every`.
CTL = """\
#!/usr/bin/env python3
import select, subprocess, sys, time
def tell():
    now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    print(f"time_ns={now_ns} " + KEYS.format(now_ns // 10, 0, 0), flush=True)
if sys.argv[1] == "region":
    start = time.monotonic()
    status = subprocess.run(sys.argv[4:], close_fds=False).returncode
    took = time.monotonic() - start
    print(f"{sys.argv[2]}: {100 * took:.3f} J +- 0.500 J (k=2) in {took:.3f} s", file=sys.stderr)
    sys.exit(status)
if "--every" not in sys.argv:
    tell()
while "--every" in sys.argv and not select.select([sys.stdin], [], [], 0.1)[0]:
    tell()
"""
#: Two parts, whose stamps have six digits.
PROGRAM = """\
#!/usr/bin/env python3
import os, sys, time
os.mkdir(sys.argv[1])
with open(sys.argv[1] + "/result.txt", "w") as file:
    for name, rate in (("one", 5), ("two", 20)):
        start = time.time()
        time.sleep(0.2)
        print(f"[{name}]\\nstart {start:.6f}\\nend {time.time():.6f}", file=file)
        print(f"rate {rate}\\ntook 2", file=file)
print("score 9 of 3" + WORD)
"""
DEFINITION = """\
summary: "two parts"
spack: twice
source: https://example.org
program: twice
settings: {size: 4}
phases:
  - name: run
    command: twice {folder}/results
    parts: {folder: "{folder}/results", file: result.txt, begins: '^.(\\w+).$',
            start: '^start (.+)', end: '^end (.+)'}
    caveats: {LOUD: loud}
    figures:
      - &figure {kernel: "{part}", variant: way, parts: one two, pattern: 'rate (.*)',
                 seconds: 'took (.*)', unit: op/s, operation: op, size: "{size}"}
      - {kernel: both, variant: way, parts: one two, pattern: 'rate (.*)', seconds: 'took (.*)',
         unit: op/s, operation: op, size: "{size}"}
      - {kernel: score, variant: way, parts: one two, whole: true, pattern: 'score (\\d+)',
         seconds: 'took (.*)', unit: op/s, operation: op, size: "{size}"}
      - {kernel: all, variant: way, pattern: 'score (\\d+)', unit: op/s, operation: op,
         operations: "{size}", size: "{size}"}
    checks: [{pattern: score}, {parts: one two, pattern: wrong, absent: true}]
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a program, its definition and joulemarkctl: `place(old, new)` of the two."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("JOULEMARK_SOCKET", "/nowhere")

    def write(old="", new=""):
        texts = {
            "joulemarkctl": CTL.replace("KEYS", repr(KEYS)),
            "twice": PROGRAM.replace("WORD", '""'),
            "own.yaml": DEFINITION,
        }
        assert any(old in text for text in texts.values())
        for name, text in texts.items():
            Path(name).write_text(text.replace(old, new) if old else text)
            Path(name).chmod(0o755)

    write()
    return write


def run(path="./own.yaml", *words):
    code = cli.main(["app", "run", path, *words, "--out", "out", "--cooked", "own.cooked.jsonl"])
    texts = Path("own.cooked.jsonl").read_text().splitlines()
    return code, {line["kernel"]: line for line in map(json.loads, texts)}


AGAIN = ("app", "results", "./own.yaml", "out", "--cooked")


def complaints(captured):
    """But that programs of tests are scripts, and what all parts have in common."""
    lines = captured.readouterr().err.splitlines()
    return [line for line in lines if not re.search("is no program of ELF| J [(]k=2[)]", line)]


def test_each_part_has_its_energy(place, capfd):
    code, lines = run()
    assert (code, complaints(capfd)) == (0, [])
    assert {key: line["performance"] for key, line in lines.items()} == {
        "one": 5,
        "two": 20,
        "both": 12.5,  # 50 operations in 4 s
        "score": 9,
        "all": 9,
    }
    assert lines["both"]["operations"] == 50 and lines["score"]["operations"] == 36
    for key in ("one", "two"):
        energy_j, error_j = lines[key]["energy_j"], lines[key]["energy_uncertainty_j"]
        assert energy_j == pytest.approx(100 * lines[key]["region_seconds"], abs=error_j)
        assert 20 <= energy_j < lines["all"]["energy_j"] and error_j < 50
    sum_j = lines["one"]["energy_j"] + lines["two"]["energy_j"]
    assert lines["both"]["energy_j"] == lines["score"]["energy_j"] == pytest.approx(sum_j)
    assert sum_j < lines["all"]["energy_j"]
    assert lines["two"]["start"] >= lines["one"]["start"]
    cooked.load(["own.cooked.jsonl"])
    assert not list(Path().glob("joulemark-own-*"))


def test_all_parts_together_are_told(place, capfd):
    _, lines = run()
    both = lines["both"]
    said = capfd.readouterr().err
    assert f"joulemark: own both, way: 12.5 op/s, {5e4 / both['energy_j']:.4g} op/kJ, " in said
    assert f", {both['energy_j']:.1f} J +- {both['energy_uncertainty_j']:.1f} J (k=2)\n" in said
    assert "own one, way" not in said and "own all, way" not in said


def test_bytes_are_told_in_gibibytes(place, capfd):
    place("unit: op/s", "unit: B/s")
    _, lines = run()
    efficiency = 5e4 / 2**30 / lines["both"]["energy_j"]
    said = f"own both, way: {12.5 / 2**30:.4g} GiB/s, {efficiency:.4g} GiB/kJ, "
    assert said in capfd.readouterr().err


def test_an_estimate_is_told_and_no_energy_is_not_told(place, monkeypatch, capfd):
    place("estimated=0", "estimated=1")
    run()
    assert " J (k=2), estimated by a model\n" in capfd.readouterr().err
    shutil.rmtree("out")
    monkeypatch.delenv("JOULEMARK_SOCKET")
    run()
    assert "joulemark: own both, way: 12.5 op/s\n" in capfd.readouterr().err


def test_sampling_is_from_before_the_program_until_after_it(place):
    run()
    times_s = parts.Curve(Path("out/run.samples.0").read_text()).times_s
    stamps = re.findall(
        r"^(?:start|end) (.+)$", Path("out/run.parts/result.txt").read_text(), re.M
    )
    assert times_s[0] < float(min(stamps)) and float(max(stamps)) + 0.2 < times_s[-1]


def test_a_caveat_is_in_every_variant(place, capsys):
    place('""', '", loud"')
    code, lines = run()
    assert code == 0 and {line["variant"] for line in lines.values()} == {"way-LOUD"}
    assert "own run: LOUD, as the variants say" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rate {rate}", "rate {rate} wrong", "own run: one: 'wrong' (wrong)"),
        ('("two", 20)', '("three", 20)', "own run: no part two;"),
        ("file: result.txt", "file: results.txt", "own run: no part one, two;"),
        ('("two", 20)', '("two", 0)', "own run: no figure of two;"),
        ('"/result.txt", "w") as', '"/result.txt", "x") as', None),
        ('print("score', 'sys.exit(3)\nprint("score', "own run: exit status 3;"),
    ],
)
def test_a_part_that_is_not_verified_leaves_none(place, capsys, old, new, said):
    place(old, new)
    code, lines = run()
    assert code == (1 if said else 0)
    assert all(line["verified"] == (not said) for line in lines.values())
    assert (said or "") in capsys.readouterr().err
    assert said is None or all(line["energy_j"] is None for line in lines.values())


def test_results_are_read_again_in_another_zone(place, monkeypatch):
    _, before = run()
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    Path("own.cooked.jsonl").unlink()
    assert cli.main([*AGAIN, "own.cooked.jsonl"]) == 0
    again = map(json.loads, Path("own.cooked.jsonl").read_text().splitlines())
    assert {line["kernel"]: line for line in again} == before
    monkeypatch.undo()
    time.tzset()


def test_nodes_are_summed_with_their_errors(place):
    _, before = run()
    for name in ("samples", "energy"):
        shutil.copy(f"out/run.{name}.0", f"out/run.{name}.1")
    told = json.loads(Path("out/run.json").read_text())
    Path("out/run.json").write_text(json.dumps({**told, "nodes": 2}))
    assert cli.main([*AGAIN, "again.cooked.jsonl"]) == 0
    lines = map(json.loads, Path("again.cooked.jsonl").read_text().splitlines())
    for line in lines:
        for key in ("energy_j", "energy_uncertainty_j"):
            assert line[key] == pytest.approx(2 * before[line["kernel"]][key])
        assert line["region_seconds"] == before[line["kernel"]]["region_seconds"]


def test_parts_of_nodes_that_did_not_tell_have_no_energy(place, capsys):
    run()
    shutil.copy("out/run.samples.0", "out/run.samples.1")
    assert cli.main([*AGAIN, "again.cooked.jsonl"]) == 0
    assert "run one: samples of 2 nodes, not of 1: the result has no" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("begins: '^.(\\w+).$',", "", "phases.parts.begins: missing: add a pattern"),
        ("begins: '^.(\\w+).$'", "begins: '^..$'", "phases.parts.begins: '^..$' needs one group"),
        ("begins: '^.(\\w+).$'", "begins: '^.({size}).$'", "phases.parts.begins: '^.({size}).$'"),
        ("file: result.txt, ", "", "phases.parts.file: missing: add the file"),
        ("file: result.txt", "fil: result.txt", "phases.parts.fil: is not known; did you mean"),
        ("parts: {folder:", "parts: here\n    xparts: {folder:", "phases.xparts: is not known"),
        ("    parts: {folder:", "    caveats: {folder:", "phases.caveats: is given twice"),
        ("seconds: 'took (.*)', unit", "operations: 3, unit", "phases.figures.parts: are summed"),
        (
            "seconds: 'took (.*)', unit",
            "xseconds: 'took (.*)', unit",
            "phases.figures.xseconds: is",
        ),
        ("whole: true, ", "whole: true, operations: 3, ", "phases.figures.seconds: makes"),
        ("kernel: all,", "kernel: all, whole: true,", "phases.figures.whole: is of `parts`"),
        ("kernel: all,", 'kernel: "{part}",', "phases.figures.kernel: {part} is no setting"),
        ("LOUD: loud", "LOUD: 'lo(ud'", "phases.caveats: 'lo(ud'"),
        ("LOUD: loud", "'SO LOUD': loud", "phases.caveats: 'SO LOUD' is no word"),
    ],
)
def test_wrong_parts_are_named(place, capsys, old, new, said):
    place(old, new)
    assert cli.main(["app", "list", "./own.yaml"]) == 2
    assert re.match(rf"joulemark: own.yaml(:\d+)?: {re.escape(said)}", capsys.readouterr().err)


# -- IO500 ---------------------------------------------------------------------------------------

#: Writes what IO500 02091cf254d8 does with verbosity 2 (github.com/IO500/io500: src/main.c, and
#: PRINT_PAIR of include/io500-debug.h; of IOR 5fcf0ba995fd src/ior-output.c and src/mdtest.c).
IO500 = r"""#!/usr/bin/env python3
import os, re, sys, time
config = open(sys.argv[1]).read()
folder = re.search("resultdir = (.*)", config)[1]
valid = ""
PARTS = '''
ior-easy-write mdtest-easy-write timestamp ior-hard-write mdtest-hard-write find
ior-easy-read mdtest-easy-stat ior-hard-read mdtest-hard-stat
mdtest-easy-delete mdtest-hard-read mdtest-hard-delete ior-rnd4K-easy-read
'''.split()
os.mkdir(folder)
def stamp():
    return time.strftime("%Y-%m-%d %H:%M:%S")
print("IO500 version 02091cf254d8 (standard)")
with open(folder + "/result.txt", "w") as file:
    def pair(key, value):
        print(f"{key:<15} = {value}", file=file)
    print("[run]", file=file)
    pair("procs", 2)
    for name in PARTS:
        print(f"\n[{name}]", file=file)
        pair("t_start", stamp())
        unit = "GiB/s" if name[0] == "i" else "kIOPS"
        with open(f"{folder}/{name}.{'csv' if name == 'find' else 'txt'}", "w") as more:
            if name == "find":
                print("runtime: 0.500000 rate: 2000.000000", file=more)
            elif name.startswith("ior"):
                access = name.rpartition("-")[2]
                print("tasks               : 2", file=more)
                print(f"{access:<10}2048.00    1024.0     0.000016    262144     2048.00    "
                      "0.000074   1.64       0.003874   4.00       0", file=more)
            else:
                print("mdtest-4.1.0+dev was launched with 2 total task(s) on 1 node(s)", file=more)
                pair("time", "0.500000")
        pair("score", "2.000000")
        pair("t_delta", "0.1000")
        print(f"[RESULT] {name:>20} {2:>15.6f} {unit} : time 0.100 seconds{valid}")
        pair("t_end", stamp())
    print("\n[SCORE]", file=file)
    pair("SCORE", "4.5" + valid)
print(f"[SCORE ] Bandwidth 2.000000 GiB/s : IOPS 2.000000 kiops : TOTAL 4.500000{valid}")
"""


def io500(place, old="", new=""):
    assert old in IO500
    Path("io500").write_text(IO500.replace(old, new) if old else IO500)
    Path("io500").chmod(0o755)
    Path("launch").write_text('#!/bin/sh\nexec "$@"\n')
    Path("launch").chmod(0o755)
    ranks = ("--ranks", "2", "--launcher", "./launch")
    return run(str(APPS / "io500.yaml"), *ranks)


def test_io500_has_a_score_and_joules_of_each_part(place, capfd):
    code, lines = io500(place)
    said = capfd.readouterr().err
    assert code == 0 and "no energy" not in said
    assert len(lines) == 15 and {line["variant"] for line in lines.values()} == {"POSIX"}
    assert lines["score"]["performance"] == 4.5
    assert lines["score"]["operations"] == pytest.approx(4.5 * 12 * 0.1)
    assert lines["ior-hard-read"]["operations"] == 2 * 2**30 * 4
    assert lines["blocks"]["operations"] == 4 * 2 * 2**30 * 4
    assert lines["mdtest-hard-stat"]["operations"] == 2000 * 0.5
    assert lines["files"]["operations"] == 7 * 2000 * 0.5
    assert lines["find"]["operations"] == 2000 * 0.5
    assert lines["find"]["manifest"]["version"].startswith("02091cf254d8")
    for key, unit in (("score", "4.5 score·s/s"), ("blocks", "2 GiB/s"), ("files", "2000 op/s")):
        assert f"io500 {key}, POSIX: {unit}, " in said
    assert all(line["energy_uncertainty_j"] > 0 for line in lines.values())
    each_j = [line["energy_j"] for key, line in lines.items() if "-" in key or key == "find"]
    assert len(each_j) == 12 and lines["score"]["energy_j"] == pytest.approx(sum(each_j))


def test_an_invalid_score_is_compared_with_its_like_alone(place, capfd):
    io500(place)
    Path("own.cooked.jsonl").rename("valid.cooked.jsonl")
    shutil.rmtree("out")
    code, lines = io500(place, 'valid = ""', 'valid = " [INVALID]"')
    assert code == 0 and {line["variant"] for line in lines.values()} == {"POSIX-INVALID"}
    assert "io500 run: INVALID, as the variants say" in capfd.readouterr().err
    assert cli.main(["diff", "valid.cooked.jsonl", "own.cooked.jsonl"]) != 0
    assert "have no size of a kernel in common" in capfd.readouterr().err
    shutil.copy("own.cooked.jsonl", "again.cooked.jsonl")
    assert cli.main(["diff", "again.cooked.jsonl", "own.cooked.jsonl"]) == 0


LEFT = """os.mkdir(folder)
os.mkdir(folder + "/../data")
open(folder + "/../data/file", "w")
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'print("IO500',
            'print("ERROR INVALID (ior.c:49) Errors (1) occured during phase")\nprint("IO500',
            "io500 run: 'Errors (1) occured'",
        ),
        (
            'pair("time", "0.500000")',
            'print("\\nERROR: verifying the data on read (1 errors)!", file=more)',
            "io500 run: mdtest-hard-read: 'ERROR: verifying the data on read (1 errors)!'",
        ),
        ("mdtest-hard-read mdtest", "mdtest", "io500 run: no part mdtest-hard-read;"),
        (
            "tasks               : 2",
            "tasks               : 1",
            "io500 run: ior-easy-write: no ^tasks",
        ),
        ("2 total task", "1 total task", "io500 run: mdtest-easy-write: no was launched"),
        ("os.mkdir(folder)", LEFT, "io500 removed: 1 lines, not 0;"),
        ("{2:>15.6f}", "{2:>15.6f}", None),
    ],
)
def test_a_wrong_byte_of_io500_is_no_result(place, capfd, old, new, said):
    code, lines = io500(place, old, new)
    assert (said or "") in capfd.readouterr().err and code == (1 if said else 0)
    assert all(line["verified"] == (said is None) for line in lines.values())
