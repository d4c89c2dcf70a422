"""The agent of ``featurewatch.zookeeper``."""

from typing import Any

from agents.desk import Desk
from agents.durable import DurableApp
from agents.listen import channel
from streams.topics import ZOOKEEPER


def register(app: DurableApp, desk: Desk, table: Any, full_name: str) -> None:
    """Registers the agent; ``full_name`` is the topic's."""

    async def zookeeper(stream: Any) -> None:
        async for event in stream.events():
            await desk.take(ZOOKEEPER, event, table)

    # Concurrency is 1: with more, Faust commits past messages that are still being worked on.
    app.agent(channel(app, full_name), concurrency=1)(zookeeper)
