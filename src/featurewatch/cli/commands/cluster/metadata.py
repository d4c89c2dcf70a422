"""``featurewatch cluster metadata``: the cluster's id, its brokers and its controller (KIP-4)."""

import json
from typing import TYPE_CHECKING

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.topics.common.options import with_topic_target
from featurewatch.cli.kafka_tools.target import AdminTarget
from featurewatch.cli.output.terminal import print_json_text, print_line

if TYPE_CHECKING:
    from featurewatch.admin.cluster.values import ClusterMetadata


@command()
@with_topic_target
async def metadata(target: AdminTarget) -> None:
    """Show the cluster's id, its brokers and its controller.

    In KRaft mode, brokers name one of themselves as the controller, which forwards changes.
    """
    # Here, so that help needs no client.
    from featurewatch.admin.cluster.reader import ClusterReader
    from featurewatch.cli.commands.topics.common.selection import check_server

    check_server(target)
    if target.is_kip_4:
        cluster = await _by_draft(target)
    else:
        async with target.connect(ClusterReader) as client:
            cluster = await client.cluster()
    if target.as_json:
        print_json_text(
            json.dumps(
                {
                    "cluster_id": cluster.cluster_id,
                    "controller_id": cluster.controller_id,
                    "brokers": [broker._asdict() for broker in cluster.brokers],
                },
                ensure_ascii=False,
            )
        )
        return
    _print(cluster)


async def _by_draft(target: AdminTarget) -> "ClusterMetadata":
    """The brokers and the controller by KIP-4's draft, which has no cluster id."""
    from featurewatch.admin.cluster.values import BrokerNode, ClusterMetadata
    from featurewatch.streams.types import NodeId

    async with target.connect_kip_4() as client:
        await client.update_cluster_metadata()
        cached = client.cluster
    assert cached is not None  # noqa: S101 - it was just read
    brokers = tuple(
        BrokerNode(NodeId(node_id), address.host, address.port, None)
        for node_id, address in sorted(cached.brokers.items())
    )
    controller = next((one.node_id for one in brokers if one.address == cached.controller), None)
    return ClusterMetadata(None, controller, brokers)


def _print(cluster: "ClusterMetadata") -> None:
    print_line(f"Cluster: {cluster.cluster_id or 'none'}")
    print_line(f"Controller: {'none' if cluster.controller_id is None else cluster.controller_id}")
    for broker in cluster.brokers:
        rack = "" if broker.rack is None else f"\tRack: {broker.rack}"
        print_line(f"Broker: {broker.node_id}\tAddress: {broker.host}:{broker.port}{rack}")
