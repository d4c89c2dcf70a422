"""``featurewatch state``, ``changes``, ``operations`` and ``epochs``: what output topics hold."""

from collections.abc import Callable, Mapping
from functools import partial

import click

from featurewatch.cli.app import SUMMARIES
from featurewatch.cli.command_line import Exit, command
from featurewatch.cli.config.options import (
    AsJson,
    BusServers,
    ConfigFile,
    Follow,
    OnlyCluster,
    Prefix,
)
from featurewatch.cli.errors import ExitCode


def _printers() -> Mapping[str, Callable[..., bool | None]]:
    """The functions that print each topic; they return False if nothing is known."""
    # Here, so that help needs no codecs and no tables.
    from featurewatch.cli.output.rendering import change_line, operation_line, snapshot_line
    from featurewatch.cli.output.state_view import print_state
    from featurewatch.cli.output.topic_printer import print_topic
    from featurewatch.streams.codec.outputs import decode_change, decode_operation, decode_snapshot
    from featurewatch.streams.topics import EPOCHS, FEATURE_CHANGES, OPERATIONS

    return {
        "state": print_state,
        "changes": partial(
            print_topic,
            topic=FEATURE_CHANGES,
            decode=decode_change,
            line=change_line,
            order=lambda change: (change.append_ms, change.revision),
        ),
        "operations": partial(
            print_topic,
            topic=OPERATIONS,
            decode=decode_operation,
            line=operation_line,
            order=lambda step: (step.append_ms, step.cluster, step.offset),
        ),
        "epochs": partial(
            print_topic,
            topic=EPOCHS,
            decode=decode_snapshot,
            line=snapshot_line,
            order=lambda snapshot: (snapshot.at_ms, snapshot.revision),
        ),
    }


def _command(name: str, more: str = "") -> click.Command:
    """The command that prints a topic; its help is its summary and ``more``."""

    def show(
        config: ConfigFile = None,
        bus: BusServers = "",
        prefix: Prefix = "",
        cluster: OnlyCluster = "",
        follow: Follow = False,
        as_json: AsJson = False,
    ) -> None:
        from featurewatch.cli.config.bus import load_bus

        settings = load_bus(config, bus, prefix)
        if cluster:
            from featurewatch.cli.output.cluster_lookup import find_cluster

            cluster = find_cluster(settings, cluster)
        known = _printers()[name](settings, cluster=cluster, follow=follow, as_json=as_json)
        if known is False:
            raise Exit(ExitCode.UNKNOWN)

    show.__doc__ = f"{SUMMARIES[name]}\n\n{more}"
    return command(name)(show)


state = _command("state", "Exits with 4 if nothing is known of any cluster.")
changes = _command("changes")
operations = _command(
    "operations",
    "They are published while `watch` and `worker`, or `up`, run with --operations.",
)
epochs = _command("epochs")
