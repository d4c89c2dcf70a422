"""Series by which each rule about featurewatch itself fires, and by which it stays silent."""

from typing import NamedTuple

SOURCE = '{kafka_cluster="c",source="kraft",instance="a",job="watch"}'
OTHER = '{kafka_cluster="c",source="kraft",instance="b",job="watch"}'
CLUSTER = '{kafka_cluster="c",instance="a",job="worker"}'
TARGET = '{target="t",instance="a",job="notify"}'
WORKER = '{instance="a",job="worker"}'
Series = dict[str, str]
"""Values in promtool's notation, one a minute, by series."""


class RuleCase(NamedTuple):
    """The series of a rule, and the minute at which it is judged; ``labels`` are of its alert."""

    fires: Series
    silent: Series
    minute: int = 30
    labels: str = '{kafka_cluster="c"}'


def _build(process: str) -> Series:
    return {f'featurewatch_build_info{{process="{process}",version="1"}}': "1x60"}


def _seconds(fast: str) -> Series:
    bucket = 'featurewatch_worker_event_seconds_bucket{topic="metadata-log",le="%s"}'
    return {bucket % "0.1": fast, bucket % "5.0": "0+10x60", bucket % "+Inf": "0+10x60"}


CASES = {
    "FeaturewatchWatchDown": RuleCase(_build("worker"), _build("watch"), labels="{}"),
    "FeaturewatchWorkerDown": RuleCase(_build("watch"), _build("worker"), labels="{}"),
    "FeaturewatchSourceNotFollowing": RuleCase(
        {f"featurewatch_source_following{SOURCE}": "0x60"},
        {
            f"featurewatch_source_following{SOURCE}": "0x60",
            f"featurewatch_source_following{OTHER}": "1x60",
        },
    ),
    "FeaturewatchSourceSilent": RuleCase(
        {f"featurewatch_source_last_seen_timestamp_seconds{SOURCE}": "60x60"},
        {f"featurewatch_source_last_seen_timestamp_seconds{SOURCE}": "0+60x60"},
    ),
    "FeaturewatchClusterNotReady": RuleCase(
        {f"featurewatch_cluster_ready{CLUSTER}": "0x60"},
        {f"featurewatch_cluster_ready{CLUSTER}": "1x60"},
    ),
    "FeaturewatchDeadLetters": RuleCase(
        {f"featurewatch_source_dead_letters_total{SOURCE}": "0+1x60"},
        {f"featurewatch_source_dead_letters_total{SOURCE}": "7x60"},
    ),
    "FeaturewatchSourceRestarting": RuleCase(
        {f"featurewatch_source_restarts_total{SOURCE}": "0+1x60"},
        {f"featurewatch_source_restarts_total{SOURCE}": "0x10 2x50"},
    ),
    "FeaturewatchWorkerRestarting": RuleCase(
        {f"featurewatch_worker_restarts_total{WORKER}": "0+1x60"},
        {f"featurewatch_worker_restarts_total{WORKER}": "0x10 2x50"},
        labels='{instance="a"}',
    ),
    "FeaturewatchTaskFailing": RuleCase(
        {'featurewatch_task_failures_total{instance="a",task="reading the login files"}': "0 1x59"},
        {'featurewatch_task_failures_total{instance="a",task="reading the login files"}': "3x60"},
        labels='{instance="a",task="reading the login files"}',
    ),
    "FeaturewatchWebConfigFailed": RuleCase(
        {'featurewatch_web_config_failed{instance="a"}': "1x60"},
        {'featurewatch_web_config_failed{instance="a"}': "0x60"},
        labels='{instance="a"}',
    ),
    "FeaturewatchLagGrowing": RuleCase(
        {f"featurewatch_source_lag_records{SOURCE}": "2000+100x60"},
        {f"featurewatch_source_lag_records{SOURCE}": "9000-100x60"},
    ),
    "FeaturewatchWorkerSlow": RuleCase(
        _seconds("0x60"), _seconds("0+10x60"), labels='{topic="metadata-log"}'
    ),
    "FeaturewatchNotifyFailing": RuleCase(
        {f"featurewatch_notify_failing{TARGET}": "1x60"},
        {f"featurewatch_notify_failing{TARGET}": "0x60"},
        labels='{target="t"}',
    ),
    "FeaturewatchNotifyDropped": RuleCase(
        {f"featurewatch_notify_dropped_total{TARGET}": "0+1x60"},
        {f"featurewatch_notify_dropped_total{TARGET}": "3x60"},
        labels='{target="t"}',
    ),
    "FeaturewatchNotifyStopped": RuleCase(
        {f"featurewatch_notify_stopped{TARGET}": "1x60"},
        {f"featurewatch_notify_stopped{TARGET}": "0x60"},
        labels='{target="t"}',
    ),
    "FeaturewatchSeriesOmitted": RuleCase(
        {f"featurewatch_metrics_omitted_series{WORKER}": "5x60"},
        {f"featurewatch_metrics_omitted_series{WORKER}": "0x60"},
        labels="{}",
    ),
}
"""By the rule's name; only FeaturewatchWatchdog is never silent."""
