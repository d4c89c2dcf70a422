"""The runbooks' index, and what each has from its alerting rule: the head, and when it resolves.

A page that is missing is begun. Its middle, what the alert means and what to do, is for a person.
"""

import textwrap
from collections.abc import Iterator
from typing import Final

from featurewatch.integrations.alert_kinds import alert_name
from featurewatch.integrations.notify.alert_labels import WATCHDOG, WATCHDOG_SUMMARY
from featurewatch.integrations.prometheus.files import GROUPS
from featurewatch.integrations.prometheus.rule import AlertingRule
from featurewatch.monitor.rules import RULES
from scripts.generators import ROOT, Texts

DIRECTORY: Final = ROOT / "docs" / "runbooks"
INDEX: Final = DIRECTORY / "README.md"
UNWRITTEN: Final = "TODO"
"""What a page that was begun has where a person has to write."""

_HEAD: Final = """\
# Runbooks

A page for each alert of the rules for Prometheus (`featurewatch rules`): what it means, how to see
more, what to do, and when it resolves. `make generate` writes this list.
"""
_TITLES: Final = {
    "featurewatch-clusters": "Clusters",
    "featurewatch-processes": "featurewatch itself",
}
_BEGUN: Final = f"""\
## What it means

{UNWRITTEN}

## See more

```sh
featurewatch alerts --cluster ID
```

## What to do

- {UNWRITTEN}

"""
_FIRST: Final = "## What it means\n"
_LAST: Final = "## When it resolves\n"


def runbooks() -> Texts:
    """Yields the index and the page of each alert.

    Raises:
        ValueError: A page has another form.
    """
    yield INDEX, "".join(line + "\n" for line in _index())
    rules: dict[str, list[AlertingRule]] = {}
    for rule in (rule for group in GROUPS.values() for rule in group):
        rules.setdefault(rule.name, []).append(rule)
    heads = {
        alert_name(rule.name): f"Alert rule `{rule.name}`, {{}}: {rule.about}." for rule in RULES
    }
    for name, found in rules.items():
        severities = "severity " + " or ".join(rule.severity for rule in found)
        if name in heads:
            head = heads[name].format(severities)
        else:
            head = f"{severities.capitalize()}. {found[0].summary}"
        path = DIRECTORY / f"{name}.md"
        text = path.read_text() if path.exists() else _BEGUN + _LAST
        _, first, rest = text.partition(_FIRST)
        body, last, _ = rest.partition(_LAST)
        if not (first and last):
            raise ValueError(f"{path.name} lacks {_FIRST.strip()} or {_LAST.strip()}")
        about = textwrap.fill(head, 110, break_on_hyphens=False)
        end = textwrap.fill(f"It ends {found[0].ends}.", 110, break_on_hyphens=False)
        yield path, f"# {name}\n\n{about}\n\n{first}{body}{last}\n{end}\n"


def _index() -> Iterator[str]:
    yield _HEAD.rstrip()
    for group, rules in GROUPS.items():
        yield from ("", f"## {_TITLES[group]}", "", "| alert | severity | |", "|---|---|---|")
        severities: dict[str, list[str]] = {}
        for rule in rules:
            severities.setdefault(rule.name, []).append(rule.severity)
        summaries = {rule.name: rule.summary for rule in rules}
        for name, names in severities.items():
            yield f"| [{name}]({name}.md) | {' or '.join(names)} | {summaries[name]} |"
    yield f"| [{WATCHDOG}]({WATCHDOG}.md) | none | {WATCHDOG_SUMMARY} |"
