"""The files of the Helm chart that follow from the code.

They are the alerting rules, the dashboards, and the part of ``values.schema.json`` that describes
featurewatch's own configuration. The rest of that file is written by hand and stays as it is.
"""

import json
from typing import Any, Final

from featurewatch.cli.config.settings import Settings
from featurewatch.integrations.grafana.files import dashboard_files
from featurewatch.integrations.prometheus.files import RulesFormat, rules_file
from scripts.generators import ROOT, Texts

CHART: Final = ROOT / "deploy" / "helm" / "featurewatch"
SCHEMA: Final = CHART / "values.schema.json"

CHART_DECIDES: Final = {
    "WebSection": {
        "host",
        "source_port",
        "worker_port",
        "page_host",
        "page_port",
        "notify_port",
    },
    "WorkerSection": {"id", "data_directory"},
    "ReleasesSection": {"directory"},
}
"""Settings that the chart makes, by section: values may not have them."""

_NO_CONSTRAINTS: Final = frozenset({"title", "default", "format"})


def chart_files() -> Texts:
    """Yields the rules, the dashboards and the schema of the values."""
    name, rules = rules_file(RulesFormat.PROMETHEUS)
    yield CHART / "files" / name, rules
    for path, text in dashboard_files().items():
        if path.startswith("dashboards/"):
            yield CHART / "files" / path, text
    yield SCHEMA, _values_schema()


def _values_schema() -> str:
    """The schema of the values, with that of the settings as ``config``."""
    schema = json.loads(SCHEMA.read_text())
    settings = _without_notes(Settings.model_json_schema(ref_template="#/definitions/{model}"))
    definitions = settings.pop("$defs")
    for section, names in CHART_DECIDES.items():
        for name in names:
            del definitions[section]["properties"][name]
    definitions["BusSection"]["required"] = ["bootstrap_servers"]
    settings["required"] = ["bus"]
    schema["properties"]["config"] = settings
    schema["definitions"] = definitions
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _without_notes(node: Any) -> Any:
    """A schema without what constrains nothing, but for descriptions."""
    if isinstance(node, list):
        return [_without_notes(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: (
            {name: _without_notes(schema) for name, schema in value.items()}
            if key in ("properties", "$defs")
            else _without_notes(value)
        )
        for key, value in node.items()
        if key not in _NO_CONSTRAINTS
    }
