"""Reads the names of a cluster, for completion."""

import asyncio
from collections.abc import Iterator
from typing import Final

from featurewatch.admin.cluster.reader import ClusterReader
from featurewatch.admin.connections import AdminConnections, Bootstrap
from featurewatch.admin.features.metadata import FeatureMetadata
from featurewatch.admin.features.reader import FeatureReader
from featurewatch.cli.commands.shell.cluster_names import (
    ClusterNames,
    FeatureLevels,
    bounded_names,
)
from featurewatch.cli.commands.shell.target import ShellTarget
from featurewatch.cli.config.client_config import read_client_config
from featurewatch.kafka.address import parse_addresses
from featurewatch.kafka.connection import CLIENT_ID

TIMEOUT_S: Final = 20.0
_CONNECT_TIMEOUT_S: Final = 5.0


async def read_names(target: ShellTarget) -> ClusterNames:
    """The names that a cluster has now; through controllers only those of features.

    Raises:
        AdminError: No node responds.
        TimeoutError: It took longer than `TIMEOUT_S`.
        UsageError: The properties file has become unreadable.
    """
    async with asyncio.timeout(TIMEOUT_S):
        return await _read(target)


async def _read(target: ShellTarget) -> ClusterNames:
    config = read_client_config(target.command_config)
    bootstrap = Bootstrap(
        parse_addresses(target.addresses),
        controllers=not target.servers,
        security=config.security,
        client_id=config.network.client_id or CLIENT_ID,
    )
    connections = AdminConnections(bootstrap, _CONNECT_TIMEOUT_S)
    try:
        reader = FeatureReader(bootstrap, timeout_s=TIMEOUT_S, connections=connections)
        features = await reader.describe()
        if bootstrap.controllers:
            return bounded_names((), (), _levels(features))
        cluster = ClusterReader(bootstrap, timeout_s=TIMEOUT_S, connections=connections)
        overview = await cluster.overview()
    finally:
        await connections.close()
    return bounded_names(
        (topic.name for topic in overview.topics),
        ((broker.node_id, f"{broker.host}:{broker.port}") for broker in overview.cluster.brokers),
        _levels(features),
    )


def _levels(metadata: FeatureMetadata) -> Iterator[FeatureLevels]:
    for name, (lowest, highest) in metadata.supported.items():
        yield FeatureLevels(name, lowest, highest, metadata.finalized.get(name))
