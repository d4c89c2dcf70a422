"""The real tools of both releases, and ours."""

from collections.abc import Iterator

import pytest

from featurewatch.deploy.java.jars import Cache
from tests.conformance.features_tool.kafka_features import (
    FeaturesCommand,
    KafkaFeatures,
    kafka_features,
)


@pytest.fixture(scope="session", params=["3.9.1", "4.3.0"])
def tool(
    request: pytest.FixtureRequest, stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaFeatures]:
    """``kafka-features`` of each release in turn."""
    directory = tmp_path_factory.mktemp(f"tool-{request.param}")
    with kafka_features(request.param, stack_cache, directory) as running:
        yield running


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> FeaturesCommand:
    """``featurewatch features``."""
    return FeaturesCommand(monkeypatch, capsys)
