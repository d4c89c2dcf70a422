"""The two dashboards: all clusters with featurewatch itself, and one cluster in its roll.

Every metric of the registries is on one of them: one that has no panel here gets its own, in the
last row of the first dashboard.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from featurewatch.integrations.grafana.dashboard import Dashboard
from featurewatch.integrations.grafana.panel import Panel, PanelKind
from featurewatch.integrations.series import SERIES, SeriesDef, names_in

_C: Final = 'kafka_cluster=~"$kafka_cluster"'
_F: Final = f'{_C},feature=~"$feature"'
_STAT, _TABLE = PanelKind.STAT, PanelKind.TABLE
_SERIES, _STATES = PanelKind.SERIES, PanelKind.STATES
_CLUSTERS: Final = "label_values(featurewatch_cluster_ready, kafka_cluster)"


def _rate(metric: str, labels: str, selector: str = _C) -> str:
    selected = f"{metric}{{{selector}}}" if selector else metric
    return f"sum by ({labels}) (rate({selected}[$__rate_interval]))"


def _per_source(metric: str, aggregation: str = "max") -> str:
    return f"{aggregation} by (kafka_cluster, source) ({metric}{{{_C}}})"


_SOURCE: Final = "{{kafka_cluster}} {{source}}"

_HEALTH: Final = (
    Panel(
        "Alerts that fire",
        _STAT,
        {"{{severity}}": f"sum by (severity) (featurewatch_alerts_firing{{{_C}}})"},
        width=6,
    ),
    Panel(
        "Clusters whose state is known",
        _STAT,
        {
            "known": f"count(max by (kafka_cluster) (featurewatch_cluster_ready{{{_C}}}) == 1) "
            "or vector(0)",
            "all": f"count(max by (kafka_cluster) (featurewatch_cluster_ready{{{_C}}}))",
        },
        width=6,
    ),
    Panel(
        "Upgrade states",
        _SERIES,
        {"{{state}}": f"sum by (state) (featurewatch_upgrade_state{{{_C}}})"},
        is_stacked=True,
    ),
    Panel(
        "Alerts by cluster and rule",
        _TABLE,
        {"": f"sum by (kafka_cluster, rule, severity) (featurewatch_alerts_firing{{{_C}}})"},
    ),
    Panel(
        "Names of the clusters",
        _TABLE,
        {"": f"max by (kafka_cluster, name) (featurewatch_cluster_info{{{_C}}})"},
    ),
    Panel(
        "Nodes that block metadata.version",
        _SERIES,
        {
            "{{kafka_cluster}}": "max by (kafka_cluster) "
            f'(featurewatch_upgrade_blockers{{{_C},feature="metadata.version"}})'
        },
    ),
    Panel(
        "Time in the upgrade state",
        _SERIES,
        {
            "{{kafka_cluster}}": "time() - max by (kafka_cluster) "
            f"(featurewatch_upgrade_state_since_seconds{{{_C}}})"
        },
        unit="s",
    ),
)
_SOURCES: Final = (
    Panel("Sources that follow", _STATES, {_SOURCE: _per_source("featurewatch_source_following")}),
    Panel(
        "States of sources",
        _SERIES,
        {"{{state}}": f"sum by (state) (featurewatch_source_state{{{_C}}})"},
        is_stacked=True,
    ),
    Panel(
        "Time since the last report",
        _SERIES,
        {_SOURCE: "time() - " + _per_source("featurewatch_source_last_seen_timestamp_seconds")},
        unit="s",
    ),
    Panel("Lag", _SERIES, {_SOURCE: _per_source("featurewatch_source_lag_records")}),
    Panel(
        "Offsets",
        _SERIES,
        {
            f"{_SOURCE} read": _per_source("featurewatch_source_offset"),
            f"{_SOURCE} high watermark": _per_source("featurewatch_source_high_watermark"),
        },
    ),
    Panel(
        "Records",
        _SERIES,
        {
            "read": _rate("featurewatch_source_records_read_total", "source"),
            "skipped": _rate("featurewatch_source_records_skipped_total", "source"),
        },
        unit="ops",
    ),
    Panel(
        "Published events",
        _SERIES,
        {_SOURCE: _rate("featurewatch_source_published_total", "kafka_cluster, source")},
        unit="ops",
    ),
    Panel(
        "Failures",
        _SERIES,
        {
            f"{_SOURCE} dead letters": _rate(
                "featurewatch_source_dead_letters_total", "kafka_cluster, source"
            ),
            f"{_SOURCE} restarts": _rate(
                "featurewatch_source_restarts_total", "kafka_cluster, source"
            ),
        },
        unit="ops",
    ),
)
_WORKERS: Final = (
    Panel(
        "Versions",
        _TABLE,
        {"": "count by (process, version) (featurewatch_build_info)"},
    ),
    Panel(
        "Messages",
        _SERIES,
        {"{{topic}}": _rate("featurewatch_worker_events_total", "topic", "")},
        unit="ops",
    ),
    Panel(
        "Time for a message",
        _SERIES,
        {
            f"{{{{topic}}}} p{quantile[2:]}": f"histogram_quantile({quantile}, "
            + _rate("featurewatch_worker_event_seconds_bucket", "le, topic", "")
            + ")"
            for quantile in ("0.50", "0.99")
        },
        unit="s",
    ),
    Panel(
        "Restarts of workers",
        _SERIES,
        {"{{instance}}": _rate("featurewatch_worker_restarts_total", "instance", "")},
        unit="ops",
    ),
    Panel(
        "Background tasks",
        _SERIES,
        {
            "{{instance}} {{task}}": "sum by (instance, task) "
            "(increase(featurewatch_task_failures_total[$__rate_interval]))",
            "{{instance}} login files": "max by (instance) (featurewatch_web_config_failed)",
        },
    ),
    Panel(
        "Notifications",
        _SERIES,
        {
            "{{target}} accepted": _rate("featurewatch_notify_sent_total", "target", ""),
            "{{target}} failed": _rate("featurewatch_notify_failures_total", "target", ""),
            "{{target}} given up": _rate("featurewatch_notify_dropped_total", "target", ""),
        },
        unit="ops",
    ),
    Panel(
        "Targets that fail or have stopped",
        _STATES,
        {
            "{{target}} fails": "max by (target) (featurewatch_notify_failing)",
            "{{target}} has stopped": "max by (target) (featurewatch_notify_stopped)",
        },
    ),
    Panel(
        "Metrics left out",
        _SERIES,
        {
            "series": "max(featurewatch_metrics_omitted_series)",
            "clusters": "max(featurewatch_metrics_omitted_clusters)",
            "changes": "max(featurewatch_metrics_omitted_changes_total)",
        },
    ),
)

_ROLL: Final = (
    Panel(
        "Upgrade state",
        _STATES,
        {"{{state}}": f"max by (state) (featurewatch_upgrade_state{{{_C}}})"},
    ),
    Panel(
        "Nodes by release",
        _SERIES,
        {"{{role}} {{release}}": f"max by (role, release) (featurewatch_release_nodes{{{_C}}})"},
        is_stacked=True,
    ),
    Panel(
        "Finalized levels",
        _STATES,
        {
            "{{feature}}": f"max by (feature) (featurewatch_finalized_level{{{_F}}})",
            "{{feature}} is finalized at 0": "max by (feature) "
            f"(featurewatch_finalized_at_zero{{{_F}}})",
        },
    ),
    Panel(
        "Blockers of the highest level",
        _SERIES,
        {"{{feature}}": f"max by (feature) (featurewatch_upgrade_blockers{{{_F}}})"},
    ),
    Panel(
        "Levels that all nodes support",
        _SERIES,
        {
            "{{role}} {{feature}} lowest": "max by (role, feature) "
            f"(featurewatch_supported_min_level{{{_F}}})",
            "{{role}} {{feature}} highest": "min by (role, feature) "
            f"(featurewatch_supported_max_level{{{_F}}})",
        },
    ),
    Panel(
        "Ready for the highest level",
        _STATES,
        {"{{feature}}": f"min by (feature) (featurewatch_upgrade_ready{{{_F}}})"},
    ),
)
_CLUSTER: Final = (
    Panel("Nodes", _STAT, {"{{role}}": f"max by (role) (featurewatch_nodes{{{_C}}})"}, width=6),
    Panel(
        "Registrations without a living node",
        _STAT,
        {"{{role}}": f"max by (role) (featurewatch_ghost_registrations{{{_C}}})"},
        width=6,
    ),
    Panel(
        "Epoch and revision",
        _STAT,
        {
            "epoch": f"max(featurewatch_feature_epoch{{{_C}}})",
            "revision": f"max(featurewatch_feature_revision{{{_C}}})",
        },
        width=6,
    ),
    Panel(
        "Brokers that a migration waits for",
        _STAT,
        {"brokers": f"max(featurewatch_migration_missing_brokers{{{_C}}})"},
        width=6,
    ),
    Panel(
        "Alerts",
        _TABLE,
        {"": f"sum by (rule, severity) (featurewatch_alerts_firing{{{_C}}})"},
    ),
    Panel(
        "Changes of levels",
        _TABLE,
        {
            "": "sum by (feature, kind) "
            f"(increase(featurewatch_feature_changes_total{{{_F}}}[$__range]))"
        },
    ),
    Panel(
        "Levels of single nodes",
        _TABLE,
        {
            "lowest": f"max by (role, node, feature) (featurewatch_node_min_level{{{_F}}})",
            "highest": f"max by (role, node, feature) (featurewatch_node_max_level{{{_F}}})",
        },
        width=24,
        height=12,
    ),
)


def panels_of_others(panels: Iterable[Panel], series: Mapping[str, SeriesDef]) -> tuple[Panel, ...]:
    """A panel for each series that none of these panels shows."""
    shown = {
        name for panel in panels for query in panel.queries.values() for name in names_in(query)
    }
    # Of a histogram the buckets are shown; its sums and counts are part of them.
    names = (name for name in series if name not in shown and not name.endswith(("_sum", "_count")))
    return tuple(_panel_of(name, series[name]) for name in names)


def _panel_of(name: str, definition: SeriesDef) -> Panel:
    labels = ", ".join(definition.labels)
    legend = " ".join(f"{{{{{label}}}}}" for label in definition.labels) or name
    selector = _C if "kafka_cluster" in definition.labels else ""
    title = f"{definition.about[0].upper()}{definition.about[1:].rstrip('.')}"
    if name.endswith("_total"):
        return Panel(title, _SERIES, {legend: _rate(name, labels, selector)}, unit="ops")
    selected = f"{name}{{{selector}}}" if selector else name
    return Panel(title, _SERIES, {legend: f"max by ({labels}) ({selected})"})


_OTHERS: Final = panels_of_others(
    (*_HEALTH, *_SOURCES, *_WORKERS, *_ROLL, *_CLUSTER),
    SERIES,
)

DASHBOARDS: Final = (
    Dashboard(
        "featurewatch-fleet",
        "featurewatch: all clusters",
        {"kafka_cluster": _CLUSTERS},
        {"Clusters": _HEALTH, "Sources": _SOURCES, "featurewatch": _WORKERS}
        | ({"Others": _OTHERS} if _OTHERS else {}),
    ),
    Dashboard(
        "featurewatch-cluster",
        "featurewatch: one cluster",
        {
            "kafka_cluster": _CLUSTERS,
            "feature": 'label_values(featurewatch_finalized_level{kafka_cluster="$kafka_cluster"}, '
            "feature)",
        },
        {"Roll": _ROLL, "Cluster": _CLUSTER},
        allows_several=False,
    ),
)
