"""An alerting rule of Prometheus, as data; the clusters' rules follow from the alert rules."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from featurewatch.integrations.alert_kinds import alert_name
from featurewatch.integrations.series import without_target
from featurewatch.monitor.rules import RULES, Rule
from featurewatch.streams.outputs import Severity

KAFKA_CLUSTER: Final = (
    "the Kafka cluster {{ $id := $labels.kafka_cluster }}{{ $name := $id }}"
    '{{ with query (printf "featurewatch_cluster_info{kafka_cluster=%q}" $id) }}'
    '{{ $name = . | first | label "name" }}{{ end }}'
    "{{ if ne $name $id }}{{ $name }} ({{ $id }}){{ else }}{{ $id }}{{ end }}"
)
"""The cluster of an alert in a description: its name, if it has one, and its id.

The name is looked up in the annotation. As a label it would change the alert's identity whenever
the worker, which exposes names, is unavailable.
"""


@dataclass(frozen=True, slots=True)
class AlertingRule:
    """A rule: ``summary`` is one fixed sentence, ``description`` a template of Prometheus.

    ``for_s`` and ``keep_firing_s`` are seconds; ``ends`` says when its alert ends. ``labels`` are
    added to those of ``expression``.
    """

    name: str
    severity: str
    expression: str
    summary: str
    description: str
    ends: str
    for_s: int = 60
    keep_firing_s: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)

    def document(self, runbooks: str, page: str) -> dict[str, Any]:
        """The rule as a rules file has it.

        ``runbooks`` is the address below which the runbooks are, ``page`` that of the page for
        operators (empty: none).
        """
        annotations = {
            "summary": self.summary,
            "description": self.description,
            "runbook_url": f"{runbooks.rstrip('/')}/{self.name}.md",
        }
        if page:
            annotations["page"] = f"{page.rstrip('/')}/"
            if "$labels.kafka_cluster" in self.description:
                annotations["page"] += (
                    "?view=cluster&cluster={{ $labels.kafka_cluster | urlquery }}"
                )
        document: dict[str, Any] = {"alert": self.name, "expr": self.expression}
        if self.for_s:
            document["for"] = f"{self.for_s}s"
        if self.keep_firing_s:
            document["keep_firing_for"] = f"{self.keep_firing_s}s"
        document["labels"] = {"severity": self.severity, **self.labels}
        document["annotations"] = annotations
        return document


def cluster_rules() -> Iterator[AlertingRule]:
    """A rule for each alert rule and each of its severities.

    The worker has judged already how long a condition may last, so they wait for two scrapes only.
    """
    for rule in RULES:
        for severity in rule.severities:
            yield _cluster_rule(rule, severity)


def _cluster_rule(rule: Rule, severity: Severity) -> AlertingRule:
    firing = f'featurewatch_alerts_firing{{rule="{rule.name}",severity="{severity}"}}'
    return AlertingRule(
        name=alert_name(rule.name),
        severity=str(severity),
        expression=f"{without_target('max', firing)} > 0",
        summary=f"{rule.about[0].upper()}{rule.about[1:]}.",
        description=(
            f"{{{{ $value }}}} alerts of the rule {rule.name} fire for {KAFKA_CLUSTER}. "
            "To see what to do, run: "
            "featurewatch alerts --cluster {{ $labels.kafka_cluster }}"
        ),
        ends=rule.ends,
        keep_firing_s=120,
    )
