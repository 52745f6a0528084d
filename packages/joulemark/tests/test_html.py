# `joulemark report html`: one page, whole without scripts or a network, whatever users are called.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser

import builders
import many_jobs
import pytest
from cooked_lines import UNKNOWN, line
from hypothesis import given
from hypothesis import strategies as st
from joulemark import config, store
from joulemark.bench import cooked
from joulemark.bench.stats import Value
from joulemark.html import charts, page, report
from joulemark.layout import Text
from joulemark.plots.model import SIZES, WORKERS, Axis, Chart, Line
from joulemark.plots.ticks import Scale
from joulemark.profile.rows import Row
from joulemark.store import jobs

VOID = {"meta"}
LETTER = 8  # pixels of one in a figure, at most
EVIL = "<script>alert('x')</script>"
QUOTES = "\"><img src=http://x onerror=y>'&amp;"


class Page(HTMLParser):
    """What a browser sees: balanced elements, tables by caption, texts, attributes."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.texts: list[tuple[str, str]] = []  # (element, text)
        self.tables: dict[str, list[list[str]]] = {}
        self._rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self._rows.append([])
        if tag in ("th", "td"):
            self._rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "table":
            self.tables[self._caption], self._rows = self._rows, []

    def handle_data(self, data):
        if not self.open:
            assert not data.strip()
            return
        self.texts.append((self.open[-1], data))
        if self.open[-1] in ("th", "td"):
            self._rows[-1][-1] += data
        if self.open[-1] == "caption":
            self._caption = data

    def within(self, tag: str) -> list[str]:
        return [text for element, text in self.texts if element == tag]


@pytest.fixture
def used(site, monkeypatch):
    """Jobs of users with all kinds of names: measured, estimated, without carbon, incomplete."""
    plain = site.yaml.read_text()
    jobs = [
        (1, EVIL, QUOTES, 0, "n1", {}),
        (2, EVIL, "red", 1, "n1", {"method": "model", "estimated": True}),
        (3, "carol", QUOTES, 40, "n1", {}),
        (4, "bob", "red", 0, "n[1-2]", {}),
    ]
    for job, user, account, day, nodes, changes in jobs:
        rates = "carbon_g_per_kwh: 360\nprice_per_kwh: 0.25\ncurrency: EUR\n" if job != 3 else ""
        site.yaml.write_text(plain + rates)
        made = builders.account("job", job * 10**9, start_s=86_400 * day, **changes)
        site.leave(job, accounts=[made, builders.account("0")])
        for name, value in (("ID", job), ("USER", user), ("ACCOUNT", account)):
            monkeypatch.setenv(f"SLURM_JOB_{name}", str(value))
        monkeypatch.setenv("SLURM_JOB_PARTITION", "main")
        site.out("merge", "--job", str(job), "--nodes", nodes, "--wait", "0")
    return site


def written(site, *words) -> tuple[Page, str]:
    path = site.folder / "report.html"
    site.out("report", "html", "--out", str(path), *words)
    text = path.read_text()
    return Page(text), text


def test_the_page_is_sound_and_asks_nothing_of_a_network(used, results):
    found, text = written(used, "--from", str(results(line(100), line(1000))))
    urls = ("src", "href", "srcset", "data", "action", "poster", "xlink:href")
    links = [
        (tag, value) for tag, said in found.tags for key, value in said.items() if key in urls
    ]
    assert links and all(tag == "a" and value.startswith("#") for tag, value in links)
    targets = {said.get("id") for _, said in found.tags}
    assert {value[1:] for _, value in links} <= targets
    assert "default-src 'none'" in text and "url(" not in text and "@import" not in text
    outside = re.sub(r"(?s)<(th|td|caption|title|text|li)\b.*?</\1>", "", text)
    assert "http:" not in outside and "https:" not in outside


def test_lines_stay_apart_in_grey_print_and_error_bars_are_whole():
    """By dash and mark; a dash in an error bar is nothing."""
    point = (Value(1.0), Value(1.0, interval=0.1))
    lines = [Line(f"line {number}", [point, point]) for number in range(16)]
    drawn = charts.chart(Chart("", Axis("x"), Axis("y")), lines, charts.looks([lines]))
    figure, _, legend = drawn.partition('<ul class="legend">')
    looks = re.findall(r'class="curve c. (d.)".*?class="mark.*? d="(.*?)"', figure)
    assert len(looks) == len(set(looks)) == len(lines)
    assert figure.count('<path class="bar c') == 2 * len(lines)
    assert len(set(re.findall(r"<li>(.*?)line", legend))) == len(lines)


def test_an_ideal_line_ends_above_what_falls_short_of_it():
    """63 % of it were drawn on it."""
    points = [(Value(n), Value(y)) for n, y in ((1, 1.0), (2, 1.9), (4, 3.4), (8, 5.0))]
    line_of = Line("line", points, ideal=[(n, float(n)) for n in (1, 2, 4, 8)])
    across = Axis("Nodes", kind=WORKERS)
    drawn = charts.chart(Chart("", across, Axis("y")), [line_of], charts.looks([[line_of]]))
    paths = {
        name: [float(place.split()[1]) for place in re.split("[ML]", path)[1:]]
        for name, path in re.findall(r'class="(ideal|curve) [^"]*" d="(M[^H]*?)"', drawn)
    }
    assert len(paths["ideal"]) == len(set(paths["ideal"])) == 4
    assert paths["curve"][-1] - paths["ideal"][-1] > 20
    assert [f">{count}<" in drawn for count in (1, 2, 4, 8, 5)] == [True] * 4 + [False]


def test_a_name_looks_the_same_in_all_figures(used, results):
    """Whichever of the lines before it has no energy, and whatever the benchmark."""
    triad = {"benchmark": "jm-stream", "kernel": "triad", "unit": "B/s"}
    hydro = {"benchmark": "hydro", "kernel": "hydro", "threads": 1}
    ours = [line(variant="plain", **UNKNOWN), line(), line(variant="omp", **triad, **UNKNOWN)]
    folder = results(*ours, *(line(ranks=n, **hydro) for n in (1, 2)))
    looks: dict[str, list[str]] = {}
    _, text = written(used, "--from", str(folder))
    for look, label in re.findall(r"<li>(<svg.*?</svg>)(.*?)</li>", text):
        looks.setdefault(label.partition(", ")[0], []).append(look.replace(" hollow", ""))
    for name in ("plain", "LRZ", "SNIC", "UiO"):
        assert len(looks[name]) > 1 and len(set(looks[name])) == 1, name
    assert len(looks["LRZ"]) > 8  # four benchmarks' and scaling's


@pytest.mark.parametrize(
    ("least", "most", "last"), [(1e3, 1e9, "10 G"), (1e4, 6e11, "1 T"), (1e5, 2e14, "1000 T")]
)
def test_the_last_number_of_an_axis_is_whole(least, most, last):
    points = [(Value(least), Value(1.0)), (Value(most), Value(1.0))]
    lines = [Line("a", points)]
    drawn = charts.chart(Chart("", Axis("x", kind=SIZES), Axis("y")), lines, charts.looks([lines]))
    *_, (x, said) = re.findall(r'class="middle" x="([\d.]+)" y="277">(.*?)<', drawn)
    assert said == last and float(x) + LETTER * len(said) / 2 <= charts.WIDTH


def test_the_time_of_a_profile_is_in_seconds_as_its_table_has_it():
    drawn = report._curves(3, [Row(3, "n1", "job 3: n1", [0.0, 3.14], [0.0, 314.0], [], False)])
    assert "Time [s]" in re.findall(">([^<>]+)<", drawn)


def test_what_users_are_called_stays_text(used):
    found, _ = written(used, "--title", f"{EVIL} & {QUOTES}")
    assert found.within("h1") == found.within("title")[:1] == [f"{EVIL} & {QUOTES}"]
    assert sum(tag == "script" for tag, _ in found.tags) == 1
    assert not any(tag == "img" for tag, _ in found.tags)
    assert not any(key.startswith("on") for _, said in found.tags for key in said)
    users = [row[0] for row in found.tables["Energy by user"]]
    assert sorted(users) == sorted(["User", EVIL, "bob", "carol"])
    assert QUOTES in [row[0] for row in found.tables["Energy by account"]]
    tips = [tip for tip in found.within("title") if tip.startswith(f"{EVIL}: ")]
    assert tips == [f"{EVIL}: ~3.00 kJ ± 60 J"]


def test_half_a_character_in_a_title_is_a_question_mark(used):
    """The command line may have bytes that are no UTF-8."""
    assert written(used, "--title", "a\udc80b")[0].within("h1") == ["a?b"]


def test_numbers_are_those_of_report_usage(used):
    found, _ = written(used)
    for by in ("cluster", "user", "account", "partition", "month"):
        heads, *rows = found.tables[f"Energy by {by}"]
        told = json.loads(used.out("report", "usage", "--by", by, "--format", "json"))
        assert heads[:4] == [by.capitalize(), "Jobs", "Energy [kJ]", "+-"]
        assert [row[0] for row in rows] == [one[by] for one in told]
        for row, one in zip(rows, told):
            assert row[1].rstrip("*") == str(one["jobs"])
            assert float(page.sort_value(row[2], "kJ")) == pytest.approx(
                one["energy_j"] / 1000, rel=0.005
            )
            assert float(page.sort_value(row[3], "kJ")) == pytest.approx(
                one["energy_error_j"] / 1000, rel=0.005
            )


def test_a_job_of_two_months_is_one_job_of_its_user(site):
    site.leave(1, accounts=[builders.account(seconds=30 * 86_400)])
    site.out("merge")
    found, _ = written(site)
    assert [row[1] for row in found.tables["Energy by user"][1:]] == ["1"]
    assert [row[1] for row in found.tables["Energy by month"][1:]] == ["1", "1"]


def test_marks_and_legends_are_the_terminal_s(used):
    found, _ = written(used)
    rows = {row[0]: row for row in found.tables["Energy by user"]}
    assert rows[EVIL][2].startswith("~3.00") and rows["bob"][1] == "1*"
    (cluster,) = found.tables["Energy by cluster"][1:]
    assert any(cell.endswith("(3 of 4)") for cell in cluster)
    notes = found.within("li")
    for words in (["usage", "--by", "month"], ["jobs"]):
        told = used.out("report", *words, "--format", "markdown").split("\n\n")[2:]
        told = [note.replace("\\", "").strip() for note in told]
        assert told and set(told) <= set(notes)


def test_days_bound_usage_and_jobs(used):
    found, _ = written(used, "--since", "2026-10-01", "--top", "1")
    assert [row[0] for row in found.tables["Energy by user"][1:]] == ["carol"]
    assert [row[0] for row in found.tables["Jobs by energy"][1:]] == ["3"]
    found, _ = written(used, "--since", "2999-01-01")
    assert found.tables == {} and "There is no record of a job in this time." in found.within("li")


def test_nodes_of_all_jobs_are_compared(site):
    for job, node, energy_uj in ((1, "n1", 10**9), (1, "n2", 2 * 10**9), (2, "n1", 10**9)):
        site.leave(job, node, accounts=[builders.account("job", energy_uj), builders.account("0")])
    site.out("merge")
    heads, *rows = written(site, "--top", "1")[0].tables["Energy by node"]
    assert heads == ["Node", "Jobs", "Energy [kJ]", "+-", "Power a job [W]", "+-"]
    assert rows[0] == ["n1", "2", "2.00", "40.1 J", "100", "2.00"]
    assert rows[1] == ["n2", "1", "2.00", "40.2 J", "200", "4.02"]


def test_clusters_are_chosen(site):
    """Two that have a job of one number."""
    for cluster, node, energy_uj in (("demo", "n1", 10**9), ("other", "n2", 2 * 10**9)):
        site.leave(1, node, accounts=[builders.account("job", energy_uj)], cluster=cluster)
        site.at(cluster, "merge")
    assert "n1" in written(site)[1] and "n2" in written(site)[1]
    found, text = written(site, "-M", "other")
    assert [row[0] for row in found.tables["Energy by cluster"][1:]] == ["other"]
    assert [row[0] for row in found.tables["Jobs by energy"][1:]] == ["1"]
    assert found.tables["Energy by node"][1][:3] == ["n2", "1", "2.00"]
    assert "n1" not in text and found.within("title")[0] == "Energy of other"
    both, _ = written(site, "-M", "other,demo", "--since", "1970-01-01")
    assert [row[0] for row in both.tables["Energy by cluster"][1:]] == ["other", "demo"]
    said = site.refuses("report", "html", "-M", "others")
    assert "--clusters: the store has no jobs of 'others'; there are: demo, other" in said


def test_each_run_of_a_job_is_counted_once_on_its_node(site):
    for run, energy_uj in enumerate((10**9, 3 * 10**9)):
        made = builders.account("job", energy_uj, start_s=5000 * run)
        site.leave(1, accounts=[made], restart=run)
        site.out("merge")
    assert written(site)[0].tables["Energy by node"][1][:3] == ["n1", "2", "4.00"]


def test_profiles_are_drawn_where_there_is_one(used):
    pytest.importorskip("h5py", reason="profiles are HDF5")
    from joulemark.profile import hdf5
    from test_profile import MARKS, lines

    (used.records / "profiles").mkdir()
    for job, node in ((3, "n1"), (3, "n2")):
        path = used.records / "profiles" / f"demo.{job}.{node}.profile.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in lines(node, job, marks=MARKS)))
    site = config.load(used.yaml)
    hdf5.merge(site)
    (site.profile_dir / "demo.1.h5").write_text("no HDF5")
    found, _ = written(used)
    heads, *rows = found.tables["Raw id 3: nodes"]
    assert heads == ["Node", "Time [s]", "Energy [J]", "+-", "Mean [W]", "Most [W]"]
    assert rows[0] == ["job 3: n1, ranks 0-1", "11.0", "1700", "30.0", "155", "200"]
    assert "job 3: n2, ranks 0-1" in found.within("title")
    assert any("demo.1.h5: not a profile" in note for note in found.within("li"))


def test_benchmarks_stand_beside_the_published_and_scale(used, results):
    folder = results(*(line(1000, ranks=n, threads=1, time_s=0.1 / n) for n in (1, 2, 4)))
    found, _ = written(used, "--from", str(folder))
    heads, *_ = found.tables["mod2am: performance [GF/s]"]
    assert heads[0] == "Size" and heads[-1] and "LRZ" in str(found.tables)
    scaled = [rows for title, rows in found.tables.items() if "strong scaling" in title]
    assert scaled[0][0][0] == "Ranks" and scaled[0][1][0] == "1"
    assert any(title.startswith("LRZ: matrix dimension 1000, ") for title in found.within("title"))


def test_files_are_read_once_whatever_benchmarks_are_in_them(used, results, monkeypatch):
    """One that nobody published and that was run in one way alone is there, too."""
    names = ("mod2am", "qcd", "mine")
    folder = results(*(line(benchmark=name, kernel=name) for name in names))
    reads, load = [], cooked.load
    monkeypatch.setattr(cooked, "load", lambda *what: reads.append(what) or load(*what))
    found, _ = written(used, "--from", str(folder))
    assert len(reads) == 1
    assert all(f"{name}: performance [GF/s]" in found.tables for name in names[1:])


def test_a_benchmark_that_ran_on_one_count_keeps_no_other_from_the_page(used, results):
    alone = line(10_000, benchmark="dhrystone", kernel="dhrystone")
    folder = results(alone, *(line(ranks=n, threads=1) for n in (1, 2)))
    found, _ = written(used, "--from", str(folder))
    assert any("strong scaling" in title for title in found.tables)
    assert "dhrystone" in str(list(found.tables))


def test_what_benchmarks_are_called_stays_text(used, results):
    named = {"benchmark": QUOTES, "kernel": EVIL, "variant": QUOTES, "cpu": EVIL}
    folder = results(*(line(1000, ranks=n, threads=1, **named) for n in (1, 2)))
    found, _ = written(used, "--from", str(folder))
    assert sum(tag in ("script", "img") for tag, _ in found.tags) == 1
    names = {said.get("aria-label") for _, said in found.tags}
    assert {f"{QUOTES}: performance", f"{EVIL}: parallel efficiency"} <= names


def test_bad_lines_are_named_once_and_no_result_is_an_error(used, results):
    folder = results(line(100), "{}\n")
    code, _, err = used.run("report", "html", "--from", str(folder))
    assert code == 0 and err.count("line left out") == 1
    folder = results("{}\n")
    assert "is sound" in used.refuses("report", "html", "--from", str(folder))


@pytest.mark.parametrize("name", ["r.pdf", "r.svg", "2026.11"])
def test_a_name_that_is_none_of_a_page_is_refused(used, name):
    path = used.folder / name
    said = used.refuses("report", "html", "--out", str(path))
    assert said == f"joulemark: --out {path}: it is a page of HTML: end it in .html or .htm\n"
    assert not path.exists()
    used.out("report", "html", "--out", str(used.folder / "R.HTM"))


def test_tables_are_accessible(used):
    found, _ = written(used)
    tables = sum(tag == "table" for tag, _ in found.tags)
    assert len(found.within("caption")) == tables > 5
    scopes = [said.get("scope") for tag, said in found.tags if tag == "th"]
    assert set(scopes) == {"col", "row"}
    figures = [said for tag, said in found.tags if tag == "svg" and said.get("role") == "img"]
    assert figures and all(said["aria-label"] for said in figures)


def test_a_page_of_many_jobs_is_small(site):
    """What grows with the jobs is left to the database."""
    site.leave(12)
    site.out("merge")
    with store.writing(config.load(site.yaml).store) as session:
        (pattern,) = (row for row in jobs.job_rows(session, "demo", 12) if row["Step"] == "job")
        rows = []
        for number_of in range(2000):
            row = {**pattern, "Job": 1000 + number_of, "ConsumedEnergy_uj": 10**9 + number_of}
            rows.append([row[name] for name in jobs.NAMES])
        session.insert("job_run", jobs.NAMES, rows)
    found, text = written(site)
    assert len(text) < 100_000
    assert found.tables["Energy by user"][1][1] == "2001"
    assert len(found.tables["Jobs by energy"]) == 21
    assert "the greatest 20 of 30" not in text
    assert "the greatest 20 of 30" in written(site, "--top", "30")[1]


@pytest.mark.parametrize(
    ("cell", "unit", "value"),
    [
        ("~3.00", "kJ", "3.00"),
        ("37 mJ", "kJ", "3.7e-05"),
        ("~8.31 kg (2 of 3)", "g", "8310"),
        ("4*", "", "4"),
        ("12 (run 1)", "", "12"),
        ("1.25 ± 0.03", "%", "1.25"),
        ("1.25 ± 0.03 kF/s", "GF/s", "1.25e-06"),
        ("37 mJ*", "J", "0.037"),
        ("300 MB (1 of 2)", "GB", "0.3"),
        ("3.00 EUR", "", "3.00"),
        ("2026-09", "", None),
        ("n1", "", None),
        ("-", "J", None),
    ],
)
def test_cells_sort_by_their_number_in_the_column_s_unit(cell, unit, value):
    assert page.sort_value(cell, unit) == value


def test_a_value_and_its_errors_are_sorted_together():
    body = [("value", ["1"]), ("error", ["± 2"]), ("value", ["3"])]
    text = page.table(Text("T", ["Size"], body))
    assert re.findall("<tbody>.*?</tbody>", text, re.S)[0].count("<tr") == 2


@given(
    st.lists(st.floats(1e-12, 1e15), min_size=1, max_size=5),
    st.sampled_from([Axis("x", kind=SIZES), Axis("x"), Axis("x", from_zero_to=1)]),
)
def test_ticks_are_1_2_5_and_enclose_the_values(values, axis):
    scale = Scale.of(axis, values, 0, 100)
    assert 2 <= len(scale.ticks) <= 14
    assert scale.ticks[0] <= min(values) * 1.00001 and max(values) <= scale.ticks[-1] * 1.00001
    steps = scale.ticks if scale.is_log else [scale.ticks[1]]
    assert {f"{step:e}"[0] for step in steps} <= set("125")
    places = [scale.at(value) for value in sorted(values)]
    assert places == sorted(places) and places[0] >= 0 and places[-1] <= 100


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=5))
def test_ticks_of_workers_are_powers_of_two_and_enclose_them(counts):
    ticks = Scale.of(Axis("x", kind=WORKERS), counts, 0, 100).ticks
    assert 2 <= len(ticks) <= 10 and ticks[0] <= min(counts) <= max(counts) <= ticks[-1]
    assert {math.frexp(tick)[0] for tick in ticks} == {0.5}


def test_a_page_of_a_hundred_thousand_jobs_has_5_mb_at_most(site):
    site.leave(many_jobs.PATTERN)
    site.out("merge")
    many_jobs.fill(config.load(site.yaml).store, 0, 100_000)
    found, text = written(site)
    assert found.tables["Energy by cluster"][1][:2] == ["demo", "100001"]
    assert len(found.tables["Energy by user"]) > many_jobs.USERS
    assert len(found.tables["Energy by node"]) > many_jobs.REPORTED_NODES
    assert len(text.encode()) <= 5e6
