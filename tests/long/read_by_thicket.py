# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What LLNL's Thicket makes of .cali files, as JSON; run by the Python that has it.

usage: read_by_thicket.py profiles FOLDER     all of it, and what its groupby and statistics say
       read_by_thicket.py benchpark FOLDER    what `benchpark analyze` asks it for, in its order
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import thicket

# its default metrics, and what it takes from the metadata
METRIC, TREE_METRIC = "Avg time/rank (exc)", "Calls/rank (max)"
SINGLE = ("application_name", "version", "cluster")
COUNTS = ("total_problem_size", "process_problem_size", "n_resources", "n_nodes")


def main(kind: str, folder: str) -> None:
    answer = {"profiles": profiles, "benchpark": benchpark}[kind](folder)
    print(json.dumps(answer, default=lambda number: number.item()))  # numpy's


def profiles(folder: str) -> dict:
    found = thicket.Thicket.from_caliperreader(folder, disable_tqdm=True)
    thicket.stats.mean(found, ["energy_j"])
    means = found.statsframe.dataframe
    return {
        "rows": rows(found),
        "metadata": known(found.metadata.reset_index()),
        "default_metric": found.default_metric,
        "groups": {key: len(one.profile) for key, one in found.groupby("variant").items()},
        "mean_energy_j": dict(zip(means["name"], means["energy_j_mean"])),
        "roots": sorted(root.frame["name"] for root in found.graph.roots),
    }


def benchpark(folder: str) -> dict:
    files = [str(path) for path in Path(folder).rglob("*.cali")]
    found = thicket.Thicket.from_caliperreader(files, intersection=False, disable_tqdm=True)
    tree = found.tree(TREE_METRIC, render_header=True)
    single = {key: found.metadata[key].unique().tolist() for key in SINGLE}
    spec = found.metadata["benchpark_spec"].iloc[0][0]
    found.metadata_columns_to_perfdata(["cluster", *COUNTS])
    frame = found.dataframe
    frame["total_problem_size"] = frame["total_problem_size"].astype(int)
    chart = frame.reset_index().pivot(
        index="total_problem_size", columns="name", values=[METRIC, "energy_j"]
    )
    points = {key: chart[key].to_dict("index") for key in (METRIC, "energy_j")}
    return {"tree": tree, "single": single, "spec": spec, "points": points}


def rows(found) -> list[dict]:
    """Of each profile and node that has something."""
    return [row for row in known(found.dataframe.reset_index()) if "verified" in row]


def known(frame) -> list[dict]:
    """Its rows, without what is NaN and without objects."""
    plain = frame.drop(columns=["node"], errors="ignore")
    return [
        {key: value for key, value in row.items() if value == value}
        for row in plain.to_dict("records")
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
