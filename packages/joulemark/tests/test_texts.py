# Texts of others' making, such as a region's name, command no terminal.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import sys

import builders
import pytest
from cooked_lines import line
from joulemark.doctor.finding import ERROR, Finding
from joulemark.layout import Text
from joulemark.top import screen

EVIL = "sol\x1b]0;owned\x07\x1b[2J\x9b31m\u202eve\u2066"
SHOWN = "sol?]0;owned??[2J?31m?ve?"


def is_harmless(text: str) -> bool:
    return text.replace("\n", "").isprintable()


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_a_region_of_a_job(site, form):
    region = {"name": EVIL, "count": 1, "seconds": 1.0, "energy_uj": 100, "uncertainty_uj": 1.0}
    site.leave(accounts=[builders.account(regions=[region])])
    site.out("merge")
    out = site.out("job", "12", "--format", form)
    assert SHOWN in out and is_harmless(out)


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_a_result(site, results, form):
    results(line(variant=EVIL, cpu=EVIL))
    out = site.out("report", "table", "mod2am", "--format", form)
    assert out.count(SHOWN) == 2 and is_harmless(out)


def test_only_our_own_colours_reach_a_terminal(site, results, monkeypatch):
    results(line(variant=EVIL))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert SHOWN in site.out("report", "table", "mod2am")


def test_json_has_the_very_text_escaped(site, results):
    results(line(variant=EVIL, cpu="Ä CPU 漢"))
    out = site.out("report", "table", "mod2am", "--format", "json")
    assert is_harmless(out) and "Ä CPU 漢" in out
    assert {one["variant"] for one in json.loads(out)} == {EVIL}


def test_a_job_s_name_and_what_sacct_s_table_ends_with(site, sacct_on_path, monkeypatch):
    monkeypatch.setenv("SACCT_NAMES", json.dumps({"1": EVIL}))
    site.leave(1, accounts=[builders.account(missing=EVIL)], missing=f"restart {EVIL}")
    site.run("merge")
    out = site.out("sacct", "-o", "JobIDRaw,JobName%40,Energy")
    assert out.count(SHOWN) == 2 and is_harmless(out)
    assert EVIL in site.out("sacct", "-P", "-o", "JobIDRaw,JobName,Energy")


def test_errors(site, results):
    results(line())
    code, _, err = site.run("report", "table", EVIL)
    assert code == 2 and SHOWN in err and is_harmless(err)


def test_what_the_doctor_found():
    assert is_harmless(Finding("contain", ERROR, EVIL, EVIL, "fix").line())


def test_what_top_tells(capsys):
    class Told:
        is_over = False
        columns = ()

        def problems(self):
            return [EVIL]

        news = problems

        def table(self):
            return Text(EVIL, [EVIL], [("value", [EVIL])]), [EVIL]

        def rows(self):
            return []

    class Options:
        format, out = "terminal", None

    screen._Lines(Options()).round(Told())
    said = capsys.readouterr()
    assert said.err == f"joulemark: {SHOWN}\n"
    assert said.out.count(SHOWN) == 5 and is_harmless(said.out)
