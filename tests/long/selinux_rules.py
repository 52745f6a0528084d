# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a SELinux policy allows domains, as JSON; run by the Python that has Debian's setools.

usage: selinux_rules.py POLICY DOMAIN...
       {DOMAIN: [[type, class, [permission, ...], boolean or null], ...]}: a rule of a boolean
       that is off has its name
"""

from __future__ import annotations

import json
import sys

import setools


def main(path: str, *domains: str) -> None:
    policy = setools.SELinuxPolicy(path)
    print(json.dumps({domain: list(rules(policy, domain)) for domain in domains}))


def rules(policy: setools.SELinuxPolicy, domain: str):
    query = setools.TERuleQuery(policy, ruletype=["allow"], source=domain)
    for rule in query.results():
        boolean = off(rule)
        for target in rule.target.expand():
            yield str(target), str(rule.tclass), sorted(rule.perms), boolean


def off(rule) -> str | None:
    """The boolean that must be changed for it."""
    try:
        condition, block = rule.conditional, rule.conditional_block
    except setools.exception.RuleNotConditional:
        return None
    return None if condition.evaluate() == block else str(condition)


main(*sys.argv[1:])
