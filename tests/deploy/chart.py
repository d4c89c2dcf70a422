"""The Helm chart, its values, and what helm makes of them where it is installed."""

import copy
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from featurewatch.cli.config.settings import Settings, load
from featurewatch.kafka.releases.directory import VARIABLE
from scripts.generators.chart import CHART
from tests.integrations.tools import tool

VALUES = {file.stem: file for file in sorted((Path(__file__).parent / "values").glob("*.yaml"))}
"""The values files of the tests by their names."""

KUBERNETES = ("1.25", "1.37")
"""The oldest version that the chart takes, and the newest whose schemas are here."""


def check_with_kubernetes(manifest: dict[str, Any]) -> None:
    """Raises an error if `KUBERNETES`, oldest or newest, does not accept a manifest.

    A field that its schema does not know is not accepted.
    """
    import kubernetes_validate  # takes 2 s, in each worker that collects tests

    for version in KUBERNETES:
        kubernetes_validate.validate(manifest, version, strict=True)


def merged_values(file: Path) -> dict[str, Any]:
    """The values as helm sees them: those of a file over those of the chart."""
    return _merged(read_yaml(CHART / "values.yaml"), read_yaml(file))


def read_yaml(file: Path) -> Any:
    """The one document of a file."""
    return yaml.safe_load(file.read_text())


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = _merged(result[key], value) if both else value
    return result


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs helm; the test is skipped where it is missing."""
    command = [tool("helm"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def template(values: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Renders the chart as the release `release`."""
    version = f"{KUBERNETES[-1]}.0"
    options = ("--namespace", "monitoring", "--kube-version", version, "--values", values)
    return helm("template", "release", CHART, *options, *arguments)


def rendered(name: str) -> list[dict[str, Any]]:
    """The manifests that the chart makes of a values file of the tests."""
    return copy.deepcopy(_rendered(name))


@cache
def _rendered(name: str) -> list[dict[str, Any]]:
    done = template(VALUES[name])
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def of_kind(documents: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The manifests of one kind."""
    return [document for document in documents if document["kind"] == kind]


def pods(documents: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The process (or `test`) and the specification of every pod."""
    for document in documents:
        if document["kind"] == "Pod":
            yield document["metadata"]["labels"]["app.kubernetes.io/component"], document["spec"]
        elif document["kind"] in ("Deployment", "StatefulSet"):
            pod = document["spec"]["template"]
            yield pod["metadata"]["labels"]["app.kubernetes.io/component"], pod["spec"]


def settings_of(documents: list[dict[str, Any]], directory: Path) -> Settings:
    """The configuration file of the release, as featurewatch reads it."""
    (text,) = [
        document["data"]["featurewatch.yaml"]
        for document in of_kind(documents, "ConfigMap")
        if "featurewatch.yaml" in document["data"]
    ]
    file = directory / "featurewatch.yaml"
    file.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        # A process that starts with this file takes the directory from it (`choose_releases_of`).
        if releases := yaml.safe_load(text).get("releases"):
            patch.setenv(VARIABLE, releases["directory"])
        return load(file)
