# Which records belong to which start of a job.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import builders
from joulemark.accounting.runs import runs_of
from joulemark.store.nodes import SlurmRun, run_key_of


def found(*records):
    pairs = [(run_key_of(record), record) for record in records]
    return sorted(pairs, key=lambda pair: (pair[1]["node"], pair[0]))


def timed(node, start_s, seconds=10, **more):
    account = builders.account("job", seconds=seconds, start_s=start_s)
    return builders.record(node=node, accounts=[account], **more)


def excuse(node, **more):
    return builders.record(node=node, accounts=[], missing="joulemarkd was dead", **more)


def shape(runs):
    return [(run.number, [r["node"] for r in run.records], list(run.silent)) for run in runs]


def test_short_run_whose_nodes_start_one_after_the_other_is_one_run():
    records = [timed("n1", 0, 1), timed("n2", 1.5, 1), timed("n3", 4, 1)]
    assert shape(runs_of(found(*records), {})) == [(0, ["n1", "n2", "n3"], [])]


def test_records_of_one_node_one_after_the_other_are_runs():
    records = [timed("n1", 0), timed("n2", 0.1), timed("n1", 12), timed("n2", 11)]
    assert shape(runs_of(found(*records), {})) == [(0, ["n1", "n2"], []), (1, ["n1", "n2"], [])]


def test_run_on_other_nodes_much_later_is_another_run():
    records = [timed("n1", 0), timed("n2", 150)]
    assert len(runs_of(found(*records), {})) == 2


def test_of_two_records_of_a_node_in_one_run_the_later_counts():
    """joulemarkd lost its ledger in the middle of the job and began again."""
    whole, first, second = timed("n2", 0, 100), timed("n1", 0, 30), timed("n1", 40, 60)
    (run,) = runs_of(found(whole, first, second), {})
    assert run.records == [second, whole]


def test_excuse_is_of_the_last_run_that_lacks_the_node():
    said = {0: SlurmRun(0, ("n1", "n2")), 1: SlurmRun(1, ("n1",))}
    records = [timed("n1", 0), timed("n1", 200), excuse("n2")]
    assert shape(runs_of(found(*records), said)) == [(0, ["n1", "n2"], []), (1, ["n1"], [])]


def test_silent_nodes_are_those_that_slurm_named():
    said = {0: SlurmRun(0, ("n1", "n2", "n3"), "asleep")}
    (run,) = runs_of(found(timed("n1", 0), excuse("n3")), said)
    assert run.silent == {"n2": "asleep"}


def test_what_slurm_says_is_of_the_last_run_when_job_ids_began_anew():
    """The old job of the same number is an earlier run, and not this user's."""
    records = [timed("n1", 0), timed("n1", 10**6)]
    old, new = runs_of(found(*records), {0: SlurmRun(0, ("n1",), user="alice")})
    assert (old.slurm.user, new.slurm.user) == ("", "alice")


def test_counted_runs_are_by_their_count():
    records = [timed("n1", 0, restart=0), timed("n1", 0, restart=2), excuse("n2", restart=2)]
    assert shape(runs_of(found(*records), {})) == [(0, ["n1"], []), (2, ["n1", "n2"], [])]
