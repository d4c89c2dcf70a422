"""The real tools of both releases, a cluster of the same release, and our commands."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from featurewatch.deploy.java.jars import Cache
from featurewatch.deploy.kafka.cluster import Cluster
from tests.conformance.features_tool.kafka_features import COMPAT
from tests.conformance.partition_tools.tools import OurCommand, PartitionTools, partition_tools


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


@pytest.fixture(scope="session", params=["3.9.1", "4.3.0"])
def scene(
    request: pytest.FixtureRequest, stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ToolScene]:
    """Each release in turn."""
    directory = tmp_path_factory.mktemp(f"partition-tools-{request.param}")
    cluster: Cluster = request.getfixturevalue(f"quorum_{request.param.replace('.', '')}")
    with partition_tools(request.param, stack_cache, directory) as tools:
        yield ToolScene(tools, cluster)


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> OurCommand:
    """``featurewatch``."""
    return OurCommand(monkeypatch, capsys)
