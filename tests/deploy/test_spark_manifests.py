"""The pipeline's manifests: Kubernetes accepts them, and their pods have few rights."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.chart import check_with_kubernetes
from tests.paths import ROOT

FILES = sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))


def documents(file: Path) -> list[dict[str, Any]]:
    """The manifests of a file."""
    return [document for document in yaml.safe_load_all(file.read_text()) if document]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_kubernetes_accepts_the_manifests(file: Path) -> None:
    """Every manifest follows Kubernetes' schema, oldest and newest, without unknown fields."""
    for document in documents(file):
        check_with_kubernetes(document)


def pods() -> list[dict[str, Any]]:
    """The specifications of the driver's and the audit's pods."""
    (deployment,) = [
        document
        for document in documents(ROOT / "deploy/kubernetes/spark-pipeline.yaml")
        if document["kind"] == "Deployment"
    ]
    (job,) = documents(ROOT / "deploy/kubernetes/spark-audit.yaml")
    return [
        deployment["spec"]["template"]["spec"],
        job["spec"]["jobTemplate"]["spec"]["template"]["spec"],
    ]


def test_the_pods_run_without_rights() -> None:
    """As Spark's own user, by its number, and only the driver has a token of the API server."""
    driver, audit = pods()
    for pod in (driver, audit):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 185
        (container,) = pod["containers"]
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert driver["serviceAccountName"] == "featurewatch-spark"
    assert audit["automountServiceAccountToken"] is False
    image = (ROOT / "deploy/kubernetes/spark.Dockerfile").read_text()
    assert image.rstrip().endswith("USER 185")
