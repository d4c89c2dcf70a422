"""The real tools of both releases, and ours."""

from collections.abc import Callable

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from tests.conformance.kafka_tools import QUORUM, KafkaTool, KafkaTools, OurCommand
from tests.conformance.quorum_tool.pair import QuorumPair


@pytest.fixture(scope="session", params=["3.9.1", "4.3.0"])
def tool(request: pytest.FixtureRequest, tools_of: Callable[[str], KafkaTools]) -> KafkaTool:
    """``kafka-metadata-quorum`` of each release in turn."""
    return tools_of(request.param).tool(QUORUM)


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> OurCommand:
    """``featurewatch quorum``."""
    return OurCommand(monkeypatch, capsys, "quorum")


@pytest.fixture
def pair(tool: KafkaTool, ours: OurCommand) -> QuorumPair:
    """Kafka's tool and ours."""
    return QuorumPair(tool, ours)


@pytest.fixture
def cluster(quorum_of: Callable[[str], Cluster], tool: KafkaTool) -> Cluster:
    """The shared cluster of the tool's release, whose voters are static."""
    return quorum_of(tool.release)
