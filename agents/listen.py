"""What the agents have in common: bytes of one topic, one at a time, to the desk."""

from typing import Any

from agents.desk import Desk
from agents.durable import DurableApp
from streams.topics import Topic


def listen(app: DurableApp, topic: Topic, full_name: str, desk: Desk, table: Any) -> None:
    """Registers the agent of an input topic.

    Concurrency is 1: with more, Faust commits past messages that are still being worked on.
    """
    channel = app.topic(
        full_name,
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
    )

    async def take(stream: Any) -> None:
        async for event in stream.events():
            await desk.take(topic, event, table)

    app.agent(channel, name=f"agents.{topic.short_name}", concurrency=1)(take)
