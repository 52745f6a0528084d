# Parquet of every command with a table: JSON's rows, and types that do not hang on what is known.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json

import builders
import pytest
from cooked_lines import UNKNOWN, line, manifest

parquet = pytest.importorskip("pyarrow.parquet")

COMMANDS = [
    ("report", "table", "mod2am"),
    ("report", "scaling", "mod2am"),
    ("compare", "mod2am", "--with", "LRZ"),
    ("trend", "mod2am"),
    ("diff", "results", "results"),
]


def read(site, words):
    path = site.folder / "x.parquet"
    site.out(*words, "--format", "parquet", "--out", str(path))
    return parquet.read_table(path)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_it_has_the_rows_and_types_of_json(site, results, monkeypatch, words):
    monkeypatch.chdir(site.folder)
    runs = [line(threads=n, time_s=0.1 / n, manifest=manifest()) for n in (1, 2, 2, 4)]
    results(*runs)
    found = read(site, words)
    _, out, _ = site.run(*words, "--format", "json")
    assert found.to_pylist() == json.loads(out)
    results(*({**one, **UNKNOWN} for one in runs))
    # texts alone, such as a verdict on no energy, are text in any case
    assert read(site, words).schema.equals(found.schema)


@pytest.mark.parametrize("report", ["usage", "nodes", "jobs --all"])
def test_what_is_not_known_yet_has_the_type_that_it_will_have(site, report):
    words = ("report", *report.split())
    site.leave(1, accounts=[{**builders.account("job"), "energy_uj": None}])
    site.out("merge")
    before = read(site, words).schema
    site.configure("price_per_kwh: 0.3\ncurrency: EUR\ncarbon_g_per_kwh: 300\n")
    site.leave(2)
    site.out("merge")
    after = read(site, words).schema
    assert before.equals(after), set(map(str, before)) ^ set(map(str, after))


def test_budgets_and_corrections_have_theirs(site, monkeypatch):
    sacctmgr = site.folder / "sacctmgr"
    sacctmgr.write_text("#!/bin/sh\necho 'demo|root||'\n")
    sacctmgr.chmod(0o755)
    monkeypatch.setenv("PATH", f"{site.folder}:/usr/bin:/bin")
    site.leave()
    site.out("merge")
    budgets = site.folder / "budgets.csv"
    budgets.write_text("physics,100,2020-01-01,2030-12-31\n")
    site.configure(f"budgets: {budgets}\n")
    site.out("store", "correct", "12", "--charge", "50%", "--why", "a refund")
    for words in (("report", "usage", "--budget"), ("store", "corrections")):
        assert read(site, words).to_pylist() == json.loads(site.out(*words, "--format", "json"))
