# Without matplotlib, the extra `plots`: all but figures works, and a figure says what it needs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import subprocess
import sys

import pytest
from cooked_lines import line

WITHOUT = (
    "import sys; sys.modules['matplotlib'] = None\n"
    "from joulemark import cli; sys.exit(cli.main(sys.argv[1:]))"
)
MISSING = "joulemark: figures: the Python module matplotlib is missing: pip install"


@pytest.fixture
def without(site, results):
    """Runs a command with a job in the store and results of a scaling benchmark."""
    site.leave()
    site.out("merge")
    results(line(), line(threads=4, time_s=0.03))

    def run(*words):
        command = [sys.executable, "-c", WITHOUT, *words]
        return subprocess.run(command, cwd=site.folder, capture_output=True, text=True)

    return run


@pytest.mark.parametrize(
    "words",
    [
        ("report", "usage"),
        ("report", "table", "mod2am"),
        ("report", "scaling", "mod2am"),
        ("compare", "mod2am", "--with", "LRZ"),
        ("report", "html", "--from", "results"),
    ],
    ids=" ".join,
)
def test_all_but_figures_works(without, words):
    done = without(*words)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("report", "usage", "--plot", "x.png"),
        ("report", "plot", "mod2am", "--out", "plots"),
        ("report", "scaling", "mod2am", "--plot", "plots"),
        ("compare", "mod2am", "--with", "LRZ", "--plot", "plots"),
        ("report", "profile", "1", "--out", "x.png"),
    ],
    ids=" ".join,
)
def test_a_figure_says_what_it_needs_before_the_work(without, words):
    done = without(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(MISSING) and "'joulemark[plots]'" in done.stderr
