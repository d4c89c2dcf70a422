"""``featurewatch readiness``: can a cluster be upgraded, and is there a way back."""

import contextlib
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Final

import typer

from featurewatch.cli.commands.readiness.rendering import view
from featurewatch.cli.config import options
from featurewatch.cli.config.options import (
    AsJson,
    BusServers,
    ClusterIdOption,
    CommandConfig,
    ConfigFile,
    LogDirectory,
    OnlyCluster,
    Prefix,
    Zookeeper,
    ZookeeperConfig,
)
from featurewatch.cli.config.settings import Settings, load
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output import rendering
from featurewatch.cli.output.topic_reader import TopicReader
from featurewatch.cli.runtime.cluster_image import ClusterNotReadError, read_image
from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft.releases import (
    Release,
    UnknownReleaseError,
    production_levels,
    release_of,
)
from featurewatch.controller.monitor import MonitorState
from featurewatch.controller.readiness import ReadinessReport, assess_readiness
from featurewatch.controller.rows import states_of_rows
from featurewatch.streams.bus import BusSettings
from featurewatch.streams.topics import Topic
from featurewatch.streams.types import METADATA_VERSION, ClusterId, FeatureLevel, FeatureName
from featurewatch.tables.faust_table import changelog_topic
from featurewatch.tables.rows import cluster_of

_CODES: Final = {
    Verdict.YES: ExitCode.GOOD,
    Verdict.NO: ExitCode.NO,
    Verdict.UNKNOWN: ExitCode.UNKNOWN,
}
_HIGHEST: Final = 32767
_FROM_FILES: Final = (
    "It was read from files: whether a controller is active, and what was written since, they do "
    "not tell."
)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(name="readiness")(command)


def command(
    target: Annotated[
        str,
        typer.Option(
            "--target", "-t", help="A release of Kafka, as in 4.3: all levels that it brings."
        ),
    ] = "",
    feature: Annotated[
        list[str] | None,
        typer.Option(
            "--feature", "-f", help="NAME=LEVEL: a single level, instead of the release's."
        ),
    ] = None,
    cluster: OnlyCluster = "",
    as_json: AsJson = False,
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    bootstrap_controller: Annotated[
        str,
        typer.Option(help="host:port,… of controllers: ask the cluster itself, without a worker."),
    ] = "",
    bootstrap_server: Annotated[
        str,
        typer.Option(help="host:port,… of brokers: nodes are asked too; alone it is never enough."),
    ] = "",
    log_directory: LogDirectory = None,
    zookeeper: Zookeeper = "",
    cluster_id: ClusterIdOption = "",
    command_config: CommandConfig = None,
    zookeeper_config: ZookeeperConfig = None,
) -> None:
    """Say whether a cluster can go to a release: every node in the way, the way back, the cost.

    It takes what the worker knows, and with --bootstrap-controller, --log-directory or
    --bootstrap-server what the cluster itself says now. Without --target it is the newest release
    that some node runs. Exits with 0 if it is ready, with 3 if not, with 4 if that is not known.
    """
    release, levels = _release(target), _levels(feature or [])
    now_ms = int(time.time() * 1000)
    loaded = load(config, bus=options.bus_flags(bus, prefix))
    limits = loaded.limits()
    directly = options.cluster_flags(
        controllers=bootstrap_controller,
        servers=bootstrap_server,
        log_directory=log_directory,
        zookeeper=zookeeper,
        command_config=command_config,
        zookeeper_config=zookeeper_config,
    )
    if directly:
        named = {"cluster_id": cluster_id or cluster} if cluster_id or cluster else {}
        try:
            image = read_image(load(config, clusters=[{**directly[0], **named}]).clusters[0])
        except ClusterNotReadError as error:
            sys.stderr.write(f"featurewatch: {rendering.plain(error)}\n")
            raise typer.Exit(ExitCode.UNKNOWN) from None
        one = assess_readiness(image, release, levels, limits=limits, now_ms=now_ms)
        remarks = (_FROM_FILES,) if log_directory else ()
        found = [replace(one, reasons=(*one.reasons, *remarks))]
    else:
        states = states_from(_bus(loaded, named=bool(bus)), cluster or cluster_id)
        found = [
            assess_readiness(
                state.image, release, levels, times=state.times, limits=limits, now_ms=now_ms
            )
            for _, state in sorted(states.items())
        ]
    _show(found, as_json=as_json)
    raise typer.Exit(_code(found, cluster or cluster_id))


def _bus(settings: Settings, *, named: bool) -> BusSettings:
    try:
        return settings.bus_settings()
    except UsageError as error:
        hint = "" if named else "; --bootstrap-controller asks the cluster itself"
        raise UsageError(f"{error}{hint}") from None


def _show(found: list[ReadinessReport], *, as_json: bool) -> None:
    console = rendering.console()
    for one in found:
        if as_json:
            rendering.print_json(one)
        else:
            console.print(view(one))


def _code(found: list[ReadinessReport], cluster: str) -> ExitCode:
    if not found:
        what = f"the cluster {cluster}" if cluster else "any cluster"
        sys.stderr.write(
            f"featurewatch: nothing is known of {rendering.plain(what)} yet: is it watched, "
            "and does "
            "a worker run? --bootstrap-controller asks a cluster itself\n"
        )
        return ExitCode.UNKNOWN
    verdicts = {one.verdict for one in found}
    return next(
        _CODES[one] for one in (Verdict.NO, Verdict.UNKNOWN, Verdict.YES) if one in verdicts
    )


class _Changelog(Topic):
    """The rows of a worker's states; their topic is named by the worker's group."""

    def name(self, prefix: str = "") -> str:
        """The full name under a prefix."""
        return changelog_topic(f"{prefix}-worker")


def states_from(bus: BusSettings, cluster: str = "") -> Mapping[ClusterId, MonitorState]:
    """What the workers know, read from the rows that they keep; of one cluster, or of all.

    Raises what `TopicReader` does.
    """
    rows: dict[str, bytes] = {}
    topic = _Changelog("image-changelog", "what the workers know, as rows")
    with contextlib.closing(TopicReader(bus, topic)) as reader:
        for message in reader.read_existing():
            key, value = (message.key() or b"").decode(), message.value()
            if cluster and cluster_of(key)[0] != cluster:
                continue
            if value is None:
                rows.pop(key, None)
            else:
                rows[key] = value
    return states_of_rows(rows.items())


def _release(text: str) -> Release | None:
    try:
        release = release_of(text) if text else None
    except UnknownReleaseError as error:
        raise UsageError(str(error)) from None
    if release is not None and "-" in text:
        raise UsageError(
            f"{text!r} is a level and no release: give --target {release.name}, or --feature "
            f"{METADATA_VERSION}={text}"
        )
    return release


def _levels(given: list[str]) -> dict[FeatureName, FeatureLevel] | None:
    """Levels by feature; metadata.version may be named by its release too. Raises `UsageError`."""
    found: dict[FeatureName, FeatureLevel] = {}
    for text in given:
        name, equals, level = (part.strip() for part in text.partition("="))
        if not (name and equals and level):
            raise UsageError(f"--feature {text!r} is not NAME=LEVEL, as in metadata.version=25")
        if name in found:
            raise UsageError(f"--feature names {name} twice")
        found[FeatureName(name)] = _level(name, level)
    return found or None


def _level(name: str, text: str) -> FeatureLevel:
    if re.fullmatch(r"\d{1,5}", text) and int(text) <= _HIGHEST:
        return FeatureLevel(int(text))
    if name == METADATA_VERSION:
        exact = next((one.level for one in production_levels() if one.name == text), None)
        if exact is not None:
            return exact
        if re.fullmatch(r"\d+\.\d+(\.\d+)?", text):
            release = _release(text)
            assert release is not None  # noqa: S101 - it raises where there is none
            return release.newest(METADATA_VERSION)
    known = f"0 to {_HIGHEST}" + (", or a name as in 4.0-IV3" if name == METADATA_VERSION else "")
    raise UsageError(f"{text!r} is no level of {name}: it is a whole number from {known}")


__all__ = ["command", "register", "states_from"]
