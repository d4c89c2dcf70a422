"""A panel of a dashboard, as data, and the JSON that Grafana takes (classic model, schema 39).

Grafana 11 takes it as it is, later ones migrate it. The data source is a variable of the dashboard,
so nothing has to be filled in when it is provisioned.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from featurewatch.integrations.series import meanings

DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
WIDTH: Final = 24
"""Columns of a dashboard."""


class PanelKind(StrEnum):
    """How Grafana draws a panel."""

    STAT = "stat"
    TABLE = "table"
    SERIES = "timeseries"
    STATES = "state-timeline"


@dataclass(frozen=True, slots=True)
class Panel:
    """Several queries in one graph.

    ``queries`` are PromQL expressions by the legend of their series; ``unit`` is one of Grafana's.
    The description is that of the metrics, from their registries.
    """

    title: str
    kind: PanelKind
    queries: Mapping[str, str]
    unit: str = "short"
    width: int = 12
    height: int = 8
    is_stacked: bool = False

    def document(self, panel_id: int, left: int, top: int) -> dict[str, Any]:
        """The panel as JSON, at a position of the grid."""
        custom: dict[str, Any] = {}
        if self.kind is PanelKind.SERIES:
            custom = {"lineInterpolation": "stepAfter", "fillOpacity": 20 if self.is_stacked else 0}
        if self.is_stacked:
            custom["stacking"] = {"mode": "normal", "group": "A"}
        is_table = self.kind is PanelKind.TABLE
        document: dict[str, Any] = {
            "id": panel_id,
            "title": self.title,
            "description": " ".join(meanings(" ".join(self.queries.values()))),
            "type": str(self.kind),
            "datasource": DATASOURCE,
            "gridPos": {"x": left, "y": top, "w": self.width, "h": self.height},
            "fieldConfig": {"defaults": {"unit": self.unit, "custom": custom}, "overrides": []},
            "options": _OPTIONS[self.kind],
            "targets": [
                {
                    "refId": chr(ord("A") + number),
                    "datasource": DATASOURCE,
                    "expr": expression,
                    "legendFormat": legend,
                    "instant": is_table,
                    "range": not is_table,
                    "format": "table" if is_table else "time_series",
                }
                for number, (legend, expression) in enumerate(self.queries.items())
            ],
        }
        if is_table:
            hidden = {"Time": True}
            document["transformations"] = [{"id": "organize", "options": {"excludeByName": hidden}}]
        return document


_OPTIONS: Final[Mapping[PanelKind, Mapping[str, Any]]] = {
    PanelKind.STAT: {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none"},
    PanelKind.TABLE: {"showHeader": True},
    PanelKind.SERIES: {"legend": {"displayMode": "list", "placement": "bottom"}},
    PanelKind.STATES: {"mergeValues": True, "showValue": "always"},
}
