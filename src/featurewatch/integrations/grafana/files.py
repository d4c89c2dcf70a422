"""The dashboards as files, with the provisioning that Grafana needs to load them."""

import json
from typing import Any, Final

import yaml

from featurewatch.integrations.grafana.boards import DASHBOARDS

_FOLDER: Final = "/var/lib/grafana/dashboards/featurewatch"
_PROVIDER: Final = {
    "apiVersion": 1,
    "providers": [
        {
            "name": "featurewatch",
            "folder": "featurewatch",
            "type": "file",
            "allowUiUpdates": False,
            "options": {"path": _FOLDER},
        }
    ],
}


def dashboard_files(page: str = "") -> dict[str, str]:
    """The texts of the files by their names.

    ``provisioning/featurewatch.yaml`` loads the JSON files from a directory;
    ``featurewatch-dashboards.configmap.yaml`` is for the sidecar of Grafana's chart.
    """
    boards = {f"{board.uid}.json": _json(board.document(page)) for board in DASHBOARDS}
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "featurewatch-dashboards", "labels": {"grafana_dashboard": "1"}},
        "data": boards,
    }
    return {
        **{f"dashboards/{name}": text for name, text in boards.items()},
        "provisioning/featurewatch.yaml": yaml.safe_dump(_PROVIDER, sort_keys=False),
        "featurewatch-dashboards.configmap.yaml": yaml.safe_dump(config_map, sort_keys=False),
    }


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"
