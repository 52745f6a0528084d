"""`joulemark sacct` beside the sacct of the other Slurm: its options, which rows they choose, its
columns, its JSON."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from tests.e2e.test_sacct_users import (
    accounts,
    jobs,
    pytestmark,
    steady,
    test_all_columns_of_this_release_come_apart,
    test_json_of_each_data_parser,
    test_options_choose_the_rows_that_sacct_chooses,
    test_options_do_as_they_do_in_sacct,
    values,
)

__all__ = [
    "accounts",
    "jobs",
    "pytestmark",
    "steady",
    "test_all_columns_of_this_release_come_apart",
    "test_json_of_each_data_parser",
    "test_options_choose_the_rows_that_sacct_chooses",
    "test_options_do_as_they_do_in_sacct",
    "values",
]
