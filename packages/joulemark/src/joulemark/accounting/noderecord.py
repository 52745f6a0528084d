# Reads the node records that joulemarkd writes, and checks every key before anything is believed.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import errno
import json
import os
import stat
from operator import itemgetter

from joulemark.stamp import Stamp, stamp

SCHEMA = 1
DOMAINS = ("cpu", "dram", "gpu", "rest")
_DOMAINS, _INT = frozenset(DOMAINS), frozenset([int])
ONE_READ = 1 << 16
METHODS = ("counter", "integrated", "model", "mixed")
MOST = 1e30  # of a number that is not whole: sums and squares of many are finite, too
NAME_MOST = 255  # characters, for databases' columns
# Of a file that is there, but will not be read the next time either.
FOR_GOOD = (errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENXIO)


class RecordError(Exception):
    """Everything that is wrong with one record file; `problems` holds a line for each."""

    def __init__(self, problems: list[str]):
        super().__init__("\n".join(problems))
        self.problems = problems


def _whole(value) -> bool:
    """Databases' integers have 63 bits; a bool is an int to Python, but not of type int."""
    return type(value) is int and 0 <= value < 1 << 62


def _number(value) -> bool:
    return type(value) in (int, float) and 0 <= value <= MOST


def _text(value) -> bool:
    """Lone surrogates and NUL, which JSON allows, no database keeps."""
    if type(value) is not str or value == "" or "\0" in value:
        return False
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)


def _name(value) -> bool:
    return _text(value) and len(value) <= NAME_MOST


WHOLE = (_whole, "a whole number >= 0")
RESTART = (
    lambda value: _whole(value) and value < 1 << 32,
    f"a whole number from 0 to {(1 << 32) - 1}, as Slurm's is",
)
NUMBER = (_number, f"a number from 0 to {MOST:g}")
TEXT = (_text, "a text that is not empty")
NAME = (_name, f"a text of 1 to {NAME_MOST} characters")
TEXTS = (lambda value: type(value) is list and all(map(_text, value)), "a list of texts")
FLAG = (lambda value: type(value) is bool, "true or false")
ARRAY = (lambda value: type(value) is list, "a list")
OBJECT = (lambda value: type(value) is dict, "an object")
METHOD = (lambda value: value in METHODS, "one of " + ", ".join(METHODS))


def maybe(kind):
    """The same kind, or null."""
    return (lambda value: value is None or kind[0](value), kind[1] + ", or null")


RECORD_KEYS = {
    "cluster": NAME,
    "JobIDRaw": WHOLE,
    "node": NAME,
    "uid": WHOLE,
    "split_policy": TEXT,
    "missing": maybe(TEXT),
    "accounts": ARRAY,
}
# Which a record may have or not.
OPTIONAL_KEYS = {
    "restart": RESTART,  # Slurm's SLURM_JOB_RESTART_COUNT: tells a requeued job's runs apart
    "node_cpus": WHOLE,
    "instruments": ARRAY,
}
INSTRUMENT_KEYS = {"name": TEXT, "faults": ARRAY}
FAULT_KEYS = {"what": TEXT, "count": WHOLE, "seconds": NUMBER}
ACCOUNT_KEYS = {
    "step": NAME,
    "start_ns": WHOLE,
    "end_ns": WHOLE,
    "energy_uj": maybe(WHOLE),
    "estimated": FLAG,
    "samples": WHOLE,
    "gap_seconds": NUMBER,
}
OPTIONAL_ACCOUNT_KEYS = {"cpus": maybe(WHOLE), "notes": TEXTS}
# An account whose energy is not known has none of these either.
MEASURED_KEYS = {
    "idle_uj": WHOLE,
    "overhead_uj": WHOLE,
    "domains_uj": OBJECT,
    "peak_w": NUMBER,
    "uncertainty_systematic_uj": NUMBER,
    "uncertainty_random_uj": NUMBER,
    "method": METHOD,
}
OPTIONAL_MEASURED_KEYS = {"uncertainty_common_uj": NUMBER}  # an earlier joulemarkd has none
# The same keys once more, in the order of their types in a record as joulemarkd writes it.
_PLAIN = itemgetter(
    *("start_ns", "end_ns", "energy_uj", "samples", "idle_uj", "overhead_uj", "cpus"),
    *("gap_seconds", "peak_w", "uncertainty_systematic_uj", "uncertainty_common_uj"),
    *("uncertainty_random_uj", "step", "method", "estimated", "domains_uj", "notes", "regions"),
)
_PLAIN_TYPES = (*[int] * 7, *[float] * 5, str, str, bool, dict, list, list)
REGION_KEYS = {
    "name": TEXT,
    "count": WHOLE,
    "seconds": NUMBER,
    "energy_uj": maybe(WHOLE),
    "uncertainty_uj": maybe(NUMBER),
}
# Those of one that tells what of it was in no inner region.
NESTED_REGION_KEYS = {
    "parent": maybe(TEXT),
    "exclusive_seconds": NUMBER,
    "exclusive_uj": WHOLE,
    "exclusive_uncertainty_uj": NUMBER,
}


def file_name(cluster: str, job: int, node: str) -> str:
    """The name under which joulemarkd writes the record of a job on a node."""
    return f"{cluster}.{job}.{node}.json"


def read(path: str) -> tuple[Stamp, str, dict]:
    """What a file is and has, and the checked record in it; RecordError names all that is wrong,
    key by key.

    OSError: it cannot be read now, which says nothing of the record.
    """
    try:
        found, read_bytes = content(path)
        text = read_bytes.decode()
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError([f"{path}: not JSON: {error}: write the record again"]) from None
    problems = check(record)
    if not problems and first_name(os.path.basename(path)) != (name := _name_of(record)):
        problems = [f"cluster, JobIDRaw, node: they belong to a file named {name}: rename it"]
    if problems:
        raise RecordError([f"{path}: {problem}" for problem in problems])
    return stamp(found), text, record


def content(path: str) -> tuple[os.stat_result, bytes]:
    """What a plain file is and has; RecordError: it is none, or nobody's whom one believes.

    Without Python's buffers: a merge reads ten thousand of these.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno not in FOR_GOOD:
            raise
        what = "a link" if error.errno == errno.ELOOP else error.strerror
        raise RecordError([f"{path}: {what}: must be a plain file"]) from None
    try:
        found = os.fstat(descriptor)
        _check_owner(path, found)
        text = os.read(descriptor, ONE_READ)
        while len(text) % ONE_READ == 0 and (more := os.read(descriptor, ONE_READ)):
            text += more
        return found, text
    finally:
        os.close(descriptor)


def _check_owner(path: str, found: os.stat_result) -> None:
    """A record is believed that root, the merge's own user or the folder's owner wrote."""
    if not stat.S_ISREG(found.st_mode):
        raise RecordError([f"{path}: no plain file: write the record again"])
    if found.st_uid in (0, os.geteuid()) or found.st_uid == os.stat(os.path.dirname(path)).st_uid:
        return
    problem = "must be of the user that joulemarkd runs as, who owns the folder: it may be forged"
    raise RecordError([f"{path}: belongs to user {found.st_uid}: {problem}"])


def _name_of(record: dict) -> str:
    return file_name(record["cluster"], record["JobIDRaw"], record["node"])


def first_name(file: str) -> str:
    """Records of one job and node that are kept side by side are NAME, NAME.2, NAME.3, ..."""
    head, _, number = file.rpartition(".")
    return head if number.isdigit() and head.endswith(".json") else file


def is_record(file: str) -> bool:
    """Whether a file of this name may hold a record."""
    return file.endswith(".json") or first_name(file).endswith(".json")


def check(record) -> list[str]:
    """Every problem of a record, each `key: what it is: what it must be`."""
    if not isinstance(record, dict):
        return ["the whole file: must be one JSON object"]
    if record.get("schema") != SCHEMA:
        return [
            f"schema: {record.get('schema')!r}: must be {SCHEMA}: "
            "install the same version of joulemark and joulemarkd"
        ]
    problems = _check_keys(record, RECORD_KEYS, "") + _check_present(record, OPTIONAL_KEYS)
    if problems:
        return problems
    for index, instrument in enumerate(record.get("instruments", ())):
        problems += _check_instrument(instrument, f"instruments[{index}]")
    for index, account in enumerate(record["accounts"]):
        if not _is_plain(account):
            problems += _check_account(account, f"accounts[{index}]")
    return problems or _check_steps(record)


def _check_keys(values, keys: dict, where: str) -> list[str]:
    if type(values) is not dict:
        return [f"{where}: {_short(values)}: must be an object"]
    for key, (good, _) in keys.items():
        if key not in values or not good(values[key]):
            break
    else:
        return []
    return [
        f"{where}{'.' if where else ''}{key}: "
        f"{_short(values[key]) if key in values else 'missing'}: must be {expected}"
        for key, (good, expected) in keys.items()
        if key not in values or not good(values[key])
    ]


def _check_present(values: dict, keys: dict, where: str = "") -> list[str]:
    """Keys that may be missing."""
    return _check_keys(values, {key: kind for key, kind in keys.items() if key in values}, where)


def _check_instrument(instrument, where: str) -> list[str]:
    problems = _check_keys(instrument, INSTRUMENT_KEYS, where)
    if problems:
        return problems
    return [
        problem
        for index, fault in enumerate(instrument["faults"])
        for problem in _check_keys(fault, FAULT_KEYS, f"{where}.faults[{index}]")
    ]


def _short(value) -> str:
    try:
        text = json.dumps(value)
    except RecursionError:  # it was read with the last room that there was
        return "..."
    return text if len(text) <= 60 else text[:57] + "..."


def _is_plain(account) -> bool:
    """Whether it is sound and as most are: in half of _check_account()'s time, for big jobs."""
    try:
        values = _PLAIN(account)
    except (KeyError, TypeError, IndexError):
        return False
    if tuple(map(type, values)) != _PLAIN_TYPES:
        return False
    start_ns, end_ns, energy_uj, *_, step, method, estimated, domains, notes, regions = values
    parts = domains.values()
    return (
        min(values[:12]) >= 0
        and max(values[:7]) < 1 << 62
        and sum(values[7:12]) <= MOST  # NaN is in no order: only a sum shows it
        and start_ns <= end_ns
        and _name(step)
        and method in METHODS
        and (estimated or method != "model")
        and domains.keys() <= _DOMAINS
        and {*map(type, parts)} <= _INT
        and min(parts, default=0) >= 0
        and sum(parts) == energy_uj
        and all(map(_text, notes))
        and not regions
    )


def _check_account(account, where: str) -> list[str]:
    problems = _check_keys(account, ACCOUNT_KEYS, where)
    if problems:
        return problems
    problems += _check_present(account, OPTIONAL_ACCOUNT_KEYS, where)
    if account["end_ns"] < account["start_ns"]:
        problems.append(f"{where}.end_ns: {account['end_ns']}: must not be before start_ns")
    if account["energy_uj"] is not None:
        problems += _check_measured(account, where)
    regions = account.get("regions", [])
    if not isinstance(regions, list):
        return [*problems, f"{where}.regions: {_short(regions)}: must be a list"]
    for index, region in enumerate(regions):
        problems += _check_region(region, f"{where}.regions[{index}]")
    return problems


def _check_region(region, where: str) -> list[str]:
    problems = _check_keys(region, REGION_KEYS, where)
    if problems or "exclusive_uj" not in region:
        return problems
    return _check_keys(region, NESTED_REGION_KEYS, where)


def _check_measured(account: dict, where: str) -> list[str]:
    problems = _check_keys(account, MEASURED_KEYS, where)
    problems += _check_present(account, OPTIONAL_MEASURED_KEYS, where)
    if problems:
        return problems
    domains = account["domains_uj"]
    for domain, energy_uj in domains.items():
        if domain not in DOMAINS:
            problems.append(f"{where}.domains_uj.{domain}: must be one of {', '.join(DOMAINS)}")
        elif not _whole(energy_uj):
            problems.append(
                f"{where}.domains_uj.{domain}: {_short(energy_uj)}: must be {WHOLE[1]}"
            )
    if not problems and sum(domains.values()) != account["energy_uj"]:
        problems.append(
            f"{where}.domains_uj: they sum to {sum(domains.values())}: "
            f"must sum to energy_uj, {account['energy_uj']}"
        )
    if account["method"] == "model" and not account["estimated"]:
        problems.append(f"{where}.estimated: false: must be true, for method is model")
    return problems


def _check_steps(record: dict) -> list[str]:
    steps = [account["step"] for account in record["accounts"]]
    twice = sorted({step for step in steps if steps.count(step) > 1})
    if twice:
        return [f"accounts: step {', '.join(twice)} is there twice: must be there once"]
    if "job" not in steps and record["missing"] is None:
        return ["accounts: no step `job`: add it, or say in `missing` why there is none"]
    return []
