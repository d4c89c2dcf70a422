"""The dashboards: what they name exists, and Grafana's and Prometheus' rules are kept."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from featurewatch.integrations.grafana.boards import DASHBOARDS, panels_of_others
from featurewatch.integrations.grafana.dashboard import Dashboard
from featurewatch.integrations.grafana.files import dashboard_files
from featurewatch.integrations.series import SERIES, SeriesDef, names_in
from tests.cli.commands import featurewatch
from tests.integrations.expressions import unknown_names

BY_UID = pytest.mark.parametrize("board", DASHBOARDS, ids=lambda board: board.uid)
VARIABLE = re.compile(r"\$\{?(\w+)")
BUILT_IN = {"__rate_interval", "__range"}


def expressions(board: Dashboard) -> list[str]:
    """All queries of a dashboard."""
    return [query for panel in board.panels for query in panel.queries.values()]


@BY_UID
def test_each_query_names_what_exists(board: Dashboard) -> None:
    """Metrics and labels are those of the registries, variables those of the dashboard."""
    for expression in expressions(board):
        assert list(unknown_names(expression)) == [], expression
        used = set(VARIABLE.findall(expression)) - BUILT_IN
        assert used <= set(board.variables), expression
    for query in board.variables.values():
        metric, label = re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", query).groups()  # type: ignore[union-attr]
        assert label in SERIES[metric].labels


def test_every_metric_is_on_a_dashboard() -> None:
    """Of a histogram its buckets are."""
    shown = {
        name for board in DASHBOARDS for query in expressions(board) for name in names_in(query)
    }
    unshown = {name for name in SERIES if name not in shown}
    assert unshown == {
        "featurewatch_worker_event_seconds_sum",
        "featurewatch_worker_event_seconds_count",
    }


def test_a_metric_without_a_panel_gets_one() -> None:
    """With the rate of a counter, the highest value of a gauge, and its labels in the legend."""
    others = {
        "featurewatch_retries_total": SeriesDef(("target",), "requests that were tried again"),
        "featurewatch_voters": SeriesDef(("kafka_cluster",), "Voters of the quorum."),
        "featurewatch_wait_seconds_sum": SeriesDef((), "time of waiting"),
    }
    retries, voters = panels_of_others([], others)
    assert (retries.title, retries.unit) == ("Requests that were tried again", "ops")
    assert retries.queries == {
        "{{target}}": "sum by (target) (rate(featurewatch_retries_total[$__rate_interval]))"
    }
    assert voters.title == "Voters of the quorum"
    assert voters.queries == {
        "{{kafka_cluster}}": "max by (kafka_cluster) "
        '(featurewatch_voters{kafka_cluster=~"$kafka_cluster"})'
    }
    assert panels_of_others([retries, voters], others) == ()


@BY_UID
def test_a_dashboard_can_be_provisioned(board: Dashboard) -> None:
    """No inputs to fill in, the data source by variable, and nothing of Angular."""
    document = board.document("https://ops/fw/")
    text = json.dumps(document)
    assert "__inputs" not in text
    assert "DS_PROMETHEUS" not in text
    assert (document["id"], document["uid"]) == (None, board.uid)
    first, *others = document["templating"]["list"]
    assert (first["type"], first["query"]) == ("datasource", "prometheus")
    assert all(other["datasource"]["uid"] == "${datasource}" for other in others)
    assert document["links"][0]["url"].startswith("https://ops/fw/")
    assert board.document("")["links"] == []


def overlap(first: dict[str, int], second: dict[str, int]) -> bool:
    """Whether two places of the grid have a cell in common."""
    return (
        first["x"] < second["x"] + second["w"]
        and second["x"] < first["x"] + first["w"]
        and first["y"] < second["y"] + second["h"]
        and second["y"] < first["y"] + first["h"]
    )


@BY_UID
def test_panels_are_whole(board: Dashboard) -> None:
    """Each has a title, a description, a unit and its own position; ids are unique."""
    panels: list[dict[str, Any]] = board.document("")["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for number, panel in enumerate(panels):
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        assert not any(overlap(place, other["gridPos"]) for other in panels[:number]), panel
        assert panel["title"]
        if panel["type"] == "row":
            continue
        assert panel["type"] in ("stat", "table", "timeseries", "state-timeline")
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"
            assert "rate(" not in target["expr"] or "$__rate_interval" in target["expr"]


def test_the_command_writes_what_grafana_loads(tmp_path: Path) -> None:
    """The dashboards, the provider that names their directory, and a ConfigMap with the same."""
    ended = featurewatch(tmp_path, "dashboards", "--out", "g")
    assert ended.returncode == 0, ended.stderr
    files = dashboard_files()
    assert ended.stdout.splitlines() == [f"g/{name}" for name in files]
    assert {name: (tmp_path / "g" / name).read_text() for name in files} == files
    boards = {name.rpartition("/")[2]: files[name] for name in files if name.endswith(".json")}
    config_map = yaml.safe_load(files["featurewatch-dashboards.configmap.yaml"])
    assert config_map["data"] == boards
    assert config_map["metadata"]["labels"] == {"grafana_dashboard": "1"}
    (provider,) = yaml.safe_load(files["provisioning/featurewatch.yaml"])["providers"]
    assert provider["type"] == "file"
