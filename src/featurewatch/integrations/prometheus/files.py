"""The rules as files: a rules file of Prometheus, or a PrometheusRule of its operator."""

from enum import StrEnum
from typing import Any, Final

import yaml

from featurewatch.integrations.alert_kinds import DEFAULT_RUNBOOKS
from featurewatch.integrations.prometheus.process_rules import PROCESS_RULES
from featurewatch.integrations.prometheus.rule import AlertingRule, cluster_rules

_HEAD: Final = "# Written by `featurewatch rules`: change nothing here.\n"


class RulesFormat(StrEnum):
    """The reader of the file."""

    PROMETHEUS = "prometheus"
    OPERATOR = "operator"


GROUPS: Final[dict[str, tuple[AlertingRule, ...]]] = {
    "featurewatch-clusters": tuple(cluster_rules()),
    "featurewatch-processes": PROCESS_RULES,
}
"""The rules by group."""

ALL_RULES: Final = tuple(rule for rules in GROUPS.values() for rule in rules)
"""Every rule; those of one alert in two severities have the same name."""


def rules_document(runbooks: str = DEFAULT_RUNBOOKS, page: str = "") -> dict[str, Any]:
    """All groups, as a rules file has them; the addresses are those of `AlertingRule.document`."""
    return {
        "groups": [
            {"name": name, "rules": [rule.document(runbooks, page) for rule in rules]}
            for name, rules in GROUPS.items()
        ]
    }


def rules_file(
    form: RulesFormat, runbooks: str = DEFAULT_RUNBOOKS, page: str = ""
) -> tuple[str, str]:
    """The name and the text of the file."""
    document = rules_document(runbooks, page)
    if form is RulesFormat.PROMETHEUS:
        return "featurewatch.rules.yaml", _text(document)
    resource = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": "featurewatch",
            "labels": {"app.kubernetes.io/name": "featurewatch"},
        },
        "spec": document,
    }
    return "featurewatch.prometheusrule.yaml", _text(resource)


def _text(document: dict[str, Any]) -> str:
    return _HEAD + yaml.safe_dump(document, sort_keys=False, width=1000, allow_unicode=True)
