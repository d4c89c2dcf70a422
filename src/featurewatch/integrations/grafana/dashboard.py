"""A dashboard: its variables, and its panels in rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.integrations.grafana.panel import DATASOURCE, WIDTH, Panel


@dataclass(frozen=True, slots=True)
class Dashboard:
    """``sections`` are panels by the title of their row; ``variables`` are queries of label values
    by the variable's name. ``allows_several`` clusters, or one.
    """

    uid: str
    title: str
    variables: Mapping[str, str]
    sections: Mapping[str, Sequence[Panel]]
    allows_several: bool = True

    @property
    def panels(self) -> Iterator[Panel]:
        """All panels."""
        for panels in self.sections.values():
            yield from panels

    def document(self, page: str) -> dict[str, Any]:
        """The dashboard as JSON; ``page`` is the address of the page for operators, or empty."""
        variable = "" if self.allows_several else "?view=cluster&cluster=${kafka_cluster}"
        links = [_link("Page of featurewatch", f"{page.rstrip('/')}/{variable}")] if page else []
        return {
            "uid": self.uid,
            "id": None,
            "title": self.title,
            "tags": ["featurewatch", "kafka"],
            "schemaVersion": 39,
            "version": 1,
            "editable": True,
            "graphTooltip": 1,
            "timezone": "utc",
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "links": links,
            "templating": {"list": [_DATASOURCE_VARIABLE, *self._variables()]},
            "annotations": {"list": []},
            "panels": list(self._panels()),
        }

    def _variables(self) -> Iterator[dict[str, Any]]:
        for name, query in self.variables.items():
            is_several = self.allows_several or name != "kafka_cluster"
            yield {
                "name": name,
                "label": name.replace("_", " "),
                "type": "query",
                "datasource": DATASOURCE,
                "query": {"query": query, "refId": name},
                "refresh": 2,
                "sort": 1,
                "multi": is_several,
                "includeAll": is_several,
                **({"allValue": ".+", "current": _ALL} if is_several else {}),
            }

    def _panels(self) -> Iterator[dict[str, Any]]:
        number, top = 0, 0
        for title, panels in self.sections.items():
            number += 1
            place = {"x": 0, "y": top, "w": WIDTH, "h": 1}
            row = {"id": number, "type": "row", "title": title, "collapsed": False, "panels": []}
            yield {**row, "gridPos": place}
            top += 1
            left = height = 0
            for panel in panels:
                if left + panel.width > WIDTH:
                    left, top = 0, top + height
                number += 1
                yield panel.document(number, left, top)
                left, height = left + panel.width, panel.height
            top += height


_ALL: Final = {"text": ["All"], "value": ["$__all"]}
_DATASOURCE_VARIABLE: Final = {
    "name": "datasource",
    "label": "data source",
    "type": "datasource",
    "query": "prometheus",
    "refresh": 1,
}


def _link(title: str, url: str) -> dict[str, Any]:
    return {"title": title, "type": "link", "url": url, "targetBlank": True, "tags": []}
