"""The Faust agents: one for each input topic, which passes its messages to the processor."""

from typing import Any

from featurewatch.agents.at_least_once import AtLeastOnceApp
from featurewatch.agents.processor import EventProcessor
from featurewatch.streams.topics import Topic


def register_agent(
    app: AtLeastOnceApp, processor: EventProcessor, topic: Topic, full_name: str, table: Any
) -> None:
    """Registers the agent of an input topic; ``full_name`` is the topic's, with its prefix.

    The agent reads raw bytes, since the processor does the decoding.
    """

    async def agent(stream: Any) -> None:
        async for event in stream.events():
            await processor.process(topic, event, table)

    source = app.topic(
        full_name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
    )
    # Faust keeps agents by name. Concurrency is 1: with more, Faust commits past messages that are
    # still being processed.
    app.agent(source, name=topic.short_name, concurrency=1)(agent)
