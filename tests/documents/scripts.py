"""Where the command lines of each page run, in the order of the page.

The places are the tests of `test_pages`, `test_cluster_pages` and, by night, `test_nightly_pages`,
`test_upgrade_pages` and `test_migration_pages`.
"""

import re
from dataclasses import dataclass
from typing import Final

from tests.documents.blocks import Command
from tests.documents.register import NOT_RUN


@dataclass(frozen=True, slots=True)
class Place:
    """Lines of pages that run in one place; ``pages`` and ``begins`` are regular expressions."""

    name: str
    pages: str
    begins: str = ""

    def has(self, command: Command) -> bool:
        """Whether the line runs here."""
        return bool(re.fullmatch(self.pages, command.page) and re.match(self.begins, command.text))


PLACES: Final = (
    Place("stack", r"docs/how-to/stack\.md"),
    Place("stack", r"docs/explanation/(?:kip-4|controller|reference-systems)\.md"),
    Place("moves", r"docs/how-to/rehearse\.md", r".*-s lose:2"),
    Place("rehearsal", r"docs/how-to/rehearse\.md"),
    Place("rehearsal", r"docs/how-to/storage\.md", r"featurewatch storage info"),
    Place("operations", r"docs/explanation/operations\.md"),
    Place("spark", r"docs/how-to/(?:pipeline|replay|audit)\.md", r"featurewatch "),
    Place("levels", r"docs/how-to/features\.md"),
    Place("quorum", r"docs/how-to/(?:admin|shell)\.md"),
    Place("roll", r"docs/how-to/upgrade\.md", r".*(?:plan-4\.3\.yaml|--node 2 --wait)"),
    Place("upgrade", r"docs/how-to/upgrade\.md", r"featurewatch (?!.*--zookeeper)"),
    Place("migration", r"docs/how-to/zookeeper-to-kraft\.md", r"featurewatch "),
    Place("voters", r"docs/how-to/quorum\.md"),
    Place("lake", r"docs/how-to/(?:history|fleet)\.md", r"featurewatch (?:history|fleet)"),
    Place("alone", r"docs/how-to/storage\.md", r"featurewatch storage format"),
    Place("alone", r"docs/how-to/releases\.md", r"featurewatch releases list"),
    Place("alone", r"docs/how-to/follow-a-cluster\.md", r"featurewatch --version"),
    Place("alone", r"docs/reference/alerts\.md", r"featurewatch rules|\(printf"),
    Place("alone", r"docs/reference/metrics\.md", r"featurewatch dashboards"),
    Place("alone", r"docs/how-to/client\.md", r"featurewatch schemas"),
    Place("alone", r"docs/how-to/receivers\.md", r"amtool"),
    Place("alone", r"docs/explanation/faults\.md", r"python -m tests\.faults --list"),
    Place("alone", r"docs/explanation/(?:faults|testing)\.md", r"python -m tests\.sim|python -c"),
    Place("monitored", r"README\.md", r"featurewatch "),
    Place(
        "monitored",
        r"docs/how-to/(?:follow-a-cluster|operations-guide|fleet|page|readiness|receivers)\.md",
        r"featurewatch |curl ",
    ),
    Place("monitored", r"docs/reference/(?:alerts|topics)\.md", r"featurewatch |kafka-configs"),
    Place("monitored", r"docs/runbooks/.*\.md", r"featurewatch |curl "),
)


def place_of(command: Command) -> str | None:
    """Returns the name of the place in which a line runs, None if it runs nowhere."""
    if any(entry.covers(command.page, command.text) for entry in NOT_RUN):
        return None
    return next((place.name for place in PLACES if place.has(command)), None)


CODES: Final = (
    (r"featurewatch upgrade plan .*--running 3\.8 --out", frozenset({3})),  # of 3.8: steps are due
    (r"featurewatch upgrade status .*controller-1:9093", frozenset({0, 3})),
    (r"featurewatch upgrade (?:check|finalize)", frozenset({0, 3})),
    (r"featurewatch readiness", frozenset({0, 3})),
    (r"featurewatch cluster compare-strimzi", frozenset({0, 3})),
    (r"featurewatch operations --cluster", frozenset({0, 4})),  # they may not be followed
    (r"featurewatch fleet drift", frozenset({3})),
    (r"featurewatch fleet readiness", frozenset({0, 3, 4})),
    (r"featurewatch rehearse", frozenset({0, 3})),
    (r"featurewatch pipeline audit", frozenset({0, 4})),
)
"""Lines whose answer may be no or unknown, with their exit codes."""


def codes_of(command: Command) -> frozenset[int]:
    """Returns the exit codes with which a line ends well."""
    return next((codes for line, codes in CODES if re.match(line, command.text)), frozenset({0}))
