"""``kafka-topics`` of both releases, and ours."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from featurewatch.deploy.java.jars import Cache
from featurewatch.deploy.kafka.cluster import Cluster
from tests.conformance.features_tool.kafka_features import (
    FeaturesCommand,
    KafkaFeatures,
    kafka_tool,
)

SOURCE = Path(__file__).with_name("java") / "AnyTool.java"


@pytest.fixture(scope="module", params=["3.9.1", "4.3.0"])
def tool(
    request: pytest.FixtureRequest, stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaFeatures]:
    """``kafka-topics`` of each release in turn."""
    directory = tmp_path_factory.mktemp(f"topics-tool-{request.param}")
    main = "org.apache.kafka.tools.TopicCommand"
    with kafka_tool(SOURCE, "AnyTool", request.param, stack_cache, directory, main) as running:
        yield running


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> FeaturesCommand:
    """``featurewatch topics``."""
    return FeaturesCommand(monkeypatch, capsys, "topics")


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tool: KafkaFeatures) -> Cluster:
    """The shared cluster of the tool's release."""
    shared: Cluster = request.getfixturevalue(f"quorum_{tool.release.replace('.', '')}")
    return shared
