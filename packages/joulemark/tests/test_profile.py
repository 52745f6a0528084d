# Profiles: nodes' files into HDF5, who may read it, what a report shows; Python's regions.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from joulemark import cli, config
from joulemark.layout import ESTIMATED
from joulemark.profile import hdf5, node, rows, spans

h5py = pytest.importorskip("h5py", reason="profiles are HDF5")

NS = 1_000_000_000
START_NS = 1_790_000_000 * NS
UID = 12345


def lines(node="n1", job=7, marks=(), end=True, method="counter"):
    """Ten seconds: 100 W, from the fifth on 200 W; inside it a package with half of it."""
    channels = [
        {"name": "meter/node", "domain": "node", "method": method, "outermost": True},
        {"name": "rapl/package-0", "domain": "cpu", "method": "counter", "outermost": False},
    ]
    yield {
        **{"schema": 1, "cluster": "demo", "JobIDRaw": job, "node": node, "uid": UID},
        **{"start_ns": START_NS, "hz": 1, "asked_hz": 1, "channels": channels},
    }
    for second in range(11):
        energy_uj = 100_000_000 * (second + max(second - 5, 0))
        yield {"t": START_NS + second * NS, "e": [energy_uj, energy_uj // 2]}
    for second, kind, name, rank, thread in marks:
        yield {"t": START_NS + int(second * NS), "m": kind, "n": name, "r": rank, "th": thread}
    if end:
        yield {
            **{"end": START_NS + 11 * NS, "e": [1_700_000_000, 850_000_000]},
            **{"u": [30_000_000, 5_000_000], "marks_left_out": 2},
        }


MARKS = (
    (1, "begin", "solve", 0, 10),
    (2, "begin", "solve", 1, 11),
    (3, "begin", "solve/exchange", 0, 10),
    (4, "end", "solve/exchange", 0, 10),
    (4.5, "end", "solve", 0, 10),
    (8, "end", "solve", 1, 11),
)


@pytest.fixture
def site(site):
    """The site's configuration, with a place for what nodes leave; `leave(site)` leaves a file."""
    (site.records / "profiles").mkdir()
    return config.load(site.yaml)


def leave(site, node="n1", job=7, **how):
    path = site.record_dir / "profiles" / f"demo.{job}.{node}.profile.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines(node, job, **how)))
    return path


def test_a_profile_of_another_cluster_is_chosen(site, capsys):
    leave(site)
    leave(site, node="n2")
    hdf5.merge(site)
    hdf5.path_of(site, "demo", 7).rename(hdf5.path_of(site, "other", 7))
    assert cli.main(["report", "profile", "7"]) == 1
    capsys.readouterr()
    assert cli.main(["report", "profile", "7", "-M", "other", "--format", "json"]) == 0
    assert {one["node"] for one in json.loads(capsys.readouterr().out)} == {"n1", "n2"}


def test_a_profile_becomes_hdf5(site):
    waiting = leave(site, marks=MARKS)
    hdf5.merge(site, {7})
    assert not waiting.exists()
    with h5py.File(site.profile_dir / "demo.7.h5") as file:
        assert (file.attrs["cluster"], file.attrs["job"], file.attrs["uid"]) == ("demo", 7, UID)
        channel = file["nodes/n1/meter.node"]
        assert channel["time_s"][0] == START_NS / NS
        assert channel["energy_j"][:].tolist()[-2:] == [1500, 1700]
        assert channel["power_w"][1] == 100 and channel["power_w"][10] == 200
        assert channel["power_w"].attrs["unit"].startswith("W")
        assert channel.attrs["uncertainty_j"] == 30
        marks = file["nodes/n1/marks"]
        assert marks["name"].asstr()[2] == "solve/exchange"
        assert marks["kind"][:].tolist() == [1, 1, 1, 2, 2, 2]
        assert marks["rank"][:].tolist() == [0, 1, 0, 0, 0, 1]
        assert marks.attrs["left_out"] == 2


def changed(index, **values):
    """The text of a profile with one line that is not what joulemarkd writes."""
    made = list(lines(marks=MARKS))
    made[index].update(values)
    return "".join(json.dumps(line) + "\n" for line in made)


@pytest.mark.parametrize(
    "text",
    [
        changed(0) + "[1]\n",
        changed(0, uid=1 << 40),
        changed(
            0, channels=[{**dict.fromkeys(("name", "domain", "method"), "/"), "outermost": 1}]
        ),
        changed(12, m="else"),
        changed(12, r="x"),
        changed(12, n="\0"),
        changed(12, th=-1),
        changed(-1, u=[1]),
        "[" * 100_000,
    ],
    ids=range(9),
)
def test_a_profile_that_is_none_is_told_and_others_are_merged(site, capsys, text):
    """Whatever a node sends: it is its own job that lacks a profile."""
    bad = leave(site)
    bad.write_text(text)
    leave(site, job=8)
    hdf5.merge(site)
    assert f"{bad}: not a profile: " in capsys.readouterr().err
    assert bad.exists() and [one.node for one in hdf5.load(site, 8)] == ["n1"]


def test_a_profile_without_two_samples_is_told(site, capsys):
    """Of a job that was shorter, or whose daemon was killed at its begin."""
    for job, count in ((7, 1), (8, 2)):
        kept = "".join(json.dumps(line) + "\n" for line in list(lines(job=job))[:count])
        leave(site, job=job).write_text(kept)
    hdf5.merge(site)
    for job in ("7", "8"):
        assert cli.main(["report", "profile", job]) == 1
        assert "no profile has two samples" in capsys.readouterr().err


@pytest.mark.parametrize(("second", "of_all"), [(4.0, 7.0), (None, None)])
def test_uncertainties_of_outermost_channels_add_up(second, of_all):
    """What is not known of one is not known of all."""
    made = (("a", True, 3.0), ("b", True, second), ("inside", False, 9.0))
    channels = {
        name: node.Channel(name, "cpu", "counter", outermost, error_j, [0.0, 1.0], [0.0, 5.0])
        for name, outermost, error_j in made
    }
    profile = node.NodeProfile("demo", 7, "n1", UID, 1.0, channels)
    assert rows.row_of(profile, "job 7").uncertainty_j == of_all
    assert rows.row_of(profile, "job 7", "a").uncertainty_j == 3.0


@pytest.mark.parametrize(
    ("outermost", "channel", "estimated"),
    [
        *(("model", None, True), ("model", "rapl", False)),
        *(("rapl", None, False), ("rapl", "model", True)),
    ],
)
def test_estimated_is_said_of_the_channels_that_are_shown(outermost, channel, estimated):
    """A measured one may lie in an estimate, and an estimate in a measurement."""
    channels = {
        name: node.Channel(name, "cpu", method, name == outermost, 1.0, [0.0, 1.0], [0.0, 5.0])
        for name, method in (("model", "model"), ("rapl", "counter"))
    }
    profile = node.NodeProfile("demo", 7, "n1", UID, 1.0, channels)
    assert rows.row_of(profile, "job 7", channel).estimated == estimated


def test_an_end_at_its_last_sample_tells_the_error(site):
    *samples, end = lines()
    end.update(end=START_NS + 10 * NS, e=samples[-1]["e"])
    leave(site).write_text("".join(json.dumps(one) + "\n" for one in (*samples, end)))
    hdf5.merge(site, {7})
    (found,) = hdf5.load(site, 7)
    assert found.channels["meter/node"].uncertainty_j == 30


def test_nodes_that_come_later_join_the_file(site):
    leave(site, "n1")
    hdf5.merge(site, {7})
    leave(site, "n2")
    leave(site, "n1", job=8)
    hdf5.merge(site, {7})
    assert [one.node for one in hdf5.load(site, 7)] == ["n1", "n2"]
    assert not (site.profile_dir / "demo.8.h5").exists()
    hdf5.merge(site)
    assert [one.job for one in hdf5.load(site, 8)] == [8]


def test_a_jobs_latest_run_stays_and_what_ends_latest_of_it(site, capsys):
    """What ends earlier belongs to a record that does not stand either."""
    leave(site)
    hdf5.merge(site, {7})
    for start_ns, end_ns, samples in ((0, 9, 12), (0, 12, 2), (1, 9, 3), (0, 13, 3), (1, 10, 4)):
        head, *rest, last = lines()
        head["start_ns"], last["end"] = START_NS + start_ns, START_NS + end_ns * NS
        waiting = site.record_dir / "profiles" / "demo.7.n1.profile.jsonl"
        told = (head, *rest[: samples - 1], last)
        waiting.write_text("".join(json.dumps(line) + "\n" for line in told))
        hdf5.merge(site, {7})
        assert not waiting.exists()
        (found,) = hdf5.load(site, 7)
        said = capsys.readouterr().err
        assert len(found.channels["meter/node"].times_s) == samples
        assert ("is later than what has come" in said) == ((start_ns, end_ns) in ((0, 9), (0, 13)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_roots_merge_gives_the_file_to_the_jobs_user_alone(site):
    leave(site)
    hdf5.merge(site, {7})
    status = (site.profile_dir / "demo.7.h5").stat()
    assert (status.st_uid, status.st_mode & 0o777) == (UID, 0o600)
    assert site.profile_dir.stat().st_mode & 0o777 == 0o711


def test_the_acl_lets_one_user_read_and_nobody_else():
    version, *_ = struct.unpack_from("<I", hdf5._acl(UID))
    entries = list(struct.iter_unpack("<HHI", hdf5._acl(UID)[4:]))
    assert version == 2
    assert [(tag, mode) for tag, mode, _ in entries] == [(1, 6), (2, 4), (4, 0), (16, 4), (32, 0)]
    assert [who for tag, _, who in entries if tag == 2] == [UID]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: text.replace('"schema": 1', '"schema": 9'),
        lambda text: text.replace('"n1"', '"n3"'),
        lambda text: "\n".join(text.splitlines()[1:]),
        lambda text: text[:300],
    ],
    ids=["empty", "schema", "other node", "no head", "cut"],
)
def test_a_bad_file_is_named_and_nothing_else_fails(site, capsys, spoil):
    bad = leave(site, "n1", job=9)
    bad.write_text(spoil(bad.read_text()))
    leave(site, "n2")
    hdf5.merge(site)
    assert str(bad) in capsys.readouterr().err
    assert bad.exists()
    assert len(hdf5.load(site, 7)) == 1


def test_a_restarted_daemons_channels_are_told_by_name(site):
    path = leave(site, end=False)
    head, *samples = (json.loads(line) for line in path.read_text().splitlines())
    head["channels"].reverse()
    later = [
        {"t": s["t"] + 60 * NS, "e": [e + 2_000_000_000 for e in s["e"]][::-1]} for s in samples
    ]
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in [head, *later])
    found = node.read_node(path)
    assert found.channels["meter/node"].energies_j[-1] == 3500
    assert found.channels["rapl/package-0"].energies_j[-1] == 2750


def test_regions_are_the_union_of_threads(site):
    found = node.read_node(leave(site, marks=MARKS))
    start_s = START_NS / NS
    seen = [(s.name, s.begin_s - start_s, s.end_s - start_s) for s in spans.spans(found)]
    assert seen == [("solve", 1, 8), ("solve/exchange", 3, 4)]
    assert spans.mapping(found) == "n1, ranks 0-1"
    open_one = node.read_node(leave(site, marks=[(9, "begin", "late", -1, 4)]))
    open_one.marks_left_out = 0
    assert spans.spans(open_one)[0].end_s - start_s == 11
    open_one.marks_left_out = 1
    assert spans.spans(open_one)[0].end_s == open_one.marks[-1].time_s


@pytest.mark.parametrize(
    ("marks", "said"),
    [
        ([(1, "begin", 10), (2, "end", 10), (3, "begin", 11), (4, "end", 11)], "n1"),
        ([(1, "begin", 10), (2, "begin", 11), (3, "end", 10), (4, "end", 11)], "n1, 2 threads"),
        ([(1, "begin", 10), (2, "begin", 10), (3, "end", 10), (4, "begin", 11)], "n1, 2 threads"),
        ([(1, "end", 10), (2, "begin", 10), (3, "end", 10), (4, "begin", 11)], "n1"),
    ],
    ids=["one after the other", "at once", "nested", "a begin was left out"],
)
def test_threads_are_those_that_were_in_regions_at_once(site, marks, said):
    marks = [(second, kind, "r", -1, thread) for second, kind, thread in marks]
    assert spans.mapping(node.read_node(leave(site, marks=marks))) == said


def run(capsys, *argv):
    assert cli.main(["report", "profile", *argv]) == 0
    return capsys.readouterr().out


def test_the_terminal_shows_curve_and_regions(site, capsys):
    leave(site, marks=MARKS)
    hdf5.merge(site, {7})
    head, curve, solve, exchange, lost, *legend = run(capsys, "7").splitlines()
    assert (
        head == "job 7: n1, ranks 0-1: 1700 J +- 30.0 J (k=2) in 11.0 s, 155 W mean, 200 W at most"
    )
    drawn = curve.split()[0]
    assert len(drawn) == 60 and set(drawn[:27]) <= set("▄▅") and set(drawn[28:]) == {"█"}
    assert solve.split() == ["solve", "7.00", "s,", "1000", "J,", "143", "W"]
    assert exchange.split() == ["solve/exchange", "1.00", "s,", "100", "J,", "100", "W"]
    assert lost == "  2 marks were too many: no region is known to the end"
    assert legend[0] == "" and "the job's ends are in `joulemark sacct`, too" in legend[1]
    assert "+-: of the whole job, k=2" in legend[1]


def test_a_region_s_name_commands_no_terminal(site, capsys):
    leave(site, marks=[(1, "begin", "so\x1b[2Jlve", 0, 10), (2, "end", "so\x1b[2Jlve", 0, 10)])
    hdf5.merge(site, {7})
    out = run(capsys, "7")
    assert "so?[2Jlve" in out and out.replace("\n", "").isprintable()


def test_an_error_that_is_not_known_is_told_so(site, capsys):
    """Of a daemon that was killed."""
    leave(site, end=False)
    hdf5.merge(site, {7})
    assert "1500 J +- not known in 10.0 s" in run(capsys, "7")
    (row,) = json.loads(run(capsys, "7", "--json"))
    assert (row["energy_j"], row["energy_error_j"], row["mean_error_w"]) == (1500, None, None)


def test_programs_have_what_the_terminal_shows(site, capsys, tmp_path):
    leave(site, marks=MARKS)
    leave(site, "n2", job=8, method="model")
    hdf5.merge(site)
    found = json.loads(run(capsys, "7,8", "--format", "json", "--label", "omp"))
    node, solve, exchange, other = found
    assert {**node, "mean_w": None, "mean_error_w": None} == {
        **{"job_id_raw": 7, "node": "n1", "label": "omp: n1, ranks 0-1", "region": None},
        **{"time_s": 11, "energy_j": 1700, "energy_error_j": 30, "peak_w": 200},
        **{"mean_w": None, "mean_error_w": None, "estimated": False, "marks_left_out": 2},
    }
    assert (node["mean_w"], node["mean_error_w"]) == pytest.approx((1700 / 11, 30 / 11))
    assert (solve["region"], solve["energy_j"], solve["time_s"]) == ("solve", 1000, 7)
    assert (exchange["region"], exchange["mean_w"]) == ("solve/exchange", 100)
    assert solve["energy_error_j"] is None and solve["node"] == "n1"
    assert (other["job_id_raw"], other["node"], other["estimated"]) == (8, "n2", True)
    path = tmp_path / "rows.csv"
    assert run(capsys, "7,8", "--out", str(path)) == ""
    lines = path.read_text().splitlines()
    assert lines[0].split(",") == list(node) and len(lines) == 1 + len(found)


def test_documents_have_a_table_a_job(site, capsys):
    for job in (7, 8):
        leave(site, job=job)
    hdf5.merge(site)
    text = run(capsys, "7", "8", "--format", "markdown")
    assert [line for line in text.splitlines() if line.startswith("**")] == [
        f"**Raw id {job}: nodes**" for job in (7, 8)
    ]
    assert "| job 8: n1 | 11.0 | 1700 | 30.0 | 155 | 200 |" in text


def test_a_figure_is_of_no_format(site, capsys):
    assert cli.main(["report", "profile", "7", "--out", "x.png", "--format", "csv"]) == 2
    assert "--out x.png: .png is of a figure, and --format is csv" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["7,8"], ["7", "8"]])
def test_jobs_may_be_a_list(site, capsys, words):
    for job in (7, 8):
        leave(site, job=job)
    hdf5.merge(site)
    heads = [one for one in run(capsys, *words).splitlines() if one.startswith("job ")]
    assert [one.split(":")[0] for one in heads] == ["job 7", "job 8"]


@pytest.mark.parametrize("word", ["7,", "7,x", "0", "7,,8"])
def test_what_is_no_list_of_jobs_is_refused(capsys, word):
    with pytest.raises(SystemExit):
        cli.main(["report", "profile", word])
    assert "is not a job's raw id such as 12" in capsys.readouterr().err


def test_one_channel_and_one_node(site, capsys):
    leave(site, "n1")
    leave(site, "n2")
    hdf5.merge(site, {7})
    text = run(capsys, "7", "--node", "n2", "--channel", "rapl/package-0", "--label", "omp")
    assert text.startswith("omp: n2: 850 J +- 5.00 J (k=2) in 11.0 s") and "n1" not in text
    assert cli.main(["report", "profile", "7", "--channel", "gpu"]) == 2
    assert "meter/node, rapl/package-0" in capsys.readouterr().err
    assert cli.main(["report", "profile", "7", "--node", "n9"]) == 1


@pytest.mark.parametrize("suffix", ["png", "svg"])
@pytest.mark.parametrize("overlay", [[], ["--overlay"]], ids=["rows", "overlay"])
def test_figures(site, capsys, tmp_path, suffix, overlay):
    leave(site, "n1", marks=[*MARKS, (5, "begin", "$\\nonsense{", 0, 1)])
    leave(site, "n2", job=8, method="model")
    hdf5.merge(site)
    out = tmp_path / f"figure.{suffix}"
    assert run(capsys, "7", "8", "--out", str(out), *overlay) == f"{out}\n"
    drawn = out.read_bytes()
    assert drawn.startswith(b"\x89PNG" if suffix == "png" else b"<?xml")
    assert len(drawn) > 10_000


def test_the_legend_of_regions_is_whole(site, capsys, tmp_path, drawn_axes):
    """Long names and many of them: apart in grey print, and who is not named is counted."""
    names = [f"a-region-with-a-very-long-name-{number}" for number in range(14)]
    marks = [
        (0.1 + number + end, kind, name, 0, 1)
        for number, name in enumerate(names[:8])
        for end, kind in ((0, "begin"), (0.5, "end"))
    ]
    marks += [
        (9 + 0.1 * number + end, kind, name, 0, 1)
        for number, name in enumerate(names[8:])
        for end, kind in ((0, "begin"), (0.05, "end"))
    ]
    leave(site, marks=marks)
    hdf5.merge(site)
    run(capsys, "7", "--out", str(tmp_path / "figure.png"))
    (axes,) = drawn_axes
    legend = axes.get_legend()
    box, whole = legend.get_window_extent(), axes.figure.bbox
    assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0
    assert axes.get_window_extent().width > whole.width / 2
    assert [text.get_text() for text in legend.get_texts()] == [*names[:12], "and 2 others"]
    looks = {(key.get_facecolor(), key.get_hatch()) for key in legend.get_patches()[:12]}
    assert len(looks) == 12


def test_estimated_is_said_of_the_node_that_is(site, capsys, tmp_path, axes_of_figures):
    leave(site, job=7)
    leave(site, job=8, method="model")
    hdf5.merge(site)
    words = ("7", "8", "--out", str(tmp_path / "figure.png"))
    run(capsys, *words)
    run(capsys, *words, "--overlay")
    rows, overlay = axes_of_figures
    titles = [one.get_title(loc="left") for one in rows.figure.axes]
    assert ["ESTIMATED" in title for title in titles] == [False, True]
    labels = [text.get_text() for text in overlay.get_legend().get_texts()]
    assert ["(estimated)" in label for label in labels] == [False, True]
    assert [ESTIMATED in text.get_text() for text in overlay.texts] == [True]


@pytest.mark.parametrize("name", ["x.foo", "noext", "x.jpeg"])
def test_a_figure_of_no_known_kind_is_refused(site, capsys, tmp_path, name):
    leave(site)
    hdf5.merge(site, {7})
    out = tmp_path / name
    assert cli.main(["report", "profile", "7", "--out", str(out)]) == 2
    assert f"--out {out}: end it in .png, .svg or .pdf" in capsys.readouterr().err
    assert not list(tmp_path.glob(f"{name}*"))


def test_no_profile_says_what_to_do(site, capsys):
    assert cli.main(["report", "profile", "99"]) == 1
    assert "--energy=profile" in capsys.readouterr().err


def python(script, **env):
    """A user's program, in a Python of its own."""
    code = "from joulemark import region\n" + textwrap.dedent(script)
    path = str(Path(hdf5.__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("env", [{}, {"JOULEMARK_SOCKET": "/nowhere"}], ids=["outside", "gone"])
def test_pythons_regions_without_a_daemon_do_nothing(env):
    script = """
        @region("work")
        def work(n):
            return 1 if n == 0 else work(n - 1)
        with region("outer") as outer, region("measured", measure=True) as measured:
            work(3)
        assert outer.energy is None and measured.energy is None
        try:
            with region("fails"):
                raise KeyError("its own")
        except KeyError:
            print("passed on")
    """
    done = python(script, **env)
    assert (done.stdout, done.stderr) == ("passed on\n", "")
