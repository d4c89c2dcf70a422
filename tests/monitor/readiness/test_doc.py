"""``docs/readiness.md`` matches the code."""

import re
from pathlib import Path

from featurewatch.monitor.readiness import DEFAULT_LIMITS, UpgradeState
from featurewatch.monitor.rules import RULES
from featurewatch.monitor.rules.rule import format_duration

TEXT = (Path(__file__).parents[3] / "docs" / "readiness.md").read_text()


def test_the_documented_rules_are_those_of_the_registry() -> None:
    """Each rule is listed with its meaning, and the time after which it fires."""
    limits = {
        "ghost-registration": DEFAULT_LIMITS.ghost_ms,
        "registration-refused": DEFAULT_LIMITS.refusal_ms,
    }
    expected = [
        (rule.name, rule.about, format_duration(limits.get(rule.name, DEFAULT_LIMITS.upgrade_ms)))
        for rule in RULES
        if rule.timer is not None
    ]
    documented = re.findall(r"^\| `([\w-]+)` \| (.+) \| (\d+ \w+) \|$", TEXT, re.MULTILINE)
    assert documented == expected


def test_the_documented_states_are_those_of_the_code() -> None:
    """Each state is listed, and no other."""
    documented = re.findall(r"^\| `(\w+)` \| [^|]+ \|$", TEXT, re.MULTILINE)
    assert documented == [str(state) for state in UpgradeState]
