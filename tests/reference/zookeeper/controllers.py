"""Waits for the controller of a reference cluster in this process."""

import asyncio

from featurewatch.reference.zookeeper.cluster import ReferenceCluster
from featurewatch.reference.zookeeper.node import ReferenceNode


async def wait_controller(cluster: ReferenceCluster, timeout_s: float = 30.0) -> ReferenceNode:
    """The active controller among the full nodes; `TimeoutError` if none is active in time."""
    async with asyncio.timeout(timeout_s):
        while True:
            for node in cluster.nodes:
                if node.is_controller:
                    return node
            await asyncio.sleep(0.005)
