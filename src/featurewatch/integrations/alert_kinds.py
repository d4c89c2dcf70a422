"""The alerts of the rules: their names elsewhere, and what ends them, as in docs/alerts.md."""

from typing import Final

from featurewatch.monitor.rules import RULES

PREFIX: Final = "Featurewatch"
DEFAULT_RUNBOOKS: Final = "docs/runbooks"
"""Where the runbooks are in the repository: one a name."""

_CONDITION: Final = "when the condition does"
_QUIET: Final = (
    "when none of its kind came for an hour (`readiness.unreadable_ends_after_s`), or by "
    "acknowledgement"
)
_QUIET_ONLY: Final = "when none of its kind came for an hour (`readiness.unreadable_ends_after_s`)"
_VERSIONS: Final = (
    "with the next complete read, or when the version has reached the old one, or by "
    "acknowledgement"
)

_OTHER_ENDS: Final = {
    "unreadable": _QUIET,
    "clock-ahead": _QUIET,
    "outputs-lost": _QUIET,
    "log-gap": (
        "with the next snapshot, or when the log was read again to its end, or by acknowledgement"
    ),
    "epoch-regression": "when the source follows the new log, or by acknowledgement",
    "znode-missed": _VERSIONS,
    "znode-regression": _VERSIONS,
    "messages-lost": "when the source has published its whole state again, or by acknowledgement",
    "unclean-leader-election": _QUIET_ONLY,
    "illegal-partition-change": _QUIET_ONLY,
}
"""The rules whose alerts do not end with their condition, which is over when it is seen."""

ENDS: Final = {rule.name: _OTHER_ENDS.get(rule.name, _CONDITION) for rule in RULES}
"""When an alert ends, by its rule: "it ends …"."""


def alert_name(rule: str) -> str:
    """The name of a rule's alert in Prometheus and Alertmanager: ``FeaturewatchLogGap``."""
    return PREFIX + "".join(part.capitalize() for part in rule.split("-"))
