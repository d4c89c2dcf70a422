"""Rules about featurewatch itself: what Prometheus notices when nothing else would.

A process that is down publishes no alert, so these rules need nothing of a worker but its series,
or that they are missing.
"""

from typing import Final

from featurewatch.integrations.alert_kinds import PREFIX
from featurewatch.integrations.prometheus.rule import KAFKA_CLUSTER, AlertingRule
from featurewatch.integrations.series import without_target

_SOURCE: Final = f"The source {{{{ $labels.source }}}} of {KAFKA_CLUSTER}"
_RESTARTS: Final = 3
_LAG: Final = 1000
_SLOW_S: Final = 1
_SILENT_S: Final = 300


def _down(process: str, consequence: str) -> AlertingRule:
    return AlertingRule(
        name=f"{PREFIX}{process.capitalize()}Down",
        severity="critical",
        expression=f'absent(featurewatch_build_info{{process="{process}"}})',
        summary=f"No process of the kind {process} of featurewatch is scraped.",
        description=f"Prometheus scrapes no featurewatch {process}: {consequence}.",
        ends="when Prometheus scrapes one again",
        for_s=300,
    )


PROCESS_RULES: Final = (
    _down("watch", "nothing new is known of any cluster"),
    _down("worker", "no change and no alert is published"),
    AlertingRule(
        f"{PREFIX}SourceNotFollowing",
        "warning",
        without_target("max", "featurewatch_source_following") + " == 0",
        "A source has not caught up with its cluster.",
        f"{_SOURCE} has followed nothing for 5 minutes; /readyz of its process has the reason.",
        "when the source has caught up",
        for_s=300,
    ),
    AlertingRule(
        f"{PREFIX}SourceSilent",
        "critical",
        f"time() - {without_target('max', 'featurewatch_source_last_seen_timestamp_seconds')} "
        f"> {_SILENT_S}",
        "A source reports nothing any more.",
        f"{_SOURCE} has reported nothing for {{{{ $value | humanizeDuration }}}}.",
        "when the source reports again, or is retired",
    ),
    AlertingRule(
        f"{PREFIX}ClusterNotReady",
        "warning",
        without_target("max", "featurewatch_cluster_ready") + " == 0",
        "The state of a cluster is unknown.",
        f"The worker has not known the state of {KAFKA_CLUSTER} for 10 minutes.",
        "when a source of the cluster has caught up",
        for_s=600,
    ),
    AlertingRule(
        f"{PREFIX}DeadLetters",
        "warning",
        without_target("sum", "increase(featurewatch_source_dead_letters_total[15m])") + " > 0",
        "Some input of a cluster could not be read.",
        f"{_SOURCE} published about {{{{ $value | humanize }}}} dead letters in 15 minutes.",
        "15 minutes after the last dead letter",
        for_s=0,
    ),
    AlertingRule(
        f"{PREFIX}SourceRestarting",
        "warning",
        without_target("sum", "increase(featurewatch_source_restarts_total[1h])")
        + f" > {_RESTARTS}",
        "A source fails again and again.",
        f"{_SOURCE} was started again about {{{{ $value | humanize }}}} times in an hour.",
        f"when it failed no more than {_RESTARTS} times in the last hour",
        for_s=0,
    ),
    AlertingRule(
        f"{PREFIX}WorkerRestarting",
        "warning",
        f"increase(featurewatch_worker_restarts_total[1h]) > {_RESTARTS}",
        "A worker fails again and again.",
        "The worker {{ $labels.instance }} restarted about {{ $value | humanize }} times in an "
        "hour; its log has the reason.",
        f"when it failed no more than {_RESTARTS} times in the last hour",
        for_s=0,
    ),
    AlertingRule(
        f"{PREFIX}TaskFailing",
        "warning",
        "increase(featurewatch_task_failures_total[1h]) > 0",
        "A background task of featurewatch fails.",
        "On {{ $labels.instance }}, {{ $labels.task }} failed about {{ $value | humanize }} times "
        "in an hour, and is started again each time; the log has the reason.",
        "an hour after the last failure",
        for_s=0,
    ),
    AlertingRule(
        f"{PREFIX}WebConfigFailed",
        "warning",
        "featurewatch_web_config_failed == 1",
        "Changed TLS or logins are not in use.",
        "On {{ $labels.instance }}, the web configuration or the tokens have changed and cannot be "
        "used: what was revoked there still opens the port.",
        "when the files can be used",
        for_s=60,
    ),
    AlertingRule(
        f"{PREFIX}LagGrowing",
        "warning",
        f"{without_target('min', 'featurewatch_source_lag_records')} > {_LAG} and "
        f"{without_target('min', 'deriv(featurewatch_source_lag_records[10m])')} > 0",
        "A source falls behind its cluster.",
        f"{_SOURCE} is {{{{ $value }}}} records behind, and the distance grows.",
        f"when it is at most {_LAG} records behind, or catches up",
        for_s=600,
    ),
    AlertingRule(
        f"{PREFIX}WorkerSlow",
        "warning",
        "histogram_quantile(0.99, "
        + without_target("sum", "rate(featurewatch_worker_event_seconds_bucket[10m])")
        + f") > {_SLOW_S}",
        "The worker takes long for its messages.",
        "One in a hundred messages on {{ $labels.topic }} takes longer than "
        "{{ $value | humanizeDuration }}.",
        f"when 99 of 100 messages take less than {_SLOW_S} s",
        for_s=600,
    ),
    AlertingRule(
        f"{PREFIX}SeriesOmitted",
        "warning",
        without_target("max", "featurewatch_metrics_omitted_series") + " > 0",
        "The metrics of some clusters are left out.",
        "{{ $value }} series are left out, so rules and dashboards do not see everything.",
        "when all series fit into the limit",
        for_s=900,
    ),
    AlertingRule(
        f"{PREFIX}NotifyFailing",
        "critical",
        without_target("max", "featurewatch_notify_failing") + " == 1",
        "Alerts do not reach a target of featurewatch notify.",
        "Requests to {{ $labels.target }} have failed for 5 minutes; /readyz of the process that "
        "notifies has the reason.",
        "when the target accepts a request",
        for_s=300,
    ),
    AlertingRule(
        f"{PREFIX}NotifyDropped",
        "warning",
        without_target("sum", "increase(featurewatch_notify_dropped_total[1h])") + " > 0",
        "Alert messages were given up for a webhook.",
        "The webhook {{ $labels.target }} did not get about {{ $value | humanize }} alert messages "
        "in an hour.",
        "an hour after the last one",
        for_s=0,
    ),
    AlertingRule(
        f"{PREFIX}NotifyStopped",
        "critical",
        without_target("max", "featurewatch_notify_stopped") + " == 1",
        "A webhook answered 410 Gone.",
        "The webhook {{ $labels.target }} answered 410 and gets nothing more.",
        "when it is removed from the configuration, or featurewatch notify is restarted",
    ),
    AlertingRule(
        f"{PREFIX}Watchdog",
        "none",
        "vector(1)",
        "This alert always fires; if it does not arrive, alerts are not delivered.",
        "Prometheus evaluates the rules of featurewatch and reaches Alertmanager.",
        "never, while Prometheus and Alertmanager work",
        for_s=0,
    ),
)
"""Rules about notifications fire only where ``featurewatch notify`` runs."""
