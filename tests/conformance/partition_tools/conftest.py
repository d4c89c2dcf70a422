"""The real tools of both releases, a cluster of the same release, and our commands."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from tests.conformance.kafka_tools import COMPAT, KafkaTools, OurCommand
from tests.conformance.partition_tools.tools import PartitionTools


class ToolScene(NamedTuple):
    """The tools of a release and a cluster of it."""

    tools: PartitionTools
    cluster: Cluster

    @property
    def servers(self) -> str:
        """The brokers."""
        return self.cluster.bootstrap_servers

    @property
    def compat(self) -> tuple[str, str]:
        """The option of our commands for the release."""
        return ("--compat", COMPAT[self.tools.release])


ZOOKEEPER = "3.9.1-zookeeper"


@pytest.fixture(
    scope="session",
    params=[pytest.param("3.9.1", marks=pytest.mark.nightly), "4.3.0", ZOOKEEPER],
)
def scene(
    request: pytest.FixtureRequest,
    tools_of: Callable[[str], KafkaTools],
    quorum_of: Callable[[str], Cluster],
) -> ToolScene:
    """Each release in turn, and the older one in ZooKeeper mode."""
    release, _, mode = request.param.partition("-")
    if mode:
        cluster: Cluster = request.getfixturevalue("zookeeper_391")
    else:
        cluster = quorum_of(release)
    return ToolScene(PartitionTools(tools_of(release)), cluster)


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> OurCommand:
    """``featurewatch``."""
    return OurCommand(monkeypatch, capsys, None)
