"""The options that name a cluster, for the commands of all of Kafka's tools."""

from collections.abc import Callable
from typing import Any, Final

from featurewatch.cli.config.cluster_options import (
    Compat,
    CompatOption,
    Config,
    Controller,
    Json,
    Server,
    shared_options,
)
from featurewatch.cli.kafka_tools.target import AdminTarget, Tool

BROKERS: Final[dict[str, Any]] = {
    "bootstrap_server": Server,
    "command_config": Config,
    "as_json": Json,
    "compat": CompatOption,
}
BROKERS_OR_CONTROLLERS: Final[dict[str, Any]] = {"bootstrap_controller": Controller, **BROKERS}


def target_values(tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a target, by the values of such options."""
    return {
        "tool": tool,
        "servers": given["bootstrap_server"] or "",
        "controllers": given.get("bootstrap_controller") or "",
        "command_config": given["command_config"],
        "as_json": bool(given["as_json"]),
        "compat": given.get("compat") or Compat.NEWEST,
        "timeout_s": given.get("timeout"),
    }


def with_target(
    tool: Tool, options: dict[str, Any]
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """A decorator that adds such options to a command, whose first argument is their target."""

    def run(given: dict[str, Any], command: Callable[[AdminTarget], Any]) -> None:
        AdminTarget(**target_values(tool, given)).run(command)

    return shared_options(options, run)
