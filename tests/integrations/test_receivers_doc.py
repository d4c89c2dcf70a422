"""The recipes in receivers.md: Alertmanager accepts them, and they use what alerts have."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from featurewatch.integrations.alert_kinds import alert_name
from featurewatch.integrations.notify.alert_labels import (
    WATCHDOG,
    AlertLinks,
    firing_document,
    labels_of,
)
from featurewatch.monitor.rules import RULES
from tests.integrations.tools import alertmanager_templates, tool
from tests.paths import ROOT
from tests.web.samples import NOW_MS, alert_of

TEXT = (ROOT / "docs" / "how-to" / "receivers.md").read_text()
RECIPES = dict(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?```yaml\n(.*?)```", TEXT, re.M | re.S))
LINKS = AlertLinks("https://runbooks", "https://page/", {"a-cluster": "orders"})
ALERT = alert_of(evidence={"range": [1, 7]})
SENT = firing_document(ALERT, labels_of(ALERT, LINKS), LINKS, NOW_MS, 30_000)


def run(*command: str) -> str:
    """The output of a command that succeeds."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def recipe(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A recipe as a file."""
    file = tmp_path / "alertmanager.yml"
    file.write_text(RECIPES[request.param])
    return file


def templates(value: Any) -> Iterator[str]:
    """Every text of a configuration that is a template."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from templates(item)
    elif isinstance(value, str) and "{{" in value:
        yield value


def test_each_receiver_has_a_recipe() -> None:
    """The page has those that people ask for, each with the grouping that it recommends."""
    kinds = {
        kind
        for text in RECIPES.values()
        for receiver in yaml.safe_load(text)["receivers"]
        for kind in receiver.keys() - {"name"}
    }
    assert kinds >= {"email_configs", "slack_configs", "pagerduty_configs", "webhook_configs"}
    for text in RECIPES.values():
        assert yaml.safe_load(text)["route"]["group_by"] == ["kafka_cluster", "alertname"]
    assert TEXT.count("```yaml") == len(RECIPES) == 5


@pytest.mark.parametrize("recipe", RECIPES, indirect=True)
def test_alertmanager_accepts_a_recipe(recipe: Path) -> None:
    """As printed in the document."""
    assert "SUCCESS" in run(tool("amtool"), "check-config", str(recipe))


@pytest.mark.parametrize("name", RECIPES)
def test_templates_use_what_alerts_have(name: str) -> None:
    """No label and no annotation that is never sent: it would be an empty text."""
    for text in templates(yaml.safe_load(RECIPES[name])):
        for kind, key in re.findall(r"\.(?:Common|Group)?(Labels|Annotations)\.(\w+)", text):
            assert key in SENT[kind.lower()], text


@pytest.mark.parametrize("name", RECIPES)
def test_templates_render(name: str, tmp_path: Path) -> None:
    """Each gives a text of an alert as it is sent, for which they need neither default nor luck."""
    amtool = tool("amtool")
    labels, annotations = SENT["labels"], SENT["annotations"]
    alert = {
        "status": "firing",
        "labels": labels,
        "annotations": annotations,
        "startsAt": SENT["startsAt"],
        "endsAt": SENT["endsAt"],
        "generatorURL": "",
        "fingerprint": "0",
    }
    data = {
        "receiver": "people",
        "status": "firing",
        "alerts": [alert, alert],
        "groupLabels": {name: labels[name] for name in ("kafka_cluster", "alertname")},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "",
    }
    file = tmp_path / "data.json"
    file.write_bytes(orjson.dumps(data))
    glob = alertmanager_templates() / "*.tmpl"
    for text in templates(yaml.safe_load(RECIPES[name])):
        arguments = [f"--template.glob={glob}", f"--template.text={text}"]
        shown = run(amtool, "template", "render", *arguments, f"--template.data={file}")
        assert shown.strip(), text
        assert "<no value>" not in shown


ROUTES = re.findall(r"(\S+=\S+) -> (\w+)", (re.findall("<!-- routes: (.*?) -->", TEXT) or [""])[0])


@pytest.mark.parametrize("recipe", ["Which alert goes where"], indirect=True)
def test_alerts_take_their_routes(recipe: Path) -> None:
    """Of every rule of the controller, and the watchdog."""
    amtool = tool("amtool")

    def receiver(*labels: str) -> str:
        test = ("config", "routes", "test", f"--config.file={recipe}")
        return run(amtool, *test, *labels).strip()

    assert len(ROUTES) == 3
    for label, expected in ROUTES:
        assert receiver(label) == expected
    for rule in RULES[::8]:
        assert receiver("severity=critical", f"alertname={alert_name(rule.name)}") == "pager"
    assert receiver("severity=none", f"alertname={WATCHDOG}") == "watchdog"
