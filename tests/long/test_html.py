"""`joulemark report html` in a browser: its own script sorts, a foreign one does not run, it
looks as in the gallery, and on paper each column has its name."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from unittest import mock

import builders
import gallery
import pytest
from cooked_lines import line
from joulemark import cli
from joulemark.html.page import Section, document, table
from joulemark.layout import Text
from PIL import Image, ImageChops

SIZES = range(100, 250)
USES_J = {"alice": 1100, "bob": 900, "<script>": 20}
TITLE = "FOREIGN"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report of three users' jobs and a benchmark of many sizes."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "records").mkdir()
    configuration, out = folder / "joulemark.yaml", folder / "report.html"
    places = f"record_dir: {folder}/records\nstore: {folder}/store.sqlite\n"
    configuration.write_text(f"cluster: demo\n{places}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOULEMARK_CONFIG", str(configuration))
        for job, (user, used_j) in enumerate(USES_J.items(), 1):
            account = builders.account(energy_uj=used_j * 10**6)
            builders.write(folder / "records", builders.record(job, accounts=[account]))
            patch.setenv("SLURM_JOB_ID", str(job))
            patch.setenv("SLURM_JOB_USER", user)
            assert cli.main(["merge", "--job", str(job), "--nodes", "n1"]) == 0
        results = folder / "mod2am.cooked.jsonl"
        results.write_text("".join(json.dumps(line(size)) + "\n" for size in SIZES))
        assert cli.main(["report", "html", "--from", str(results), "--out", str(out)]) == 0
    return out.read_text()


def browse(page: str, folder: Path, *words: str) -> str:
    """What the browser answers; words: what it does with the page."""
    path = folder / "page.html"
    path.write_text(page)
    call = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    call += [f"--user-data-dir={folder}/profile", *words, f"file://{path}"]
    return subprocess.run(call, capture_output=True, text=True, check=True, timeout=120).stdout


def dom(page: str, folder: Path) -> str:
    """The document as the browser has it once its scripts have run."""
    return browse(page, folder, "--dump-dom")


def printed(page: str, folder: Path) -> list[list[str]]:
    """Each sheet's lines, from the top."""
    path = folder / "page.pdf"
    browse(page, folder, f"--print-to-pdf={path}", "--no-pdf-header-footer")
    words = ["pdftotext", "-layout", str(path), "-"]
    text = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout
    sheets = [sheet.split("\n") for sheet in text.split("\f")]
    return [lines for sheet in sheets if (lines := [one.strip() for one in sheet if one.strip()])]


def with_script(page: str, script: str) -> str:
    return page.replace("</body>", f"<script>{script}</script></body>")


def users(document: str) -> list[str]:
    """In the order of the table by user."""
    table = re.search(r"<caption>Energy by user</caption>.*?</table>", document, re.S)
    return re.findall(r'<th scope="row"[^>]*>(.*?)</th>', table.group())


def test_its_own_script_runs_and_a_foreign_one_does_not(page: str, tmp_path: Path) -> None:
    shown = dom(with_script(page, f"document.title = '{TITLE}'"), tmp_path)
    assert shown.count("<button") == page.count('scope="col"') > 5
    assert f"<title>{TITLE}" not in shown


@pytest.mark.parametrize(
    ("clicks", "order"),
    [
        ("", ["alice", "bob", "&lt;script&gt;"]),
        ("b[2].click();", ["alice", "bob", "&lt;script&gt;"]),  # energy, the greatest first
        ("b[2].click(); b[2].click();", ["&lt;script&gt;", "bob", "alice"]),
        ("b[0].click();", ["&lt;script&gt;", "alice", "bob"]),
        ("b[0].click(); b[0].click();", ["bob", "alice", "&lt;script&gt;"]),
    ],
)
def test_a_click_on_a_head_sorts(page: str, tmp_path: Path, clicks: str, order: list[str]) -> None:
    by_user = "[...document.querySelectorAll('table')].find(t => t.caption.textContent == '%s')"
    script = f"const b = {by_user % 'Energy by user'}.querySelectorAll('button'); {clicks}"
    free = re.sub(r"<meta http-equiv.*?>", "", page)  # or the test's own clicks were foreign, too
    assert users(dom(with_script(free, script), tmp_path)) == order


def test_all_is_there_without_scripts(page: str) -> None:
    assert users(page) == ["alice", "bob", "&lt;script&gt;"]


def test_on_paper_each_sheet_of_a_long_table_has_its_heads(page: str, tmp_path: Path) -> None:
    firsts = [lines[0].split()[0] for lines in printed(page, tmp_path)]
    assert firsts.count("Size") > 5
    assert not [first for first in firsts if first.isdigit()]


def test_on_paper_no_head_is_left_at_a_sheet_s_foot(tmp_path: Path) -> None:
    """Tables that begin at all heights near there; a sheet has more than 900 pixels."""
    short = table(Text("Caption", ["Head", "Value"], [("value", ["row", str(n)]) for n in "123"]))
    space = '<div style="break-before: page; height: %dpx"></div>'
    parts = [space % height + short for height in range(800, 1000, 4)]
    page = document("Tables", "", [Section("tables", "Tables", parts, [])])
    free = re.sub(r"<meta http-equiv.*?>", "", page)  # it forbids a style's attribute
    lasts = [lines[-1].split()[0] for lines in printed(free, tmp_path)]
    assert len(lasts) > len(parts) + 10 and set(lasts) == {"row", "Tables"}


VISIBLE = 40  # of 255 in a pixel's brightness: the kept ones' fewer colours differ by less
OTHERS = 0.002  # part of the pixels: the day in the page's head, another Chromium's edges


def test_screenshots_are_those_of_the_gallery(tmp_path: Path) -> None:
    (part,) = (one for one in gallery.parts() if one.pictures[0].endswith(".png"))
    with mock.patch.dict(os.environ, JOULEMARK_CONFIG=f"{tmp_path}/joulemark.yaml"):
        gallery.prepare(tmp_path)
        gallery.run(part, tmp_path, with_browser=True)
    for name in part.pictures:
        kept, taken = (Image.open(place / name).convert("L") for place in (gallery.KEPT, tmp_path))
        assert taken.size == kept.size
        counts = ImageChops.difference(taken, kept).histogram()
        assert sum(counts[VISIBLE:]) <= OTHERS * sum(counts), name
