# `joulemark hpl`: its HPL.dat is what HPL runs, and HPL's output what reports read.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import os
import shutil
import subprocess

import pytest
from joulemark import cli, regions
from joulemark.bench import cooked, hpl
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
    energy = hpl.energy_of("x: 5.0 J +- 2.0 J (k=2), estimated by a model in 1.0 s", 1)
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
    governor, output = tmp_path / "scaling_governor", tmp_path / "HPL.out"
    governor.write_text("performance\n")
    monkeypatch.setattr(hpl, "GOVERNOR", governor)
    monkeypatch.setenv("JOULEMARK_SLURM_VERSION", "22.05.8")
    told = {"instruments": "powercap/cpu", "channels": "rapl/package-0"}
    monkeypatch.setattr(regions, "instruments", lambda: told)
    output.write_text("\n".join(OUTPUT.splitlines()[:5]))
    energy = tmp_path / "region.log"
    energy.write_text("hpl: 5.000 J +- 0.100 J (k=2) in 1.000 s\n")
    words = ["hpl", "results", str(output), "--nodes", "1"]
    assert cli.main(words) == 0
    found = cooked.parse(capsys.readouterr().out).manifest
    assert (found.os_kernel, found.governor) == (os.uname().release, "performance")
    assert (found.slurm, found.instruments) == ("22.05.8", "")
    assert cli.main([*words, "--energy", str(energy)]) == 0
    measured = cooked.parse(capsys.readouterr().out)
    assert (measured.manifest.instruments, measured.channels) == tuple(told.values())
