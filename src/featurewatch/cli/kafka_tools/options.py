"""The options that name a cluster, for the commands of all of Kafka's tools."""

from collections.abc import Callable
from typing import Any, Final

from featurewatch.cli.config.cluster_options import (
    AdminDialect,
    AdminDialectOption,
    Compat,
    CompatOption,
    Config,
    Controller,
    Json,
    Server,
    shared_options,
)
from featurewatch.cli.errors import UsageError
from featurewatch.cli.kafka_tools.target import KIP_4, AdminTarget, Tool

BROKERS: Final[dict[str, Any]] = {
    "bootstrap_server": Server,
    "command_config": Config,
    "as_json": Json,
    "compat": CompatOption,
}
BROKERS_OF_DIALECT: Final[dict[str, Any]] = {**BROKERS, "dialect": AdminDialectOption}
BROKERS_OR_CONTROLLERS: Final[dict[str, Any]] = {
    "bootstrap_controller": Controller,
    **BROKERS_OF_DIALECT,
}


def target_values(tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a target, by the values of such options.

    Raises:
        UsageError: The texts of a release are asked for, and the draft of KIP-4 has none.
    """
    is_kip_4 = given.get("dialect") is AdminDialect.KIP_4
    if is_kip_4 and given.get("compat") is not None:
        raise UsageError("--compat is for released Kafka: leave it out with --dialect kip-4")
    return {
        "tool": KIP_4 if is_kip_4 else tool,
        "is_kip_4": is_kip_4,
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
