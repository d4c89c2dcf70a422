"""Assesses whether clusters can go to a release, from the clusters or from a worker's rows."""

import contextlib
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from featurewatch.cli.command_line import Exit
from featurewatch.cli.commands.readiness.rendering import view
from featurewatch.cli.config.settings import ClusterSection, Settings, load
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output import rendering
from featurewatch.cli.output.cluster_lookup import find_cluster
from featurewatch.cli.output.terminal import print_error
from featurewatch.cli.runtime.cluster_image import ClusterNotReadError, LogReading, read_image
from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft.releases import (
    Release,
    UnknownReleaseError,
    production_levels,
    release_of,
)
from featurewatch.monitor.readiness import Limits, ReadinessReport, assess_readiness
from featurewatch.monitor.readiness.elr_settings import facts_of
from featurewatch.monitor.rows import states_of_rows
from featurewatch.monitor.step import MonitorState
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.types import METADATA_VERSION, ClusterId, FeatureLevel, FeatureName
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.rows import WORKER_ROWS, cluster_of

_CODES: Final = {
    Verdict.YES: ExitCode.GOOD,
    Verdict.NO: ExitCode.NO,
    Verdict.UNKNOWN: ExitCode.UNKNOWN,
}
_HIGHEST: Final = 32767
_FROM_FILES: Final = (
    "It was read from files, which do not show whether a controller is active, nor what was "
    "written since."
)


def run(
    target: str,
    feature: list[str],
    *,
    cluster: str,
    as_json: bool,
    config: Path | None,
    bus: dict[str, str],
    sources: list[dict[str, Any]],
) -> ExitCode:
    """Assesses and prints; the exit code says yes, no or unknown.

    ``bus`` and ``sources`` are the sections of the settings that were given by flags: with sources
    the cluster itself is read, else the worker's rows.

    Raises:
        UsageError: A release, a level or a setting is wrong.
        Exit: The cluster could not be read.
    """
    release, levels = _release(target), _levels(feature)
    now_ms = int(time.time() * 1000)
    settings = load(config, bus=bus)
    limits = settings.limits()
    if sources:
        report = _assess_cluster(config, sources, release, levels, limits, now_ms)
        reasons = (_FROM_FILES,) if "log_directory" in sources[0] else ()
        reports = [replace(report, reasons=(*report.reasons, *reasons))]
    else:
        named = "bootstrap_servers" in bus
        rows_bus = _bus(settings, named=named)
        cluster = find_cluster(rows_bus, cluster)
        states = states_from(rows_bus, cluster)
        reports = [
            assess_readiness(
                state.image,
                release,
                levels,
                times=state.times,
                limits=limits,
                now_ms=now_ms,
                min_isr=facts_of(state.partitions.image if state.partitions else None),
            )
            for _, state in sorted(states.items())
        ]
    _show(reports, as_json=as_json)
    return _code(reports, cluster)


def _assess_cluster(
    config: Path | None,
    sources: list[dict[str, Any]],
    release: Release | None,
    levels: dict[FeatureName, FeatureLevel] | None,
    limits: Limits,
    now_ms: int,
) -> ReadinessReport:
    """Reads the cluster itself; files of brokers only if the level that they matter for is due."""
    # Here, since the worker's state needs no client.
    from featurewatch.cli.commands.readiness.min_isr import MinIsrLog, values_in_files

    log = MinIsrLog()
    section = load(config, clusters=sources).clusters[0]
    has_log = bool(section.controllers or section.log_directory)
    image = _read(section, log.reading() if has_log else None)
    report = assess_readiness(image, release, levels, limits=limits, now_ms=now_ms)
    if not (report.elr_unread and has_log):
        return report
    facts = log.facts(values_in_files(section))
    return assess_readiness(image, release, levels, limits=limits, now_ms=now_ms, min_isr=facts)


def _bus(settings: Settings, *, named: bool) -> BusSettings:
    try:
        return settings.bus_settings()
    except UsageError as error:
        hint = "" if named else "; --bootstrap-controller asks the cluster itself"
        raise UsageError(f"{error}{hint}") from None


def _show(reports: list[ReadinessReport], *, as_json: bool) -> None:
    console = rendering.console()
    for report in reports:
        if as_json:
            rendering.print_json(report.document())
        else:
            console.print(view(report))


def _code(reports: list[ReadinessReport], cluster: str) -> ExitCode:
    if not reports:
        _nothing_known(cluster)
        return ExitCode.UNKNOWN
    verdicts = {report.verdict for report in reports}
    order = (Verdict.NO, Verdict.UNKNOWN, Verdict.YES)
    return next(_CODES[verdict] for verdict in order if verdict in verdicts)


def images(
    *, cluster: str, config: Path | None, bus: dict[str, str], sources: list[dict[str, Any]]
) -> list[ClusterImage]:
    """The images of clusters: with ``sources`` that of the cluster, else those of the workers.

    Empty, after a line on stderr, if nothing is known. Raises as `run` does.
    """
    if sources:
        return [_read(load(config, clusters=sources).clusters[0])]
    rows_bus = _bus(load(config, bus=bus), named="bootstrap_servers" in bus)
    cluster = find_cluster(rows_bus, cluster)
    states = states_from(rows_bus, cluster)
    if not states:
        _nothing_known(cluster)
    return [state.image for _, state in sorted(states.items())]


def _read(section: ClusterSection, reading: LogReading | None = None) -> ClusterImage:
    try:
        return read_image(section, reading=reading) if reading else read_image(section)
    except ClusterNotReadError as error:
        print_error(str(error))
        raise Exit(ExitCode.UNKNOWN) from None


def _nothing_known(cluster: str) -> None:
    scope = f"the cluster {cluster}" if cluster else "any cluster"
    print_error(
        f"nothing is known of {scope} yet: is it watched, and does a worker run? "
        "--bootstrap-controller asks a cluster itself"
    )


def states_from(bus: BusSettings, cluster: str = "") -> Mapping[ClusterId, MonitorState]:
    """The workers' states by cluster, from their persisted rows; of one cluster, or of all.

    Raises what `TopicReader` does.
    """
    rows: dict[str, bytes] = {}
    with contextlib.closing(TopicReader(bus, WORKER_ROWS)) as reader:
        for message in reader.read_existing():
            key, value = (message.key() or b"").decode(), message.value()
            of_cluster, name = cluster_of(key)
            # A row without a name is the worker's own, and of no cluster.
            if not name or (cluster and of_cluster != cluster):
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
            f"{text!r} is a level, not a release: pass --target {release.name}, or --feature "
            f"{METADATA_VERSION}={text}"
        )
    return release


def _levels(given: list[str]) -> dict[FeatureName, FeatureLevel] | None:
    """Levels by feature; metadata.version may be named by its release too. Raises `UsageError`."""
    levels: dict[FeatureName, FeatureLevel] = {}
    for text in given:
        name, equals, level = (part.strip() for part in text.partition("="))
        if not (name and equals and level):
            raise UsageError(f"--feature {text!r} is not NAME=LEVEL, as in metadata.version=25")
        if name in levels:
            raise UsageError(f"--feature names {name} twice")
        levels[FeatureName(name)] = _level(name, level)
    return levels or None


def _level(name: str, text: str) -> FeatureLevel:
    if re.fullmatch(r"\d{1,5}", text) and int(text) <= _HIGHEST:
        return FeatureLevel(int(text))
    if name == METADATA_VERSION:
        exact = next((item.level for item in production_levels() if item.name == text), None)
        if exact is not None:
            return exact
        if re.fullmatch(r"\d+\.\d+(\.\d+)?", text):
            release = _release(text)
            assert release is not None  # noqa: S101 - it raises for an unknown release
            return release.newest(METADATA_VERSION)
    expected = f"0 to {_HIGHEST}" + (
        ", or a name as in 4.0-IV3" if name == METADATA_VERSION else ""
    )
    raise UsageError(f"{text!r} is not a level of {name}: write a whole number from {expected}")
