"""The alerts of the rules elsewhere: their names, and where their runbooks are."""

from typing import Final

PREFIX: Final = "Featurewatch"
DEFAULT_RUNBOOKS: Final = "docs/runbooks"
"""The directory of the runbooks in the repository, one file per alert name."""


def alert_name(rule: str) -> str:
    """The name of a rule's alert in Prometheus and Alertmanager: ``FeaturewatchLogGap``."""
    return PREFIX + "".join(part.capitalize() for part in rule.split("-"))
