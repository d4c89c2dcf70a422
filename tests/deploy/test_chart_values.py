"""The chart's values and generated files, which are checked where helm is missing, too."""

import json
import re
import runpy
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema_rs
import pytest
import trustme
import yaml

from featurewatch.cli.config.settings import WebSection, load
from featurewatch.streams.health import HealthServer, source_views
from scripts.generators.chart import CHART, CHART_DECIDES, SCHEMA
from tests.deploy.chart import VALUES, merged_values, read_yaml
from tests.paths import ROOT

PORTS = {
    "watch": WebSection().source_port,
    "worker": WebSection().worker_port,
    "web": WebSection().page_port,
    "notify": WebSection().notify_port,
}


def refusals(values: dict[str, Any]) -> list[str]:
    """The places that the chart's schema refuses, as paths with slashes."""
    validator = jsonschema_rs.Draft7Validator(json.loads(SCHEMA.read_text()))
    errors = sorted(validator.iter_errors(values), key=str)
    return [f"{'/'.join(map(str, error.instance_path))}: {error.message}" for error in errors]


def with_value(path: str, value: object) -> dict[str, Any]:
    """The values of the minimal file with one more."""
    values = merged_values(VALUES["minimal"])
    *sections, name = path.split("/")
    place: Any = values
    for section in sections:
        place = place[int(section)] if section.isdigit() else place.setdefault(section, {})
    place[name] = value
    return values


def test_the_schema_is_one() -> None:
    """It is a schema of draft 7, and the chart's own values are good."""
    schema = json.loads(SCHEMA.read_text())
    assert jsonschema_rs.validator_cls_for(schema) is jsonschema_rs.Draft7Validator
    jsonschema_rs.meta.validate(schema)
    assert refusals(read_yaml(CHART / "values.yaml")) == []


@pytest.mark.parametrize("name", VALUES)
def test_the_schema_accepts_values(name: str) -> None:
    """Every values file of the tests is accepted."""
    assert refusals(merged_values(VALUES[name])) == []


@pytest.mark.parametrize("name", VALUES)
def test_the_product_accepts_the_settings(name: str, tmp_path: Path) -> None:
    """The values below `config` are a configuration file of featurewatch."""
    file = tmp_path / "featurewatch.yaml"
    config = merged_values(VALUES[name])["config"]
    file.write_text(yaml.safe_dump(config))
    assert load(file).bus.bootstrap_servers == config["bus"]["bootstrap_servers"]


@pytest.mark.parametrize(
    ("path", "value", "place", "reason"),
    [
        ("worker/replicas", 0, "worker/replicas", "minimum"),
        ("watch/replicas", 2, "watch", "replicas"),
        ("web/replica", 2, "web", "replica"),
        ("serviceMonitor/honorLabel", True, "serviceMonitor", "honorLabel"),
        ("replicas", 2, "", "replicas"),
        ("secrets", ["kafka"], "secrets/0", "object"),
        ("secrets", [{"name": "kafka", "processes": ["wach"]}], "secrets/0/processes/0", "wach"),
        ("config/bus/bootstrap_server", "kafka:9092", "config/bus", "bootstrap_server"),
        ("config/clusters/0/server", "kafka:9092", "config/clusters/0", "server"),
        ("config/worker/max_series", 0, "config/worker/max_series", "minimum"),
        ("config/worker/id", "one", "config/worker", "id"),
        ("config/web/page_port", 80, "config/web", "page_port"),
        ("config/notify/webhooks", [{"name": "a"}], "config/notify/webhooks/0", "required"),
    ],
)
def test_the_schema_refuses(path: str, value: object, place: str, reason: str) -> None:
    """A typo or a value out of its range is refused, with the path to it."""
    (refusal, *_) = refusals(with_value(path, value))
    assert refusal.startswith(f"{place}: ")
    assert reason in refusal


def documented_values() -> list[str]:
    """The examples of values in the section about Helm."""
    page = (ROOT / "docs/how-to/install.md").read_text()
    section = page.partition("## Kubernetes, with Helm\n")[2].partition("\n## ")[0]
    return re.findall(r"^```yaml\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", documented_values())
def test_the_examples_in_the_documents_are_accepted(text: str, tmp_path: Path) -> None:
    """The chart takes the values, and featurewatch what they have below `config`."""
    file = tmp_path / "values.yaml"
    file.write_text(text)
    values = merged_values(file)
    assert refusals(values) == []
    configuration = tmp_path / "featurewatch.yaml"
    configuration.write_text(yaml.safe_dump(values["config"]))
    assert load(configuration)


def test_what_the_chart_decides_is_a_setting() -> None:
    """The settings that values may not have exist, and the others of their sections are there."""
    definitions = json.loads(SCHEMA.read_text())["definitions"]
    assert CHART_DECIDES.keys() <= definitions.keys()
    assert "page_without_login" in definitions["WebSection"]["properties"]
    assert "store" in definitions["WorkerSection"]["properties"]


@pytest.mark.parametrize("process", PORTS)
def test_ports_are_the_defaults(process: str) -> None:
    """Each process listens on the port that featurewatch takes where none is set."""
    template = (CHART / "templates" / f"{process}.yaml").read_text()
    assert re.findall(r'"port" (\d+)', template) == [str(PORTS[process])]
    services = (CHART / "templates" / "services.yaml").read_text()
    if process != "web":
        assert f'"{process}" {PORTS[process]}' in services


def test_no_other_port_is_named() -> None:
    """Policies, notes and the image have the same ports."""
    texts = [file.read_text() for file in (CHART / "templates").rglob("*.*")]
    texts.append((ROOT / "deploy/image/Containerfile").read_text())
    ports = {int(port) for text in texts for port in re.findall(r"\b9[5-9]\d\d\b", text)}
    assert ports == set(PORTS.values())


async def test_probes_ask_for_what_is_served() -> None:
    """The paths of probes and monitor are served; without a source a process is not ready."""
    pod = (CHART / "templates" / "_pod.tpl").read_text()
    probed = set(re.findall(r"path: (/\w+)", pod))
    monitor = (CHART / "templates" / "servicemonitor.yaml").read_text()
    probed.update(re.findall(r"path: (/\w+)", monitor))
    statuses = {}
    async with (
        HealthServer(source_views(list), port=0) as server,
        aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as client,
    ):
        for path in probed:
            async with client.get(path) as response:
                statuses[path] = response.status
    assert statuses == {"/healthz": 200, "/readyz": 503, "/metrics": 200}


class _Answers(BaseHTTPRequestHandler):
    """Answers 200 to one path, and 503 with a reason to the others."""

    def do_GET(self) -> None:
        """A request."""
        self.send_response(200 if self.path == "/readyz" else 503)
        self.end_headers()
        self.wfile.write(b"the bus is unreachable")

    def log_message(self, *arguments: object) -> None:
        """Nothing is logged."""


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("path", "code", "text"), [("/readyz", 0, "ready"), ("/other", 1, "the bus is unreachable")]
)
def test_the_test_pod_fails_where_a_process_is_not_ready(
    path: str, code: int, text: str, scheme: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its program ends with 1 unless every address answers with 200, and prints the reason."""
    main = runpy.run_path(str(CHART / "files/ready.py"))["main"]
    server = HTTPServer(("127.0.0.1", 0), _Answers)
    if scheme == "https":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("another.example").configure_cert(context)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        ready = f"{scheme}://127.0.0.1:{server.server_port}/readyz"
        address = f"{scheme}://127.0.0.1:{server.server_port}{path}"
        assert main([ready, address], attempts=1) == code
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert capsys.readouterr().out == f"{ready}: ready\n{address}: {text}\n"


def test_the_test_pod_fails_where_nobody_listens() -> None:
    """An address that refuses connections is not ready."""
    main = runpy.run_path(str(CHART / "files/ready.py"))["main"]
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert main([f"http://127.0.0.1:{bound.getsockname()[1]}/readyz"], attempts=1) == 1


def test_the_versions_are_those_of_the_project() -> None:
    """Chart, application and image have the project's version."""
    (version,) = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    chart = read_yaml(CHART / "Chart.yaml")
    assert (chart["apiVersion"], chart["version"], chart["appVersion"]) == ("v2", version, version)
    image = (ROOT / "deploy/image/Containerfile").read_text()
    assert f'org.opencontainers.image.version="{version}"' in image
