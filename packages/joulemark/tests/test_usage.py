# `joulemark report usage` and `report jobs`: sums, errors, formats, plots.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import csv
import io
import json
import math
import os
import re

import builders
import pytest
from cooked_lines import markdown_rows
from joulemark import cli, output
from joulemark.accounting import joblist, usage
from joulemark.html.page import escaped
from joulemark.store import schema, sums


@pytest.fixture
def used(site, monkeypatch):
    """Three jobs of alice (one estimated, one a month later) and one of bob, who lacks a node."""
    site.configure("carbon_g_per_kwh: 360\nprice_per_kwh: 0.25\ncurrency: EUR\n")
    jobs = [
        (1, "alice", "blue", 0, {}),
        (2, "alice", "red", 1, {"method": "model", "estimated": True}),
        (3, "alice", "blue", 40, {}),
        (4, "bob", "red", 0, {}),
    ]
    for job, user, account, day, changes in jobs:
        made = builders.account("job", 10**9, start_s=86_400 * day, **changes)
        site.leave(job, accounts=[made, builders.account("0")])
        for name, value in (("ID", job), ("USER", user), ("ACCOUNT", account)):
            monkeypatch.setenv(f"SLURM_JOB_{name}", str(value))
        monkeypatch.setenv("SLURM_JOB_PARTITION", "main")
        nodes = "n[1-2]" if user == "bob" else "n1"
        site.out("merge", "--job", str(job), "--nodes", nodes, "--wait", "0")
    return site


def records(site, *words):
    return json.loads(site.out("report", "usage", "--format", "json", *words))


def test_usage_by_user_is_the_sum_of_jobs_without_their_steps(used):
    alice, bob = records(used)
    assert (alice["user"], alice["jobs"], alice["energy_uj"]) == ("alice", 3, 3 * 10**9)
    assert (bob["user"], bob["jobs"], bob["incomplete_jobs"]) == ("bob", 1, 1)
    assert alice["estimated_jobs"] == 1


def test_systematic_parts_add_up_and_random_ones_average_out(used):
    alice, _ = records(used)
    systematic, random = 3 * 0.01 * 1000, math.sqrt(3) * 0.001 * 1000
    assert alice["energy_error_j"] == pytest.approx(2 * math.hypot(systematic, random))


def test_carbon_and_cost_are_of_energy_alone(used):
    alice, bob = records(used)
    assert alice["carbon_g"] == pytest.approx(3000 / 3.6e6 * 360)
    assert bob["cost"] == pytest.approx(1000 / 3.6e6 * 0.25) and bob["currency"] == "EUR"
    assert bob["carbon_error_g"] == pytest.approx(bob["carbon_g"] * bob["energy_error_j"] / 1000)
    assert alice["overhead_j"] is None and alice["overhead_error_j"] is None


@pytest.fixture
def moved(site):
    """A price in EUR, one in CHF, none, and EUR again: a job each; the last is another user's."""
    plain = site.yaml.read_text()
    prices = ("price_per_kwh: 0.25\ncurrency: EUR\n", "price_per_kwh: 0.5\ncurrency: CHF\n", "")
    for job, price in enumerate((*prices, prices[0]), 1):
        site.yaml.write_text(plain + price)
        site.leave(job, uid=1000 + job // 4, accounts=[builders.account(energy_uj=36 * 10**11)])
        site.out("merge")
    return site


def test_another_currency_makes_no_second_line_of_a_user(moved):
    first, second = records(moved)
    assert (first["jobs"], first["energy_uj"]) == (3, 3 * 36 * 10**11)
    assert [first[name] for name in ("cost", "cost_error", "currency")] == [None] * 3
    assert first["cost_EUR"] == pytest.approx(0.25) and first["cost_CHF"] == pytest.approx(0.5)
    assert first["cost_error_CHF"] == pytest.approx(2 * first["cost_error_EUR"])
    assert (second["cost"], second["currency"]) == (pytest.approx(0.25), "EUR")
    assert second["cost_EUR"] == second["cost"] and second["cost_CHF"] is None
    assert [first["jobs"], first["cost_jobs_EUR"], first["cost_jobs_CHF"]] == [3, 1, 1]
    assert [second["jobs"], second["cost_jobs_EUR"], second["cost_jobs_CHF"]] == [1, 1, 0]
    out = moved.out("report", "usage", "--format", "markdown")
    heads, _, *rows = (dict(enumerate(row)) for row in markdown_rows(out))
    column = next(index for index, head in heads.items() if head == "Cost")
    assert rows[0][column].startswith("0.50 CHF + 0.25 EUR")
    assert rows[0][column + 1] == "0.01 + 0.005" and len(rows) == 2


def test_a_sum_of_some_jobs_says_of_how_many(site):
    plain = site.yaml.read_text()
    for job in range(1, 5):
        factor = "carbon_g_per_kwh: 360\nprice_per_kwh: 1\ncurrency: EUR\n" if job % 2 else ""
        site.yaml.write_text(plain + factor)
        known = {} if job < 4 else {"missing": "joulemarkd is dead"}
        accounts = [builders.account(energy_uj=36 * 10**11)] if job < 4 else []
        site.leave(job, accounts=accounts, **known)
        site.out("merge")
    (found,) = records(site)
    names = ("jobs", "energy_jobs", "overhead_jobs", "carbon_jobs", "cost_jobs")
    assert [found[name] for name in names] == [4, 3, 0, 2, 2]
    out = site.out("report", "usage", "--format", "markdown")
    heads, _, row = markdown_rows(out)
    cells = dict(zip(heads, row))
    assert cells["Jobs"] == "4*" and cells["Energy [MJ]"] == "10.8 (3 of 4)"
    assert cells["CO2e [g]"] == "720 (2 of 4)" and cells["Cost"] == "2.00 EUR (2 of 4)"
    assert "(2 of 3): the sum of 2 of 3 jobs" in out


@pytest.fixture
def lacking(site):
    """Of uid 1000 one job of two is known, of uid 1001 a node lacks, of uid 1002 nothing."""
    known, unknown = builders.account(), {**builders.account(), "energy_uj": None}
    less = builders.account(energy_uj=90_000_000)
    for job, uid, made in (
        (1, 1000, known),
        (2, 1000, unknown),
        (3, 1001, less),
        (4, 1002, unknown),
    ):
        site.leave(job, uid=uid, accounts=[made])
    site.out("merge", "--job", "3", "--nodes", "n[1-2]", "--wait", "0")
    site.out("merge")
    site.leave(5, accounts=[], missing="joulemarkd is dead")
    site.out("merge")
    return site


def test_bars_say_what_their_sums_lack(lacking, axes_of_figures):
    path = str(lacking.folder / "bars.svg")
    lacking.out("report", "usage", "--since", "2026-01-01", "--plot", path)
    (axes,) = axes_of_figures
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["uid 1000 (1 of 2)*", "uid 1001*"]
    said = [text.get_text() for text in axes.texts]
    assert said[0] == "error bars: k=2; not drawn, of unknown energy: 1"
    assert said[1:] == [usage.LEGEND_PARTIAL, usage.LEGEND_INCOMPLETE, usage.LEFT_OUT.format(1)]


def test_bars_of_a_page_say_what_their_sums_lack(lacking):
    page = lacking.folder / "page.html"
    lacking.out("report", "html", "--out", str(page))
    text = page.read_text()
    (figure,) = re.findall(r"<figure><figcaption>Energy by user.*?</figure>", text)
    names = re.findall(r'<text class="end".*?>(.*?)</text>', figure)
    assert names == ["uid 1000 (1 of 3)*", "uid 1001*"]
    tips = re.findall("<title>(.*?)</title>", figure)
    assert tips == ["uid 1000: 100 J ± 2.01 J (1 of 3)*", "uid 1001: 90.0 J ± 1.81 J*"]
    assert re.findall("<p>(.*?)</p>", figure) == [
        "error bars: k=2; not drawn, of unknown energy: 1",
        *map(escaped, (usage.LEGEND_PARTIAL, usage.LEGEND_INCOMPLETE)),
    ]
    (figure,) = re.findall(r"<figure><figcaption>Jobs by energy.*?</figure>", text)
    assert re.findall(r'<text class="end".*?>(.*?)</text>', figure) == [
        "1 uid 1000",
        "3 uid 1001*",
    ]


def test_a_sum_of_all_jobs_says_nothing_of_it(used):
    out = used.out("report", "usage")
    assert not re.search(r"\(\d+ of \d+\)", out)
    alice, bob = records(used)
    assert (alice["carbon_jobs"], alice["cost_jobs"], bob["energy_jobs"]) == (3, 3, 1)


def test_of_one_currency_there_are_no_columns_of_its_own(used):
    assert not [name for name in records(used)[0] if "EUR" in name]


def test_keys_and_days(used):
    found = records(used, "--by", "account,month")
    assert [(one["account"], one["month"], one["jobs"]) for one in found] == [
        ("blue", "2026-09", 1),
        ("red", "2026-09", 2),
        ("blue", "2026-10", 1),
    ]
    assert sum(one["jobs"] for one in records(used, "--until", "2026-09-30")) == 3
    assert sum(one["jobs"] for one in records(used, "--since", "2026-10-01")) == 1


def test_sums_beyond_63_bits_are_exact(site):
    """Ten days of a ten-megawatt site, in microjoules."""
    for job in range(1, 5):
        huge = builders.account("job", 2**61 + 1)
        site.leave(job, accounts=[huge])
    site.run("merge")
    assert records(site)[0]["energy_uj"] == 4 * (2**61 + 1)


def test_table_marks_what_is_estimated_or_incomplete(used):
    out = used.out("report", "usage")
    alice, bob = (line for line in out.splitlines() if "ali" in line or "bob" in line)
    assert alice.split()[1:3] == ["3", "~3.00"] and bob.split()[1] == "1*"
    assert "a model estimated" in out and "nodes' records are missing" in out


def test_csv_has_the_same_numbers(used):
    out = used.out("report", "usage", "--format", "csv")
    first = next(csv.DictReader(io.StringIO(out)))
    assert first["energy_uj"] == str(3 * 10**9) and first["overhead_uj"] == ""


def test_parquet_reads_back(used):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = used.folder / "jobs.parquet"
    words = ("report", "jobs", "--all", "--steps", "--format", "parquet", "--out", str(path))
    used.out(*words)
    table = parquet.read_table(path)
    assert table.num_rows == 8 and str(table.schema.field("energy_gpu_uj").type) == "int64"
    by_id = {(row["job_id_raw"], row["step"]): row for row in table.to_pylist()}
    assert by_id[2, "job"]["user"] == "alice" and by_id[2, "0"]["user"] is None
    assert by_id[1, "job"]["overhead_uj"] is None and by_id[1, "job"]["estimated"] is False


def test_steps_are_of_the_days_of_their_job(site):
    """Of one that saw two days, a step began on the second."""
    whole = builders.account(seconds=86_400)
    site.leave(12, accounts=[whole, builders.account("0"), builders.account("1", start_s=80_000)])
    site.leave(13, accounts=[builders.account(start_s=80_000)])
    site.out("merge")
    words = ("report", "jobs", "--all", "--steps", "--format", "json")
    listed = {
        days: [(row["job_id_raw"], row["step"]) for row in json.loads(site.out(*words, *days))]
        for days in (("--until", "2026-09-21"), ("--since", "2026-09-22"), ("-M", "demo"))
    }
    of_first, of_second, of_all = listed.values()
    assert of_first == [(12, "0"), (12, "1"), (12, "job")] and of_second == [(13, "job")]
    assert of_all == [*of_first, *of_second]


def test_parquet_types_are_the_store_s_where_the_first_jobs_have_no_value(tmp_path):
    """A later batch may have one."""
    parquet = pytest.importorskip("pyarrow.parquet")
    values = {"BIGINT": 20261, "DOUBLE PRECISION": 0.5}
    stored = {name: values.get(schema.JOB_RUN.get(name), "a text") for name in sums.COLUMNS}
    unknown, known = joblist.as_records([dict.fromkeys(stored), stored])
    output.write([[unknown], [known]], "parquet", str(tmp_path / "jobs.parquet"))
    assert parquet.read_table(tmp_path / "jobs.parquet").to_pylist() == [unknown, known]


def test_parquet_without_pyarrow_says_how_to_get_it(used, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    code, _, err = used.run("report", "usage", "--format", "parquet", "--out", "x.parquet")
    assert code == 1 and "pip install 'joulemark[parquet]'" in err


@pytest.mark.parametrize(
    "words",
    [
        ["usage"],
        ["usage", "--by", "account,month"],
        ["nodes"],
        ["jobs"],
        ["jobs", "--all"],
        ["jobs", "--all", "--anonymous"],
    ],
)
def test_csv_of_no_rows_has_its_columns(used, words):
    whole = used.out("report", *words, "--format", "csv")
    none = used.out("report", *words, "--since", "2999-01-01", "--format", "csv")
    assert none.splitlines() == whole.splitlines()[:1]


@pytest.mark.parametrize("words", [["usage"], ["nodes"], ["jobs"], ["jobs", "--all"]])
def test_parquet_of_no_rows_has_its_columns(used, words):
    """Of the types that they have with rows."""
    parquet = pytest.importorskip("pyarrow.parquet")
    whole, none = (used.folder / name for name in ("whole.parquet", "none.parquet"))
    used.out("report", *words, "--out", str(whole))
    used.out("report", *words, "--since", "2999-01-01", "--out", str(none))
    assert parquet.read_table(none).num_rows == 0 < parquet.read_table(whole).num_rows
    assert parquet.read_schema(none) == parquet.read_schema(whole)


def test_jobs_are_listed_by_energy_with_their_errors(used):
    out = used.out("report", "jobs", "--top", "2", "--format", "markdown")
    rows = [line for line in out.splitlines() if line.startswith("| ")]
    assert len(rows) == 4 and "Energy [kJ] | +- | Mean [W]" in rows[0] and "Cost" in rows[0]


def test_how_many_jobs_the_list_leaves_out_is_said(lacking):
    """Three have no energy, of one of which nobody knows when it ran."""
    unlisted = "Jobs without a known energy, which are not listed: {}."
    untimed = usage.LEFT_OUT.format(1)
    since = ("--since", "2026-01-01")
    assert lacking.out("report", "jobs").splitlines()[-1] == unlisted.format(3)
    assert lacking.out("report", "jobs", *since).splitlines()[-2:] == [untimed, unlisted.format(2)]
    code, out, err = lacking.run("report", "jobs", "--format", "json", *since)
    assert code == 0 and len(json.loads(out)) == 2
    assert err.splitlines() == [f"joulemark: {untimed}", f"joulemark: {unlisted.format(2)}"]
    for words, told in (((), ""), (since, f"joulemark: {untimed}\n")):
        _, out, err = lacking.run("report", "jobs", "--all", "--format", "csv", *words)
        assert (len(out.splitlines()), err) == (6 - len(told[:1]), told)
    page = lacking.folder / "page.html"
    lacking.out("report", "html", "--out", str(page))
    assert unlisted.format(3) in page.read_text()


def test_a_list_of_all_jobs_says_nothing_of_it(used):
    assert "not listed" not in used.out("report", "jobs")


def test_what_costs_little_does_not_cost_nothing(used):
    for name in ("usage", "jobs"):
        heads, _, *rows = markdown_rows(used.out("report", name, "--format", "markdown"))
        column = heads.index("Cost")
        assert {row[column].split()[0].strip("\\~") for row in rows} <= {"0.000069", "0.00021"}
        assert all(float(row[column + 1]) > 0 for row in rows)


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, "0.00"), (12.345, "12.35"), (0.0996, "0.10"), (0.05, "0.05"), (-0.00021, "-0.00021")],
)
def test_money_has_two_digits(value, told):
    assert usage.money(value) == told


def test_every_job_as_csv(used):
    out = used.out("report", "jobs", "--all", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["job_id_raw"] for row in rows] == ["1", "2", "3", "4"]
    assert rows[0]["energy_uj"] == str(10**9) and float(rows[0]["energy_j"]) == 1000
    assert used.run("report", "jobs", "--all")[0] == 2


@pytest.mark.parametrize(
    ("name", "head"), [("u.png", b"\x89PNG\r\n"), ("u.svg", b"<?xml"), ("u.PDF", b"%PDF-")]
)
def test_plot_is_drawn_as_its_name_says(used, name, head):
    path = used.folder / name
    assert used.run("report", "usage", "--plot", str(path))[0] == 0
    assert path.read_bytes().startswith(head)


def test_names_of_bars_do_not_overlap_and_leave_room_for_them(used, monkeypatch, drawn_axes):
    used.leave(5)
    monkeypatch.setenv("SLURM_JOB_ID", "5")
    monkeypatch.setenv("SLURM_JOB_USER", "a-user-" * 12)
    used.out("merge", "--job", "5", "--nodes", "n1", "--wait", "0")
    for by in ("user", "day,user,account"):
        used.out("report", "usage", "--by", by, "--plot", str(used.folder / "bars.png"))
    for axes in drawn_axes:
        boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
        ends = [(box.y1, box.y0) for box in sorted(boxes, key=lambda box: -box.y0)]
        assert all(below[0] <= above[1] for above, below in zip(ends, ends[1:]))
        assert axes.get_window_extent().width > axes.figure.bbox.width / 2
        least, most = sorted(axes.get_ylim())
        assert (least, most) == (-0.6, len(boxes) - 0.4)


def test_a_plot_of_no_known_kind_is_refused_before_anything_is_printed(used):
    code, out, err = used.run("report", "usage", "--plot", "usage.jpg")
    assert (code, out) == (2, "") and "--plot usage.jpg: end it in .png, .svg or .pdf" in err


def test_a_cell_that_leaves_its_column_s_scale_says_its_unit(site):
    site.configure("carbon_g_per_kwh: 360\n")
    for job, energy_uj in enumerate((4 * 10**15, 5 * 10**15, 841 * 10**9), 1):
        site.leave(job, uid=job, accounts=[builders.account(energy_uj=energy_uj, seconds=3600)])
    site.out("merge")
    heads, _, *rows = markdown_rows(site.out("report", "usage", "--format", "markdown"))
    cells = [dict(zip(heads, row)) for row in rows]
    assert heads[4] == "CO2e [kg]" and cells[-1]["CO2e [kg]"] == "84.1 g"
    assert [row["CO2e [kg]"] for row in cells[:2]] == ["500", "400"]


def test_wrong_keys_and_days_are_named(used):
    with pytest.raises(SystemExit):
        cli.main(["report", "usage", "--by", "colour"])
    code, _, err = used.run("report", "usage", "--since", "yesterday")
    assert code == 2 and "--since: 'yesterday' is not a day" in err


@pytest.mark.parametrize("kind", ["usage", "jobs", "nodes", "html"])
def test_days_that_end_before_they_begin_are_refused(used, kind):
    words = ("report", kind, "--since", "2026-11-02", "--until")
    said = used.refuses(*words, "2026-11-01")
    assert said == "joulemark: --since 2026-11-02: is later than --until 2026-11-01\n"
    used.out(*words, "2026-11-02")


@pytest.mark.parametrize("columns", [None, 40])
def test_no_cell_of_a_table_is_cut(used, monkeypatch, columns):
    """In a pipe and in a narrow terminal: a number without its end is another number."""
    if columns:
        monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
        monkeypatch.setenv("COLUMNS", str(columns))
    for words in (["usage", "--by", "cluster,user,account,partition,month,day"], ["jobs"]):
        text = used.run("report", *words)[1]
        assert "…" not in text and "alice" in text
    assert max(map(len, text.splitlines())) > 50


@pytest.mark.parametrize("words", [["usage", "--by", "user"], ["jobs"]])
def test_a_narrow_terminal_goes_without_what_is_optional(used, monkeypatch, words):
    """A value with its error, and it is told which."""
    whole = used.run("report", *words)[1].splitlines()[1]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    seen = set()
    for width in range(30, len(whole) + 8):
        monkeypatch.setenv("COLUMNS", str(width))
        text = re.sub(r"\x1b\[[0-9;]*m", "", used.run("report", *words)[1])
        rows = text[: text.index("\n\n")].splitlines()
        said = rows.pop().partition("Not shown for want of width: ")[2] if "Not" in text else ""
        heads = re.split("  +", rows[1].strip())
        names = said.removesuffix(".").split(", ") if said else []
        assert "Energy" in rows[1] and any("alice" in row for row in rows)
        has_error = [head.startswith(("Energy", "CO2e", "Cost")) for head in heads]
        assert [head == "+-" for head in [*heads[1:], ""]] == has_error
        assert len(rows[1].rstrip()) <= max(width, 48)
        assert not set(names) & set(heads)
        seen.add(len(heads))
    assert len(seen) > 2 and names == []


def test_a_file_has_no_colours_of_the_terminal(used, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    path = used.folder / "usage.txt"
    assert "\x1b[" in used.run("report", "usage")[1]
    assert used.run("report", "usage", "--out", str(path))[:2] == (0, "")
    assert "\x1b" not in path.read_text() and "alice" in path.read_text()


def test_what_is_no_file_is_written_to_and_stays(used):
    """`--out /dev/null` by root left a file where every program expects the device."""
    fifo, link, target = (used.folder / name for name in ("fifo", "link.csv", "target.csv"))
    os.mkfifo(fifo)
    link.symlink_to(target.name)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    for path in (fifo, link):
        assert used.run("report", "usage", "--format", "csv", "--out", str(path))[0] == 0
    text = os.read(reader, 1 << 16).decode()
    os.close(reader)
    assert fifo.is_fifo() and link.is_symlink()
    assert text == target.read_text() and text.startswith("user,jobs,")


@pytest.mark.parametrize(
    ("name", "words", "begin"),
    [
        ("u.csv", (), "user,jobs,"),
        ("u.JSON", (), "[\n{"),
        ("u.md", (), "**Energy by user**"),
        ("u.txt", (), "Energy by user\n"),
        ("u", ("--format", "csv"), "user,jobs,"),
        ("u.csv", ("--format", "csv"), "user,jobs,"),
        ("u.parquet", (), "PAR1"),
    ],
)
def test_a_file_has_the_format_of_its_name(used, name, words, begin):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow.parquet")
    path = used.folder / name
    used.out("report", "usage", "--out", str(path), *words)
    assert path.read_bytes().startswith(begin.encode())


@pytest.mark.parametrize("name", ["u.pdf", "u.PNG", "u.html"])
@pytest.mark.parametrize("words", [(), ("--format", "csv")])
def test_a_table_is_not_written_to_what_is_none(used, name, words):
    path = used.folder / name
    said = used.refuses("report", "usage", "--out", str(path), *words)
    assert said.startswith(
        f"joulemark: --out {path}: it would hold a table: end it in .csv, .json"
    )
    assert not path.exists()


@pytest.mark.parametrize("name", ["u.xlsx", "u.CSV2", "u.tsv"])
def test_a_table_for_people_is_not_written_to_what_its_name_says_to_be_another(used, name):
    path = used.folder / name
    said = used.refuses("report", "usage", "--out", str(path))
    assert said == (
        f"joulemark: --out {path}: it would hold a table for people: end it in .csv, .json, .md, "
        ".parquet or .txt, or say --format\n"
    )
    assert not path.exists()
    used.out("report", "usage", "--out", str(path), "--format", "csv")
    assert path.read_text().startswith("user,")


def test_two_formats_are_refused(used, capsys):
    for words in (("--json", "--format", "csv"), ("--format", "csv", "--json")):
        with pytest.raises(SystemExit) as stopped:
            used.run("report", "usage", *words)
        assert stopped.value.code == 2 and "not allowed with" in capsys.readouterr().err


def test_parquet_needs_a_file_before_any_work(used):
    used.store.unlink()
    for words in (("report", "usage"), ("job", "1"), ("doctor",), ("top", "--once")):
        said = used.refuses(*words, "--format", "parquet")
        assert said == "joulemark: --format parquet: it is no text: name a file with --out\n"


@pytest.mark.parametrize("form", ["terminal", "csv"])
def test_a_file_of_another_format_s_name_is_refused(used, form):
    path = used.folder / "u.json"
    said = used.refuses("report", "usage", "--format", form, "--out", str(path))
    assert f"--out {path}: .json is of --format json, and --format is {form}" in said
    assert not path.exists()


def test_several_clusters_are_in_one_store(used):
    used.leave(1, accounts=[builders.account("job", 5 * 10**9)], cluster="other")
    used.at("other", "merge")
    groups = {one["cluster"]: one for one in records(used, "--by", "cluster")}
    assert {name: one["energy_uj"] for name, one in groups.items()} == {
        "demo": 4 * 10**9,
        "other": 5 * 10**9,
    }
    assert records(used, "--by", "cluster", "-M", "other") == [groups["other"]]
    rows = json.loads(used.out("report", "jobs", "-M", "other,demo", "--format", "json"))
    assert [row["cluster"] for row in rows] == ["other", *4 * ["demo"]]
    exported = used.out("report", "jobs", "--all", "-M", "other", "--format", "csv")
    assert [row["cluster"] for row in csv.DictReader(io.StringIO(exported))] == ["other"]
    said = used.refuses("report", "usage", "-M", "others")
    assert "--clusters: the store has no jobs of 'others'; there are: demo, other" in said
