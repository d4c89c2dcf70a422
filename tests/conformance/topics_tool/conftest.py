"""The real tools of both releases, and ours."""

from collections.abc import Callable

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from tests.conformance.kafka_tools import TOPICS, KafkaTool, KafkaTools, OurCommand


@pytest.fixture(scope="session", params=[pytest.param("3.9.1", marks=pytest.mark.nightly), "4.3.0"])
def tool(request: pytest.FixtureRequest, tools_of: Callable[[str], KafkaTools]) -> KafkaTool:
    """``kafka-topics`` of each release in turn."""
    return tools_of(request.param).tool(TOPICS)


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> OurCommand:
    """``featurewatch topics``."""
    return OurCommand(monkeypatch, capsys, "topics")


@pytest.fixture
def cluster(quorum_of: Callable[[str], Cluster], tool: KafkaTool) -> Cluster:
    """The shared cluster of the tool's release."""
    return quorum_of(tool.release)
