"""``featurewatch retire``: a source will not come back."""

import asyncio
import contextlib
import sys
import time
from typing import Annotated

import typer

from featurewatch.agents.timers import source_status, topic_of_source
from featurewatch.cli.config import options
from featurewatch.cli.config.options import BusServers, ConfigFile, Prefix
from featurewatch.cli.config.settings import load
from featurewatch.cli.errors import UsageError
from featurewatch.cli.output.cluster_states import ClusterStates
from featurewatch.streams.bus import BusSettings, Publisher
from featurewatch.streams.events import SourceState
from featurewatch.streams.source import wall_clock_ms
from featurewatch.streams.types import ClusterId

_TAKEN_S = 15.0


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(retire)


def retire(
    cluster: Annotated[str, typer.Option("--cluster", help="The cluster's id.")],
    source: Annotated[
        str, typer.Option("--source", help="kraft, zookeeper or api-versions, as `state` shows it.")
    ],
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
) -> None:
    """Forget a source that was taken out of the configuration, and what only it told.

    Stop what runs it first: a source that speaks again is taken up again. Of the source that
    levels are taken from the last that was told stays, and the cluster is not ready.
    """
    settings = load(config, bus=options.bus_flags(bus, prefix)).bus_settings()
    with contextlib.closing(ClusterStates(settings, cluster)) as board:
        known = board.snapshots.get(cluster)
        if known is None or source not in known.sources:
            there = ", ".join(sorted(known.sources)) if known else "none"
            raise UsageError(f"cluster {cluster} has no source {source}: it has {there}")
        asyncio.run(_say(settings, ClusterId(cluster), source))
        deadline = time.monotonic() + _TAKEN_S
        while source in board.snapshots[cluster].sources:
            if time.monotonic() > deadline:
                sys.stderr.write(
                    "featurewatch: it is said, and no worker has taken it in yet, or the source "
                    "still runs: look at `featurewatch state`\n"
                )
                return
            for _ in board.poll(0.5):
                pass
    sys.stderr.write(f"featurewatch: {source} of {cluster} is retired\n")


async def _say(settings: BusSettings, cluster: ClusterId, source: str) -> None:
    status = source_status(
        cluster, source, SourceState.RETIRED, "retired by a person", wall_clock_ms()
    )
    async with Publisher(settings) as publisher:
        await (await publisher.publish(topic_of_source(source), status))
