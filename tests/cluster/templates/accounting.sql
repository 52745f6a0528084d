-- slurmdbd would make its database itself, and fail: where it is missing it connects once more by the
-- handle of the first attempt, and libmariadb3 11.8.9 then takes no result of more than 0 columns.
-- SPDX-License-Identifier: Apache-2.0 OR MIT
CREATE DATABASE slurm_acct_db;
