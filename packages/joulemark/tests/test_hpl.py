# `joulemark hpl`: its HPL.dat is what HPL runs, and HPL's output what reports read.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from joulemark import cli, regions
from joulemark.bench import cooked, hpl, outside
from joulemark.bench.program import Build
from joulemark.errors import UserError

OUTPUT = """\
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR11C2C4        2000   192     2     3               0.19              2.776e+01
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0038456 ...... PASSED
WR11C2C4        2000   256     2     3               0.17              3.0e+01
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        2.1e+05 ...... FAILED
WR11C2C4        2000   128     2     3               0.17              3.0e+01
"""
ENERGY = "hpl: 480.5 J +- 4.5 J (k=2) in 4.0 s\nhpl: 500.5 J +- 5.5 J (k=2) in 5.0 s\n"


@pytest.mark.parametrize(
    "ranks, grid", [(1, (1, 1)), (2, (1, 2)), (4, (2, 2)), (7, (1, 7)), (12, (3, 4)), (64, (8, 8))]
)
def test_the_grid_is_as_square_as_the_ranks_allow(ranks, grid):
    assert hpl.grid(ranks) == grid


def test_n_fills_the_memory_in_whole_blocks():
    gib = 2**30
    for bytes_ in (gib, 64 * gib, 3000 * gib):
        n = hpl.size_for(bytes_, [128, 192, 256])
        assert n % 768 == 0 and 8 * n**2 <= bytes_ < 8 * (n + 768) ** 2
    # the least common multiple is too coarse: the largest block's
    assert hpl.size_for(8 * 5000**2, [127, 131]) == 5000 // 131 * 131
    with pytest.raises(UserError, match="hold no 192 x 192 matrix"):
        hpl.size_for(8 * 100**2, [192])


def test_memory_is_a_part_or_a_size():
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert hpl.memory("80%") == pytest.approx(0.8 * whole)
    assert hpl.memory("1.5GiB") == hpl.memory("1536M") == 1.5 * 2**30
    for wrong in ("101%", "0%", "much", "-1G"):
        with pytest.raises(UserError, match=r"give e\.g\. 80% or 64GiB"):
            hpl.memory(wrong)


def test_the_file_has_each_value_at_its_line(tmp_path, capsys):
    path = tmp_path / "HPL.dat"
    words = ["--n", "1000,2000", "--nb", "64", "--ranks", "6", "--out", str(path)]
    assert cli.main(["hpl", "dat", *words]) == 0
    lines = [line.split() for line in path.read_text().splitlines()]
    assert lines[4][0] == "2" and lines[5][:2] == ["1000", "2000"]
    assert lines[6][0] == "1" and lines[7][0] == "64"
    assert (lines[10][0], lines[11][0], lines[12][0]) == ("2", "3", "16.0")
    assert len(lines) == 31
    assert "P x Q = 2 x 3" in capsys.readouterr().err


def test_every_test_becomes_a_line_and_only_a_passed_one_has_performance(tmp_path, capsys):
    output, lines = tmp_path / "HPL.out", tmp_path / "hpl.cooked.jsonl"
    output.write_text(OUTPUT)
    words = ["hpl", "results", str(output), "--cooked", str(lines), "--threads", "4"]
    assert cli.main(words) == 1  # one failed, one has no check: cut short
    found = cooked.load([str(lines)])
    verified = [(one.variant, one.verified) for one in found]
    assert verified == [("nb192", True), ("nb256", False), ("nb128", False)]
    assert (found[0].size, found[0].ranks, found[0].threads) == (2000, 6, 4)
    assert found[0].performance == 27.76e9 and found[0].unit == "F/s"
    assert found[0].time_s == pytest.approx((2 / 3 * 2000**3 + 1.5 * 2000**2) / 27.76e9)
    assert found[1].performance is None and found[1].time_s is None
    assert capsys.readouterr().err.count("residual check did not pass") == 2


def test_energy_is_the_sum_over_the_nodes(tmp_path, capsys):
    output, log = tmp_path / "HPL.out", tmp_path / "region.log"
    output.write_text("\n".join(OUTPUT.splitlines()[:5]))
    log.write_text(ENERGY)
    words = ["hpl", "results", str(output), "--energy", str(log)]
    assert cli.main([*words, "--nodes", "2"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert (line["energy_j"], line["energy_uncertainty_j"], line["estimated"]) == (981, 10, False)
    assert line["power_w"] == pytest.approx(981 / 5)
    assert cli.main([*words, "--nodes", "3"]) == 2
    assert "2 lines of a region for 3 nodes" in capsys.readouterr().err
    output.write_text(OUTPUT)
    assert cli.main([*words, "--nodes", "2"]) == 2
    assert "has 3 tests: run HPL for each" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, job, grid, nodes",
    [
        (["--nodes", "3"], "2", "2     3", 3),
        ([], "2", "2     3", 2),
        ([], None, "2     3", None),  # six ranks may be anywhere
        ([], None, "1     1", 1),
    ],
)
def test_nodes_are_those_given_else_the_job_s(
    tmp_path, capsys, monkeypatch, words, job, grid, nodes
):
    monkeypatch.delenv("SLURM_JOB_NUM_NODES", raising=False)
    if job:
        monkeypatch.setenv("SLURM_JOB_NUM_NODES", job)
    output = tmp_path / "HPL.out"
    output.write_text("\n".join(OUTPUT.splitlines()[:5]).replace("2     3", grid))
    assert cli.main(["hpl", "results", str(output), *words]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"] == nodes


@pytest.mark.parametrize("text", ["abc", "0", "1.5", "inf"])
def test_a_job_s_number_that_is_none_is_refused(tmp_path, capsys, monkeypatch, text):
    (tmp_path / "HPL.out").write_text(OUTPUT)
    for variable, *words in (
        ("SLURM_NTASKS", "dat", "--out", "-"),
        ("SLURM_JOB_NUM_NODES", "results", str(tmp_path / "HPL.out")),
    ):
        monkeypatch.setenv(variable, text)
        assert cli.main(["hpl", *words]) == 2
        assert f"{variable}={text}: is not a whole number from 1" in capsys.readouterr().err
        monkeypatch.delenv(variable)


def test_a_modelled_energy_says_so():
    energy = outside.energy_of("x: 5.0 J +- 2.0 J (k=2), estimated by a model in 1.0 s", 1)
    assert energy.estimated and energy.joules == 5


def test_what_is_no_output_is_refused(tmp_path, capsys):
    (tmp_path / "empty").write_text("nothing\n")
    assert cli.main(["hpl", "results", str(tmp_path / "empty")]) == 1
    assert "no line of a test" in capsys.readouterr().err
    assert cli.main(["hpl", "results", str(tmp_path / "none")]) == 2
    assert cli.main(["hpl", "dat", "--nb", "0", "--out", "-"]) == 2
    assert "--nb 0: must be whole numbers above 0" in capsys.readouterr().err


def test_hpl_runs_our_input_and_we_read_its_output(tmp_path):
    """HPC Challenge's HPL: Debian has no HPL alone."""
    if not (shutil.which("hpcc") and shutil.which("mpirun")):
        pytest.skip("hpcc is not installed")
    words = ["--n", "200,300", "--nb", "32,64", "--ranks", "4", "--hpcc"]
    assert cli.main(["hpl", "dat", *words, "--out", str(tmp_path / "hpccinf.txt")]) == 0
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    env = {**os.environ, **root, "OMP_NUM_THREADS": "1"}
    hpcc = ["mpirun", "--oversubscribe", "-n", "4", "hpcc"]
    subprocess.run(hpcc, cwd=tmp_path, env=env, check=True, timeout=300)
    tests = hpl.tests_of((tmp_path / "hpccoutf.txt").read_text())
    assert {(test.n, test.nb) for test in tests} == {(200, 32), (200, 64), (300, 32), (300, 64)}
    assert all(test.passed and (test.p, test.q) == (2, 2) for test in tests)


def test_a_line_has_what_is_known_of_its_system(tmp_path, capsys, monkeypatch):
    output = tmp_path / "HPL.out"
    (tmp_path / "scaling_governor").write_text("performance\n")
    (tmp_path / "scaling_cur_freq").write_text("2300000\n")
    monkeypatch.setattr(outside, "CPUFREQ", tmp_path)
    monkeypatch.setenv("JOULEMARK_SLURM_VERSION", "22.05.8")
    told = {"instruments": "powercap/cpu", "channels": "rapl/package-0"}
    monkeypatch.setattr(regions, "instruments", lambda: told)
    output.write_text("\n".join(OUTPUT.splitlines()[:5]))
    energy = tmp_path / "region.log"
    energy.write_text("hpl: 5.000 J +- 0.100 J (k=2) in 1.000 s\n")
    words = ["hpl", "results", str(output), "--nodes", "1"]
    assert cli.main(words) == 0
    line = capsys.readouterr().out
    assert json.loads(line)["manifest"]["frequency_hz"] == 2.3e9
    found = cooked.parse(line).manifest
    assert (found.os_kernel, found.governor) == (os.uname().release, "performance")
    assert (found.slurm, found.instruments) == ("22.05.8", "")
    assert cli.main([*words, "--energy", str(energy)]) == 0
    measured = cooked.parse(capsys.readouterr().out)
    assert (measured.manifest.instruments, measured.channels) == tuple(told.values())


# -- what is known of the build ------------------------------------------------------------------

XHPL = """\
HPLinpack 2.3  --  High-Performance Linpack benchmark  --   December 2, 2018
T/V                N    NB     P     Q               Time                 Gflops
WR11C2C4        2000   192     2     3               0.19              {}
HPL_pdgesv() start time Sat Mar 28 23:30:00 2026

HPL_pdgesv() end time   Sun Mar 29 23:30:01 2026

||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   1.72533487e-02 ...... PASSED
WR11C2C4        2000   256     2     3               0.19              {}
HPL_pdgesv() start time Sun Mar 29 09:30:00 2026

||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   1.72533487e-02 ...... PASSED
"""
HPCC = """\
Current time (1795811401) is Fri Nov 27 20:30:01 2026

End of LatencyBandwidth section.
Begin of HPL section.
HPLinpack 2.0  --  High-Performance Linpack benchmark  --   September 10, 2008
WR11C2R4         200    32     1     1               0.14              3.748e-02
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0062684 ...... PASSED
End of Tests.
Current time (1795811999) is Fri Nov 27 20:39:59 2026
"""


@pytest.fixture
def in_berlin(monkeypatch):
    """Which put its clocks forward in the night of the tests above."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def xhpl(tmp_path):
    """Writes a program there: one that runs, with more bytes at its end."""

    def write(place, more=b""):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(Path(shutil.which("cat")).read_bytes() + more)
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def taken(tmp_path, results):
    """Takes an output over into the results, at so many GF/s."""

    lines = results() / "hpl.cooked.jsonl"

    def take(gflops=27.8, program=None, text=XHPL):
        path = tmp_path / "HPL.out"
        path.write_text(text.replace("{}", f"{gflops:.4e}"))
        words = ["--nodes", "1", "--cooked", str(lines)]
        words += ["--program", str(program)] if program else []
        assert cli.main(["hpl", "results", str(path), *words]) == 0
        return [json.loads(one) for one in lines.read_text().splitlines()]

    return take


def spack_builds(prefix, **changes):
    """Leaves what Spack leaves of a package in its prefix."""
    needed = {"name": "gcc", "hash": "3kkp", "parameters": {"deptypes": ["build"]}}
    needed["parameters"]["virtuals"] = ["c", "cxx"]
    node = {
        "name": "hpl",
        "version": "2.3",
        "arch": {"platform": "linux", "platform_os": "debian12", "target": "zen4"},
        "parameters": {
            "build_system": "autotools",
            "openmp": True,
            "blas64": False,
            "patches": ["a1", "b2"],
            "cflags": ["-O3", "-g"],
            "fflags": [],
        },
        "dependencies": [needed],
        "hash": "tf4zdxuwitdddeovbuvi5z2cjr6cmsot",
        **changes,
    }
    gcc = {"name": "gcc", "version": "12.2.0", "hash": "3kkp"}
    (prefix / ".spack").mkdir()
    (prefix / ".spack/spec.json").write_text(
        json.dumps({"spec": {"_meta": {"version": 5}, "nodes": [node, gcc]}})
    )


def test_two_builds_stay_apart_and_one_that_nobody_told_from_both(site, taken, xhpl):
    for gflops, program in ((27.8, xhpl("a/xhpl")), (50, xhpl("b/xhpl", b"static BLAS"))):
        for _ in range(2):
            taken(gflops, program)
    taken(40)
    table = json.loads(site.out("report", "table", "linpack", "--format", "json"))
    found = {(one["runs"], one["performance"]) for one in table if one["variant"] == "nb192"}
    assert found == {(2, 27.8e9), (2, 50e9), (1, 40e9)}
    said = site.out("report", "table", "linpack").splitlines()
    titles = [one for one in said if one.startswith("hpl linpack, nb192")]
    versions = [one.partition("version ")[2].split() for one in titles]
    assert versions[0] == ["2.3,", "libraries", "-"]
    assert [one[:2] for one in versions[1:]] == [["2.3", "(xhpl"]] * 2


@pytest.mark.parametrize(
    ("khz", "mhz", "expected"),
    [
        ("2300000\n", "2600.5", 2.3e9),
        ("0\n", "2600.5", 2600.5e6),
        (None, "2600.5", 2600.5e6),
        ("<unknown>\n", "Unknown", None),
    ],
)
def test_the_frequency_is_the_kernel_s_where_it_tells_it(
    tmp_path, monkeypatch, khz, mhz, expected
):
    if khz:
        (tmp_path / "scaling_cur_freq").write_text(khz)
    (tmp_path / "cpuinfo").write_text(f"model name\t: A\ncpu MHz\t\t: {mhz}\ncache size\t: 1\n")
    monkeypatch.setattr(outside, "CPUFREQ", tmp_path)
    monkeypatch.setattr(outside.peaks, "CPUINFO", tmp_path / "cpuinfo")
    assert outside.manifest_of(None, Build())["frequency_hz"] == expected


def test_an_output_whose_program_nobody_tells_is_said_so(taken, xhpl, capsys):
    taken()
    assert "HPL.out: nothing is known of the build of what wrote it" in capsys.readouterr().err
    taken(program=xhpl("xhpl"))
    assert capsys.readouterr().err == ""


def test_libraries_are_those_that_the_program_starts_with(taken, xhpl):
    manifest = taken(program=xhpl("xhpl"))[0]["manifest"]
    maps = subprocess.run(["cat", "/proc/self/maps"], capture_output=True, text=True, check=True)
    files = {Path(one.split()[-1]).name for one in maps.stdout.splitlines()}
    libc, *libraries = manifest["libraries"].split()
    assert set(libraries) == {one for one in files if one.startswith("lib")}
    assert libc == os.confstr("CS_GNU_LIBC_VERSION").replace(" ", "-")
    assert (manifest["spack_spec"], manifest["compiler"]) == (None, None)


def test_libraries_that_are_not_found_leave_all_unknown(taken, xhpl, monkeypatch, capsys):
    """Else the same build would be another one, without a BLAS, for who has not its modules."""
    program = xhpl("xhpl")
    ldd = program.parent / "tools" / "ldd"
    ldd.parent.mkdir()
    ldd.write_text(
        "#!/bin/sh\nprintf '\\tlibblas9.so => not found\\n\\tlibc.so.6 => /l/libc.so.6 (0x1)\\n'\n"
    )
    ldd.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ldd.parent}:{os.environ['PATH']}")
    assert taken(program=program)[0]["manifest"]["libraries"] is None
    assert f"--program {program}: ldd finds no libblas9.so: " in capsys.readouterr().err


def test_the_name_of_a_program_may_be_no_unicode(site, taken, xhpl):
    taken(program=xhpl(os.fsdecode(b"xhpl\xe9")))
    (row, *_) = json.loads(site.out("report", "table", "linpack", "--format", "json"))
    assert row["runs"] == 1


def test_of_spack_s_program_its_spec_tells_hash_and_compiler(site, taken, xhpl):
    program = xhpl("store/hpl-2.3-tf4zdxu/bin/xhpl")
    spack_builds(program.parents[1])
    view = program.parents[3] / "view"
    view.symlink_to(program)
    manifest = taken(program=view)[0]["manifest"]
    expected = (
        "hpl@2.3 cflags='-O3 -g' ~blas64+openmp build_system=autotools patches:=a1,b2 target=zen4"
    )
    assert manifest["spack_spec"] == expected
    assert manifest["spack_hash"] == "tf4zdxuwitdddeovbuvi5z2cjr6cmsot"
    assert (manifest["version"], manifest["compiler"]) == ("2.3", "GNU 12.2.0")
    other = xhpl("store/hpl-2.3-aaaaaaa/bin/xhpl")
    old = {"compiler": {"name": "clang", "version": "15.0.6"}, "dependencies": []}
    spack_builds(other.parents[1], hash="aaaaaaa", arch={"target": {"name": "zen4"}}, **old)
    assert taken(program=other)[-1]["manifest"]["compiler"] == "Clang 15.0.6"
    found = json.loads(site.out("report", "table", "linpack", "--json"))
    kinds = sorted((one["spack_hash"][:7], one["runs"]) for one in found)
    assert kinds == [("aaaaaaa", 1)] * 2 + [("tf4zdxu", 1)] * 2


@pytest.mark.parametrize("text", ["", "[]", '{"spec": {"nodes": []}}', '{"spec": {"nodes": [7]}}'])
def test_a_spec_that_is_none_costs_no_result(taken, xhpl, capsys, text):
    program = xhpl("hpl/bin/xhpl")
    (program.parents[1] / ".spack").mkdir()
    (program.parents[1] / ".spack/spec.json").write_text(text)
    manifest = taken(program=program)[0]["manifest"]
    assert manifest["spack_hash"] is None and manifest["version"].startswith("2.3 (xhpl ")
    assert "hpl/.spack/spec.json: " in capsys.readouterr().err


def test_a_script_tells_nothing_of_what_it_starts(tmp_path, taken, capsys):
    (tmp_path / "xhpl.sh").write_text("#!/bin/sh\nexec xhpl\n")
    manifest = taken(program=tmp_path / "xhpl.sh")[0]["manifest"]
    assert (manifest["version"], manifest["libraries"]) == ("2.3", None)
    assert "xhpl.sh: is no program of ELF" in capsys.readouterr().err


def test_a_program_that_is_not_there_is_refused(tmp_path, capsys):
    (tmp_path / "HPL.out").write_text(OUTPUT)
    words = ["hpl", "results", str(tmp_path / "HPL.out"), "--program"]
    for wrong in ("none", ""):
        assert cli.main([*words, str(tmp_path / wrong)]) == 2
        assert f"--program {tmp_path / wrong}: " in capsys.readouterr().err


def test_each_test_tells_when_it_began(taken, in_berlin):
    early = "HPL_pdgesv() start time Fri Mar 27 12:00:00 2026\n"  # before any test
    assert [(one["variant"], one["start"]) for one in taken(text=early + XHPL)] == [
        ("nb192", "2026-03-28T22:30:00+00:00"),
        ("nb256", "2026-03-29T07:30:00+00:00"),
    ]


def test_the_day_of_a_trend_is_that_of_the_run(site, taken, in_berlin):
    taken()
    days = json.loads(site.out("trend", "linpack", "--json"))
    assert [one["day"] for one in days] == ["2026-03-28", "2026-03-29"]


def test_hpc_challenge_tells_when_its_hpl_began(taken, in_berlin):
    (one,) = taken(text=HPCC)
    assert (one["start"], one["manifest"]["version"]) == ("2026-11-27T20:30:01+00:00", "2.0")


def test_an_output_without_its_start_has_none(taken):
    text = XHPL.replace("HPLinpack", "").replace("Mar", "Mrz")
    found = [(one["start"], one["manifest"]["version"]) for one in taken(text=text)]
    assert found == [(None, None)] * 2
