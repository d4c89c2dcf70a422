"""The options of a process that concern the metadata controller above its voter."""

import argparse
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from featurewatch.common.java_properties import properties_in
from featurewatch.controller.kraft import Release, UnknownReleaseError, release_of
from featurewatch.reference.kraft.machines.controller.settings import ControllerSettings, Form
from featurewatch.reference.kraft.machines.metadata.state import Listener
from featurewatch.reference.kraft.machines.replicas import Endpoint, text_of
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    SupportedRange,
    SupportedRanges,
)

_NUMBERS: Final[Mapping[str, str]] = {
    "broker.session.timeout.ms": "session_timeout_ms",
    "num.partitions": "num_partitions",
    "default.replication.factor": "replication_factor",
    "min.insync.replicas": "min_insync_replicas",
    "metadata.log.max.record.bytes.between.snapshots": "snapshot_bytes",
    "metadata.max.retention.bytes": "retained_bytes",
}
"""Kafka's properties that count for the controller, and the settings that they are."""
_QUORUM_NUMBERS: Final[Mapping[str, str]] = {
    "controller.quorum.election.timeout.ms": "election_timeout_ms",
    "controller.quorum.fetch.timeout.ms": "fetch_timeout_ms",
    "controller.quorum.election.backoff.max.ms": "election_backoff_ms",
    "controller.quorum.request.timeout.ms": "request_timeout_ms",
    "controller.quorum.retry.backoff.ms": "retry_backoff_ms",
}
"""Those that count for the voter."""
_HIGHEST: Final = (1 << 15) - 1


class OptionError(ValueError):
    """An option that the process cannot start with; one line."""


def add_controller_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that `controller_settings` reads."""
    add = parser.add_argument
    add(
        "--controller",
        metavar="RELEASE",
        help="run the metadata controller of this Kafka release above the voter, as in 4.3",
    )
    add(
        "--level",
        metavar="LEVEL",
        help="metadata.version of a new cluster: a number, a name or a release; default: the "
        "newest that the controller supports",
    )
    add(
        "--feature",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="level of another feature in a new cluster; may be repeated; default: the release's",
    )
    add(
        "--range",
        action="append",
        default=[],
        dest="ranges",
        metavar="NAME=MIN-MAX",
        help="levels of a feature that the controller supports; may be repeated; default: the "
        "release's, in the form kip-778 from metadata.version 1 on",
    )
    add(
        "--form",
        type=Form,
        default=Form.RELEASED,
        choices=list(Form),
        help="how it treats levels: released, as Kafka, or kip-778, as the document",
    )
    add(
        "--config",
        type=Path,
        metavar="FILE",
        help="properties of Kafka, of which these count: "
        + ", ".join((*_NUMBERS, *_QUORUM_NUMBERS)),
    )


def controller_settings(
    options: argparse.Namespace, endpoint: Endpoint, quorum: tuple[int, ...]
) -> ControllerSettings:
    """The settings of the controller that the options describe.

    Raises:
        OptionError: if a release, a level or a property is not valid.
        OSError: if the file with the properties cannot be read.
    """
    try:
        release = release_of(options.controller)
    except UnknownReleaseError as error:
        raise OptionError(f"--controller: {error}") from None
    numbers = _numbers(options.config, _NUMBERS)
    settings = ControllerSettings(
        node_id=options.node_id,
        cluster_id=options.cluster_id,
        incarnation_id=text_of(uuid4()),
        listeners=(Listener(endpoint.name, endpoint.host, endpoint.port),),
        quorum=quorum,
        release=release.name,
        form=options.form,
        bootstrap=_bootstrap(options, release),
        ranges=_ranges(options, release),
    )
    changes: dict[str, Any] = dict(numbers)
    return replace(settings, **changes)


def quorum_times(options: argparse.Namespace) -> dict[str, Any]:
    """The times of the voter in ms, by the setting: an option counts before a property.

    Raises as `controller_settings`.
    """
    given = {
        "election_timeout_ms": options.election_timeout,
        "fetch_timeout_ms": options.fetch_timeout,
    }
    times = {name: time for name, time in given.items() if time is not None}
    return _numbers(options.config, _QUORUM_NUMBERS) | times


def _ranges(options: argparse.Namespace, release: Release) -> SupportedRanges:
    """What the controller supports; the levels of the document begin with 1."""
    ranges = dict(release.ranges())
    if options.form is Form.KIP_778:
        ranges[METADATA_VERSION] = SupportedRange(1, ranges[METADATA_VERSION].maximum)
    for text in options.ranges:
        match = re.fullmatch(r"([^=]+)=(\d{1,5})-(\d{1,5})", text)
        low, high = (int(match[2]), int(match[3])) if match else (1, 0)
        if match is None or not low <= high <= _HIGHEST:
            raise OptionError(f"--range {text}: write NAME=MIN-MAX with two levels")
        ranges[FeatureName(match[1])] = SupportedRange(low, high)
    return SupportedRanges(ranges)


def _bootstrap(options: argparse.Namespace, release: Release) -> dict[FeatureName, FeatureLevel]:
    """The levels of a new cluster, as ``kafka-storage format`` chooses them."""
    levels: dict[FeatureName, FeatureLevel] = {}
    if options.level is not None:
        levels[METADATA_VERSION] = _level(options.level)
    elif options.form is Form.RELEASED:
        levels[METADATA_VERSION] = release.newest(METADATA_VERSION)
    if options.form is Form.RELEASED:
        # A quorum whose voters are configured stays at kraft.version 0.
        levels |= {
            name: level
            for name, level in release.defaults(levels[METADATA_VERSION]).items()
            if level > 0 and name not in (KRAFT_VERSION, METADATA_VERSION)
        }
    for text in options.feature:
        name, _, level = text.partition("=")
        if not level.isdecimal() or int(level) > _HIGHEST:
            raise OptionError(f"--feature {text}: write NAME=LEVEL with a whole number")
        levels[FeatureName(name)] = FeatureLevel(int(level))
    return levels


def _level(text: str) -> FeatureLevel:
    if text.isdecimal() and int(text) <= _HIGHEST:
        return FeatureLevel(int(text))
    # Here, because it takes a sixth of the start, and a number does not need it.
    from featurewatch.controller.rehearsal.steps import named_level

    named = named_level(text)
    if named is None:
        raise OptionError(f"--level {text}: no such metadata.version; give a number or 4.0-IV3")
    return named


def _numbers(path: Path | None, names: Mapping[str, str]) -> dict[str, int]:
    """The properties with these names in a file, by the setting."""
    if path is None:
        return {}
    properties = properties_in(path.read_bytes())
    numbers = {}
    for name, setting in names.items():
        text = properties.get(name)
        if text is None:
            continue
        if not text.isdecimal() or not 0 < int(text) < 1 << 62:
            raise OptionError(f"{path}: {name} is {text!r}, which is not a positive whole number")
        numbers[setting] = int(text)
    return numbers
