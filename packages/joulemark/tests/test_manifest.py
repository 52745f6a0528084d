# Which runs are averaged: those of one manifest, whatever their job, node and date.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import math
from collections import Counter

import pytest
from cooked_lines import line, manifest, markdown_rows
from hypothesis import given
from hypothesis import strategies as some
from joulemark.bench import cooked, stats
from joulemark.bench.manifest import Manifest, apart

OLD, NEW = manifest(), manifest(compiler="GNU 13.1.0", flags="-O3 -march=native")


def records(site, *words):
    return json.loads(site.out("report", "table", "mod2am", "--format", "json", *words))


def titles(site, *words):
    out = site.out("report", "table", "mod2am", "--format", "markdown", *words)
    return [one.strip("*") for one in out.splitlines() if one.startswith("**")]


def test_two_builds_are_not_one_n(site, results):
    results(line(time_s=0.05, manifest=OLD), line(time_s=0.04, manifest=NEW))
    found = records(site)
    assert [(one["compiler"], one["runs"], one["time_s"]) for one in found] == [
        ("GNU 12.2.0", 1, 0.05),
        ("GNU 13.1.0", 1, 0.04),
    ]
    assert found[0]["os_kernel"] == "6.1.0-30-amd64" and found[0]["spack_hash"] is None


def test_a_title_says_what_differs_and_nothing_else(site, results):
    results(line(manifest=OLD), line(manifest=NEW))
    assert titles(site) == [
        "mod2am, blas, 2 threads, x86_64, A CPU, compiler GNU 12.2.0, flags -O2",
        "mod2am, blas, 2 threads, x86_64, A CPU, compiler GNU 13.1.0, flags -O3",
    ]


def test_of_libraries_only_those_that_differ_are_told(site, results):
    other = "glibc-2.36 libopenblasp-r0.3.26.so libc.so.6"
    results(line(manifest=OLD), line(manifest=manifest(libraries=other)))
    assert [one.partition("A CPU, ")[2] for one in titles(site)] == [
        "libraries libopenblasp-r0.3.21.so",
        "libraries libopenblasp-r0.3.26.so",
    ]


def test_flags_in_another_order_are_told_whole(site, results):
    results(line(manifest=manifest(flags="-a -b")), line(manifest=manifest(flags="-b -a")))
    assert [one.partition("A CPU, ")[2] for one in titles(site)] == ["flags -a -b", "flags -b -a"]


def test_job_node_date_and_the_moment_s_frequency_are_variance(site, results):
    results(
        line(manifest=OLD, job="1", node="n1", start="2026-01-01T00:00:00+00:00"),
        line(
            manifest=manifest(frequency_hz=3.1e9, new_key=[1]),
            **{"job": "2", "node": "n2", "start": "2026-02-01T00:00:00+00:00"},
        ),
    )
    (record,) = records(site)
    assert (record["runs"], record["jobs"]) == (2, 2)


def test_another_slurm_or_instrument_is_another_kind_another_channel_is_not(site, results):
    gpu = "powercap/cpu powercap/dram nvml/gpu"
    kinds = ({}, {"slurm": "25.11.1"}, {"instruments": gpu}, {"channels": "rapl/package-1"})
    results(*(line(manifest=manifest(**one)) for one in kinds))
    assert [(one["slurm"], one["instruments"], one["runs"]) for one in records(site)] == [
        ("22.05.8", "nvml/gpu powercap/cpu powercap/dram", 1),
        ("22.05.8", "powercap/cpu powercap/dram", 2),
        ("25.11.1", "powercap/cpu powercap/dram", 1),
    ]
    assert "slurm 22.05.8, instruments nvml/gpu" in titles(site)[0]


def test_runs_with_other_options_are_other_runs(site, results):
    fills = (0.15, 0.01, 0.15)
    results(*(line(option_fill=fill, option_plan="fast", manifest=OLD) for fill in fills))
    assert [(one["options"], one["runs"]) for one in records(site)] == [
        ("fill=0.01 plan=fast", 1),
        ("fill=0.15 plan=fast", 2),
    ]
    assert [one.partition("A CPU, ")[2] for one in titles(site)] == [
        "options fill=0.01",
        "options fill=0.15",
    ]


def test_options_of_a_program_without_a_manifest_tell_its_runs_apart(site, results):
    results(line(option_nb=192), line(option_nb=1310720), line(option_nb=192))
    told = {"nb=192": 2, "nb=1310720": 1}
    assert {one["options"]: one["runs"] for one in records(site)} == told


FILLS = {100: 0.0375, 200: 0.02, 500: 0.01}  # as mod2as has them without --fill


def test_an_option_that_goes_with_the_size_leaves_a_table_whole(site, results):
    results(*(line(size, option_fill=fill, option_plan="a") for size, fill in FILLS.items()))
    (title,) = titles(site)
    assert title.endswith("A CPU")
    assert [one["options"] for one in records(site)] == [
        f"fill={fill} plan=a" for fill in FILLS.values()
    ]


def test_another_option_makes_another_table_and_not_one_of_each_size(site, results):
    results(
        *(
            line(size, option_fill=fill, option_plan=plan)
            for size, fill in FILLS.items()
            for plan in ("a", "b")
        )
    )
    assert [one.partition("A CPU, ")[2] for one in titles(site)] == [
        "options plan=a",
        "options plan=b",
    ]


def test_one_stray_fill_leaves_the_table_by_size_whole(site, results):
    results(*(line(size, option_fill=fill) for size, fill in FILLS.items()), line(option_fill=5))
    results(*(line(size, option_fill=fill) for size, fill in [*FILLS.items(), (200, 5), (100, 5)]))
    assert [one.partition("A CPU, ")[2] for one in titles(site)] == [
        "options fill by size",
        "options fill=5",
    ]


def test_an_option_that_goes_with_the_ranks_takes_no_count_from_a_scaling(site, results):
    offsets = {16: 0, 32: 16, 64: 16}
    results(
        *(
            line(ranks=ranks, nodes=ranks // 16, threads=1, option_offset=offset)
            for ranks, offset in offsets.items()
        )
    )
    out = site.out("report", "scaling", "mod2am", "--format", "json")
    assert [one["workers"] for one in json.loads(out)] == [1, 2, 4]


def test_other_options_are_another_scaling(site, results):
    results(
        *(
            line(threads=threads, time_s=nb / threads, option_nb=nb)
            for nb in (1, 2)
            for threads in (1, 2)
        )
    )
    found = json.loads(site.out("report", "scaling", "mod2am", "--format", "json"))
    assert [(one["options"], one["parallel_efficiency"]) for one in found] == [
        ("nb=1", 1.0),
        ("nb=1", 1.0),
        ("nb=2", 1.0),
        ("nb=2", 1.0),
    ]


def test_the_best_variant_and_the_summary_are_of_one_set_of_options(site, results):
    results(
        *(
            line(variant=variant, time_s=nb * time_s, option_nb=nb)
            for variant, time_s in (("plain", 1.0), ("blas", 0.5))
            for nb in (1, 2)
        )
    )
    out = site.out("report", "table", "mod2am", "--best", "--format", "json")
    best = json.loads(out)
    assert [(one["options"], one["time_s"]) for one in best] == [("nb=1", 0.5), ("nb=2", 1.0)]
    out = site.out("report", "table", "mod2am", "--format", "markdown")
    assert "Size 1000 (options nb=1): blas" in out and "Size 1000 (options nb=2): blas" in out


def test_no_export_takes_other_options_for_the_same_run(site, results, tmp_path):
    results(*(line(size, option_fill=fill) for size in (100, 200) for fill in (0.1, 0.2)))
    report = json.loads(site.out("export", "reframe"))
    cases = report["runs"][0]["testcases"]
    assert len({one["unique_name"] for one in cases}) == 4
    assert cases[0]["name"].endswith("%nodes=1 %fill=0.1")
    site.out("export", "benchpark", "--out", str(tmp_path / "study"))
    studies = sorted(one.parent.parent.name for one in (tmp_path / "study").rglob("results*"))
    assert studies == [f"throughput-nodes1-ranks1-fill_0.{fill}" for fill in (1, 2)]
    job = {"job": "7", "node": "n1"}
    results(line(kernel="a", option_fill=1, **job), line(kernel="b", option_fill=2, **job))
    site.out("export", "thicket", "--out", str(tmp_path / "profiles"))
    assert len(list((tmp_path / "profiles").iterdir())) == 2


def test_variants_are_laid_beside_each_other_by_the_same_options(site, results):
    results(
        *(line(option_fill=fill, variant="blas") for fill in (0.1, 0.2)),
        *(line(option_fill=fill, variant="plain", time_s=1.0) for fill in (0.2, 0.3)),
    )
    out = site.out("report", "table", "mod2am", "--compare", "plain,blas", "--format", "markdown")
    against = [one for one in out.splitlines() if " against " in one]
    assert len(against) == 1 and "options fill=0.2" in against[0]


def test_another_seed_is_another_draw_of_one_problem(site, results):
    results(*(line(option_seed=seed, option_nb=64) for seed in (1, 2)))
    (record,) = records(site)
    assert (record["runs"], record["options"]) == (2, "nb=64")


def test_one_odd_node_makes_another_kind_whichever_tells_first(site, results):
    told = ("powercap/cpu nvml/gpu(3/4)", "nvml/gpu(3/4) powercap/cpu", "powercap/cpu nvml/gpu")
    results(*(line(ranks=4, nodes=4, manifest=manifest(instruments=one)) for one in told))
    assert [one["runs"] for one in records(site)] == [1, 2]
    assert [one.rpartition(", ")[2] for one in titles(site)] == [
        "instruments nvml/gpu",
        "instruments nvml/gpu(3/4)",
    ]


def test_threads_that_float_are_another_kind(site, results):
    results(*(line(manifest=manifest(pinning=one)) for one in ("core", "none", "core")))
    assert [(one["pinning"], one["runs"]) for one in records(site)] == [("core", 2), ("none", 1)]
    assert [one.rpartition(", ")[2] for one in titles(site)] == ["pinning core", "pinning none"]


def test_lines_of_before_are_read(site, results):
    """Their manifests had neither Slurm nor what measured."""
    new = ("slurm", "instruments", "channels")
    old = {key: value for key, value in OLD.items() if key not in new}
    results(line(manifest=old), line(manifest=OLD))
    assert [(one["slurm"], one["runs"]) for one in records(site)] == [(None, 1), ("22.05.8", 1)]
    assert cooked.parse(json.dumps(line(manifest=old))).channels == ""


def test_lines_without_a_manifest_are_averaged_among_themselves(site, results):
    results(line(), line(manifest=None), line(manifest=OLD))
    assert [one["runs"] for one in records(site)] == [2, 1]
    assert [one.rpartition(", ")[2] for one in titles(site)] == ["no manifest", "with a manifest"]


def test_a_title_of_one_manifest_tells_none(site, results):
    results(line(manifest=OLD), line(manifest=OLD))
    assert titles(site) == ["mod2am, blas, 2 threads, x86_64, A CPU"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"manifest": "GNU"}, 'manifest: "GNU": must be an object or null'),
        ({"manifest": {"flags": 3}}, "manifest.flags: 3: must be a text or null"),
        ({"manifest": {"compiler": "\ud800"}}, 'manifest.compiler: "\\ud800": must be a text'),
        ({"job": 7}, "job: 7: must be a text or null"),
        ({"manifest": {"channels": 7}}, "manifest.channels: 7: must be a text or null"),
        *(
            ({"option_nb": value}, f"option_nb: {json.dumps(value)}: must be a word, or a number")
            for value in (None, True, [1], "", "a b", "a\ud800", math.inf, math.nan, 10**400)
        ),
        *(
            ({key: 1}, f"{json.dumps(key)}: must be option_ and a word without =")
            for key in ("option_", "option_a=b", "option_a b", "option_\ud800")
        ),
    ],
)
def test_a_bad_manifest_is_named_and_its_line_left_out(site, results, changes, expected):
    results(line(500), line(**changes))
    _, out, err = site.run("report", "table", "mod2am", "--format", "json")
    assert [one["size"] for one in json.loads(out)] == [500]
    assert f"mod2am.1.cooked.jsonl:2: {expected}" in err


def test_each_job_counts_once_and_the_interval_is_between_jobs(site, results):
    """Five runs of one job tell little of the next job."""
    times = {"1": [0.040, 0.041, 0.042], "2": [0.050], "3": [0.054, 0.056]}
    results(
        *(
            line(time_s=time_s, time_spread_s=0.0, job=job)
            for job, found in times.items()
            for time_s in found
        )
    )
    (record,) = records(site)
    means = [0.041, 0.050, 0.055]
    mean = sum(means) / 3
    deviation = math.sqrt(sum((one - mean) ** 2 for one in means) / 2)
    assert (record["runs"], record["jobs"]) == (6, 3)
    assert record["time_s"] == pytest.approx(mean)
    assert record["time_s_interval"] == pytest.approx(4.302653 * deviation / math.sqrt(3))
    assert record["energy_j"] == pytest.approx(100 * mean)
    assert record["energy_j_interval"] == pytest.approx(100 * record["time_s_interval"])


def test_runs_of_one_job_have_the_interval_that_they_show(site, results):
    results(*(line(time_s=time_s, time_spread_s=0.0, job="1") for time_s in (0.04, 0.05, 0.06)))
    (record,) = records(site)
    assert (record["runs"], record["jobs"]) == (3, 1)
    assert record["time_s_interval"] == pytest.approx(4.302653 * 0.01 / math.sqrt(3))


def test_scaling_mixes_no_manifests(site, results):
    runs = [
        line(time_s=time_s / ranks, variant="mpi", ranks=ranks, threads=1, manifest=found)
        for time_s, found in ((0.1, OLD), (0.2, NEW))
        for ranks in (1, 2)
    ]
    results(*runs)
    out = site.out("report", "scaling", "mod2am", "--format", "markdown")
    assert out.count("strong scaling") == 2 and "compiler GNU 13.1.0, flags -O3: strong" in out
    assert [row[1] for row in markdown_rows(out) if row[0] in "12" and row[0]] == ["1000"] * 4


def test_lines_of_a_figure_and_columns_beside_prototypes_tell_it(
    site, results, legends_of_figures
):
    results(*(line(size, manifest=found) for size in (100, 1000) for found in (OLD, NEW)))
    site.out("report", "plot", "mod2am", "--out", str(site.folder))
    assert any("compiler GNU 13.1.0, flags -O3" in one for one in legends_of_figures[0])
    out = site.out("compare", "mod2am", "--with", "LRZ")
    assert "compiler GNU 12.2.0, flags -O2" in out


def test_variants_are_compared_within_a_manifest(site, results):
    plain = [line(variant="plain", manifest=found) for found in (OLD, NEW)]
    results(*plain, line(manifest=NEW))
    out = site.out("report", "table", "mod2am", "--compare", "plain,blas")
    assert out.count("against plain") == 1 and "A CPU, compiler GNU 13.1.0" in out


@pytest.mark.parametrize(("node", "least", "most"), [("n1", 0.0, 0.01), ("n2", 0.05, 0.06)])
def test_ratios_of_energy_leave_out_what_one_instrument_errs_by(site, results, node, least, most):
    """4 % on each side are 5.7 % of a ratio, by two instruments."""
    times = (0.0500, 0.0501, 0.0499)
    plain = [line(time_s=one, variant="plain", node="n1", manifest=OLD) for one in times]
    blas = [line(time_s=one / 2, node=node, manifest=OLD) for one in times]
    more = [line(time_s=one / 3, node=node, manifest=OLD, threads=4) for one in times]
    results(*plain, *[{**one, "node": "n1"} for one in blas], *more)
    found = json.loads(site.out("report", "scaling", "mod2am", "--format", "json"))[1]
    assert least <= found["relative_energy_efficiency_error"] / 1.5 <= most
    results(*plain, *blas)
    out = site.out("report", "table", "mod2am", "--compare", "plain,blas", "--format", "markdown")
    ratio = markdown_rows(out)[-1][-1]
    error = float(ratio.partition("±")[2])
    assert ratio.startswith("2.00") and least <= error / 2 <= most


WORDS = some.sampled_from(["", "a", "b", "a b", "b a"])
IN_ORDER = some.sampled_from(["", "a", "b", "a b"])  # as they are read
OPTIONS = some.sampled_from(["", "nb=192", "nb=256", "nb=256 plan=1"])
MANIFESTS = some.none() | some.builds(
    Manifest, flags=WORDS, compiler=WORDS, governor=WORDS, instruments=IN_ORDER
)
JOBS = some.sampled_from(["", "1", "2"])
SIZES = some.sampled_from([100, 200])


def line_of(one, options, job, size):
    words = (word.split("=") for word in options.split())
    told = {f"option_{name}": int(value) for name, value in words}
    return line(size, manifest=one and one._asdict(), job=job, **told)


@given(some.lists(some.tuples(MANIFESTS, OPTIONS, JOBS, SIZES), min_size=1))
def test_every_run_is_in_the_row_of_its_manifest_size_and_options(runs):
    measured = [cooked.parse(json.dumps(line_of(*run))) for run in runs]
    found = stats.series_of(measured)
    rows = {(one.manifest, *row.case): row.runs for one in found for row in one.rows}
    assert sum(len(one.rows) for one in found) == len(rows)
    assert rows == Counter((one.manifest, one.size, one.options) for one in measured)
    for one in found:
        assert len({row.size for row in one.rows}) == len(one.rows)  # a line of a plot
    assert len({one.apart for one in found}) == len(found)  # no two titles are alike


@given(MANIFESTS, MANIFESTS)
def test_two_manifests_are_told_apart_exactly_where_they_differ(one, other):
    assert (apart(one, [one, other]) == "") == (one == other)
    assert (apart(one, [one, other]) == apart(other, [one, other])) == (one == other)
