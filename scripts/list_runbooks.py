"""Writes the index of the runbooks: ``python -m scripts.list_runbooks``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from featurewatch.integrations.notify.alert_labels import WATCHDOG, WATCHDOG_SUMMARY
from featurewatch.integrations.prometheus.files import GROUPS

DIRECTORY: Final = Path(__file__).resolve().parent.parent / "docs" / "runbooks"
INDEX: Final = DIRECTORY / "README.md"

_HEAD: Final = """\
# Runbooks

A page for each alert of the rules for Prometheus (`featurewatch rules`): what it means, how to see
more, what to do, and when it resolves. `python -m scripts.list_runbooks` writes this list.
"""
_TITLES: Final = {
    "featurewatch-clusters": "Clusters",
    "featurewatch-processes": "featurewatch itself",
}


def index() -> str:
    """The index, one table a group of rules."""
    return _HEAD + "".join(line + "\n" for line in _lines())


def _lines() -> Iterator[str]:
    for group, rules in GROUPS.items():
        yield from ("", f"## {_TITLES[group]}", "", "| alert | severity | |", "|---|---|---|")
        severities: dict[str, list[str]] = {}
        for rule in rules:
            severities.setdefault(rule.name, []).append(rule.severity)
        summaries = {rule.name: rule.summary for rule in rules}
        for name, names in severities.items():
            yield f"| [{name}]({name}.md) | {' or '.join(names)} | {summaries[name]} |"
    yield f"| [{WATCHDOG}]({WATCHDOG}.md) | none | {WATCHDOG_SUMMARY} |"


if __name__ == "__main__":
    INDEX.write_text(index())
