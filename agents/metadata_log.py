"""The agent of ``featurewatch.metadata-log``."""

from typing import Any

from agents.desk import EventProcessor
from agents.durable import AtLeastOnceApp
from agents.listen import input_topic
from streams.topics import METADATA_LOG


def register(app: AtLeastOnceApp, desk: EventProcessor, table: Any, full_name: str) -> None:
    """Registers the agent; ``full_name`` is the topic's."""

    async def metadata_log(stream: Any) -> None:
        async for event in stream.events():
            await desk.process(METADATA_LOG, event, table)

    # Concurrency is 1: with more, Faust commits past messages that are still being worked on.
    app.agent(input_topic(app, full_name), concurrency=1)(metadata_log)
