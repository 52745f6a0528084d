# What the tests share: a site in a temporary folder, and a `sacct` that replays a real one.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import os
import stat
import sys
from pathlib import Path

import builders
import pytest
from hypothesis import HealthCheck, settings
from joulemark import cli, config, store
from joulemark.store import jobs, session

DATA = Path(__file__).parent / "data"

# Properties hold however long a loaded machine takes for an example.
settings.register_profile("loaded", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loaded")


class Site:
    """A configured site, and the command run in it."""

    def __init__(self, folder: Path, capsys):
        self.folder = folder
        self.records = folder / "records"
        self.records.mkdir()
        self.store = folder / "store.sqlite"
        self.yaml = folder / "joulemark.yaml"
        self.yaml.write_text(
            f"cluster: demo\nrecord_dir: {self.records}\nstore: {self.store}\nperiod_s: 1.0\n"
        )
        self._capsys = capsys

    def configure(self, text: str) -> None:
        """More keys for joulemark.yaml."""
        self.yaml.write_text(self.yaml.read_text() + text)

    def leave(self, job=12, node="n1", accounts=None, **changes) -> Path:
        """Puts a record where joulemarkd would."""
        return builders.write(self.records, builders.record(job, node, accounts, **changes))

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of one `joulemark` command."""
        code = cli.main(list(arguments))
        output = self._capsys.readouterr()
        return code, output.out, output.err

    def out(self, *arguments: str) -> str:
        """What a command prints that must succeed."""
        code, out, err = self.run(*arguments)
        assert code == 0, err
        return out

    def at(self, cluster: str, *arguments: str) -> str:
        """What a command prints at another cluster that has this folder and store."""
        ours = self.yaml.read_text()
        self.yaml.write_text(ours.replace("cluster: demo\n", f"cluster: {cluster}\n"))
        try:
            return self.out(*arguments)
        finally:
            self.yaml.write_text(ours)

    def fails(self, *arguments: str) -> str:
        """What a command says that must fail."""
        code, _, err = self.run(*arguments)
        assert code == 1, err
        return err

    def refuses(self, *arguments: str) -> str:
        """What a command says of arguments or a configuration that are wrong."""
        code, _, err = self.run(*arguments)
        assert code == 2, err
        return err

    def rows(self, job: int, cluster: str = "demo") -> list[dict]:
        """The stored rows of a job."""
        with store.reading(config.load(self.yaml).store) as session:
            return jobs.job_rows(session, cluster, job)

    def job(self, job: int) -> dict[str, dict]:
        """Those of its last run by their step."""
        return jobs.last_run(self.rows(job))


@pytest.fixture
def site(tmp_path, monkeypatch, capsys):
    """A site of its own for one test."""
    made = Site(tmp_path, capsys)
    monkeypatch.setenv("JOULEMARK_CONFIG", str(made.yaml))
    return made


@pytest.fixture
def queries(monkeypatch):
    """What the store is asked, as SQL."""
    asked, rows = [], session.Session.rows

    def kept(self, sql, values=()):
        asked.append(sql)
        return rows(self, sql, values)

    monkeypatch.setattr(session.Session, "rows", kept)
    return asked


@pytest.fixture
def texts_on_figures(monkeypatch):
    """What is written over and in each figure's axes, in the order in which they are saved."""
    return collect_from_figures(monkeypatch, lambda axes: _texts(axes.texts))


@pytest.fixture
def legends_of_figures(monkeypatch):
    """The entries of each figure's legend, likewise."""
    return collect_from_figures(monkeypatch, lambda axes: _texts(axes.get_legend().get_texts()))


def _texts(texts):
    return [text.get_text() for text in texts]


@pytest.fixture
def axes_of_figures(monkeypatch):
    """The axes of each figure, likewise."""
    return collect_from_figures(monkeypatch, lambda axes: axes)


@pytest.fixture
def drawn_axes(monkeypatch):
    """The axes of each figure, with all extents in the pixels of one resolution."""

    def draw(axes):
        axes.figure.canvas.draw()
        return axes

    return collect_from_figures(monkeypatch, draw)


def collect_from_figures(monkeypatch, what_of):
    from joulemark.plots import chart

    found, close = [], chart.pyplot.close

    def collect(canvas):
        found.append(what_of(canvas.axes[0]))
        close(canvas)

    monkeypatch.setattr(chart.pyplot, "close", collect)
    return found


@pytest.fixture
def sacct_on_path(tmp_path, monkeypatch):
    """A `sacct` first on PATH that answers from tests/data; the file that logs its options."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "sacct"
    command.write_text(f"#!{sys.executable}\n{(DATA / 'replay_sacct.py').read_text()}")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SACCT_DATA", str(DATA))
    log = tmp_path / "sacct.log"
    monkeypatch.setenv("SACCT_LOG", str(log))
    return log


@pytest.fixture
def sacct_jobs(sacct_on_path, monkeypatch):
    """Of it, asked for jobs by number, those of tests/data/sacct.jobs."""
    monkeypatch.setenv("SACCT_JOBS", str(DATA / "sacct.jobs"))


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Writes cooked lines where $JOULEMARK_RESULTS points."""
    folder = tmp_path / "results"
    folder.mkdir()
    monkeypatch.setenv("JOULEMARK_RESULTS", str(folder))

    def write(*lines, name="mod2am.1.cooked.jsonl"):
        text = "".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in lines)
        (folder / name).write_text(text)
        return folder

    return write
