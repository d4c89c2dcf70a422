"""The compose file: its schema, how little its services may do, and that the product takes it."""

import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from featurewatch.cli.config.settings import Settings, WebSection, load
from featurewatch.cli.config.values import ENVIRONMENT
from tests.deploy.chart import read_yaml
from tests.paths import ROOT

DIRECTORY = ROOT / "deploy/compose"
FILE = DIRECTORY / "compose.yaml"
PORTS = {
    "watch": WebSection().source_port,
    "worker": WebSection().worker_port,
    "web": WebSection().page_port,
    "notify": WebSection().notify_port,
}


def services() -> dict[str, dict[str, Any]]:
    """The services of featurewatch."""
    return {name: read_yaml(FILE)["services"][name] for name in PORTS}


def refusals(content: object) -> list[str]:
    """What Compose's own schema refuses.

    The package that has it is not imported: its newest release needs a newer click than we do.
    """
    package = find_spec("check_jsonschema")
    assert package is not None
    assert package.origin is not None
    file = Path(package.origin).parent / "builtin_schemas/vendor/compose-spec.json"
    validator = jsonschema_rs.Draft202012Validator(json.loads(file.read_text()))
    return [error.message for error in validator.iter_errors(content)]


def test_compose_accepts_the_file() -> None:
    """It follows the schema, which finds a typo."""
    content = read_yaml(FILE)
    assert refusals(content) == []
    content["services"]["watch"]["readonly"] = content["services"]["watch"].pop("read_only")
    (refusal,) = refusals(content)
    assert "readonly" in refusal


@pytest.mark.parametrize("name", PORTS)
def test_services_may_do_little(name: str) -> None:
    """They write to memory only, have no capability, and are reached from this machine only."""
    service = services()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {mount.partition(":")[0] for mount in service["tmpfs"]} == {
        "/tmp",
        "/var/lib/featurewatch",
    }
    assert all(volume.endswith(":ro") for volume in service["volumes"])
    assert "privileged" not in service
    assert service["ports"] == [f"127.0.0.1:{PORTS[name]}:{PORTS[name]}"]
    assert service["command"] == [name]
    assert service["healthcheck"]["test"][-1] == f"http://127.0.0.1:{PORTS[name]}/healthz"


def test_the_bus_is_a_kafka_by_name_and_version() -> None:
    """The official image; its clients get the address that the configuration names."""
    kafka = read_yaml(FILE)["services"]["kafka"]
    assert re.fullmatch(r"apache/kafka:\d+\.\d+\.\d+", kafka["image"])
    servers = load(DIRECTORY / "featurewatch.yaml").bus.bootstrap_servers
    assert kafka["environment"]["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://{servers}"
    assert "ports" not in kafka


@pytest.fixture
def configuration(monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """The settings of a container: the file where it is mounted, and nothing else."""
    for service in services().values():
        (mount,) = service["volumes"]
        source, target, _ = mount.split(":")
        assert service["environment"] == {f"{ENVIRONMENT}CONFIG": target}
        assert DIRECTORY / source == DIRECTORY / "featurewatch.yaml"
    yield load(DIRECTORY / "featurewatch.yaml")


def test_the_product_accepts_the_configuration(configuration: Settings) -> None:
    """Every process may listen where the ports are published."""
    page = configuration.page_settings()
    assert (page.host, page.port) == ("0.0.0.0", PORTS["web"])  # noqa: S104 - in a container
    web = configuration.web
    assert (web.host, web.source_port, web.worker_port, web.notify_port) == (
        "0.0.0.0",  # noqa: S104 - in a container
        PORTS["watch"],
        PORTS["worker"],
        PORTS["notify"],
    )
    assert configuration.clusters


def test_the_commented_target_is_a_setting(tmp_path: Path) -> None:
    """Without its marks, the example of notifications is accepted."""
    text = (DIRECTORY / "featurewatch.yaml").read_text()
    file = tmp_path / "featurewatch.yaml"
    file.write_text(re.sub(r"^# (notify:|  )", r"\1", text, flags=re.MULTILINE))
    assert yaml.safe_load(file.read_text())["notify"]
    assert load(file).notify.is_configured


def test_a_container_is_made_of_this_tree() -> None:
    """The service builds the image of the repository, under the version that the chart has."""
    chart = read_yaml(ROOT / "deploy/helm/featurewatch/Chart.yaml")
    for service in services().values():
        context = (DIRECTORY / service["build"]["context"]).resolve()
        assert context == ROOT
        assert (context / service["build"]["dockerfile"]).is_file()
        assert service["image"] == f"featurewatch:{chart['appVersion']}"
