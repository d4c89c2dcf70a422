"""``featurewatch fleet``: all clusters of a lake, and where levels differ from the desired ones."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from featurewatch.cli.command_line import Exit, Option, command
from featurewatch.cli.config.options import AsJson, LakeRoot
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.terminal import print_line
from featurewatch.cli.runtime.lake_reader import open_reader
from featurewatch.common.text import plain
from featurewatch.kafka.releases import newest_release

if TYPE_CHECKING:
    from featurewatch.pipeline.fleet.clusters import ClusterSummary, Fleet
    from featurewatch.pipeline.fleet.desired import DesiredLevels
    from featurewatch.pipeline.fleet.drift import Drift
    from featurewatch.pipeline.fleet.readiness import DailyCounts, TargetReadiness

_NAMED = 5
"""The number of nodes of a cluster that are named on its line."""

DesiredFile = Annotated[
    Path | None,
    Option(
        "--desired",
        metavar="FILE",
        help="YAML file with environments, their clusters and desired levels.",
    ),
]


@command("list")
def list_clusters(
    lake: LakeRoot = "", desired: DesiredFile = None, as_json: AsJson = False
) -> None:
    """Show each cluster on a line: levels, releases, incompatible nodes, alerts, last seen.

    With `--desired` clusters are called by their names, and their environment is shown.
    """
    from featurewatch.pipeline.fleet.clusters import fleet
    from featurewatch.pipeline.fleet.desired import read_desired

    with _right_usage():
        levels = read_desired(desired) if desired else None
        clusters = fleet(open_reader(lake))
        rows = [_line(line, clusters, levels) for line in clusters.clusters.values()]
    if as_json:
        from featurewatch.cli.output.rendering import print_json

        for line in clusters.clusters.values():
            print_json(line)
        return
    title = ("cluster", "environment", "revision", "nodes", "incompatible", "alerts", "last seen")
    _print([(*title, "levels"), *rows])


@command()
def drift(desired: DesiredFile = None, lake: LakeRoot = "", as_json: AsJson = False) -> None:
    """Show each level that differs from the desired one, and each cluster that is unknown.

    Exits with 3 if any level differs, with 4 if some cluster's levels cannot be known, else with 0.
    """
    if desired is None:
        raise UsageError("give the desired levels of the clusters with --desired FILE")
    from featurewatch.pipeline.fleet.clusters import fleet
    from featurewatch.pipeline.fleet.desired import read_desired
    from featurewatch.pipeline.fleet.drift import drift as drift_of

    with _right_usage():
        drifts = drift_of(fleet(open_reader(lake)), read_desired(desired), datetime.now(UTC))
    if as_json:
        from featurewatch.cli.output.rendering import print_json

        for item in drifts:
            print_json(item)
    elif drifts:
        _print([("cluster", "environment", "verdict", ""), *map(_drift, drifts)])
    else:
        print_line("all clusters match their desired levels")
    if any(item.verdict.is_level_difference for item in drifts):
        raise Exit(ExitCode.NO)
    if drifts:
        raise Exit(ExitCode.UNKNOWN)


@command()
def readiness(
    target: Annotated[
        str,
        Option(
            "--target",
            metavar="RELEASE",
            help=f"Kafka release to assess, as in {newest_release()}.",
        ),
    ] = "",
    lake: LakeRoot = "",
    days: Annotated[bool, Option("--by-day", help="Count clusters by day.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show which clusters can go to a release, and the blockers of the others.

    Exits with 3 if any cluster cannot now, with 4 if that is unknown for some, else with 0; also
    with `--by-day`.
    """
    from featurewatch.controller.kraft import UnknownReleaseError, release_of
    from featurewatch.pipeline.fleet.readiness import NO, UNKNOWN, by_day, target_readiness

    try:
        release = release_of(target).name
    except UnknownReleaseError as error:
        raise UsageError(f"{error}; give one with --target") from None
    reader = open_reader(lake)
    clusters = target_readiness(reader, release)
    if days:
        _show_days(by_day(reader, release), as_json=as_json)
    elif as_json:
        from featurewatch.cli.output.rendering import print_json

        for cluster in clusters:
            print_json(cluster)
    else:
        title = ("cluster", f"to {release}", "in the way", "downgrade")
        _print([(*title, ""), *map(_standing, clusters)])
    verdicts = {cluster.verdict for cluster in clusters}
    if NO in verdicts:
        raise Exit(ExitCode.NO)
    if UNKNOWN in verdicts or not verdicts:
        raise Exit(ExitCode.UNKNOWN)


@contextmanager
def _right_usage() -> Iterator[None]:
    """Turns an invalid file into wrong usage."""
    from featurewatch.pipeline.fleet.desired import DesiredError

    try:
        yield
    except DesiredError as error:
        raise UsageError(str(error)) from None


def _line(
    line: "ClusterSummary", fleet: "Fleet", desired: "DesiredLevels | None"
) -> tuple[str, ...]:
    from featurewatch.cli.output.rendering import called
    from featurewatch.controller.levels import finalized_name
    from featurewatch.pipeline.history.moments import format_time

    levels = ", ".join(
        f"{name} {finalized_name(name, number)}" for name, number in line.levels.items()
    )
    releases = ", ".join(
        f"{release}" if len(line.releases) == 1 else f"{count} {release}"
        for release, count in line.releases.items()
    )
    alerts = ", ".join(f"{count} {severity}" for severity, count in line.alerts.items())
    last_seen = format_time(line.last_seen) if line.last_seen else "silent" if fleet.ends else "?"
    return (
        called(line.cluster, desired.labels_of(line.cluster).name if desired else ""),
        (desired.environment_of(line.cluster) or "-") if desired else "",
        str(line.revision),
        f"{line.nodes} ({releases})" if line.nodes else "0",
        str(line.incompatible or "-"),
        alerts or "-",
        last_seen.partition(".")[0],
        levels or "nothing finalized",
    )


_VERDICTS = {"yes": "ready", "no": "not ready", "unknown": "unknown"}


def _standing(cluster: "TargetReadiness") -> tuple[str, ...]:
    unnamed_count = cluster.blockers - min(_NAMED, len(cluster.blocker_names))
    named = ", ".join(cluster.blocker_names[:_NAMED]) + (
        f" and {unnamed_count} more" if unnamed_count > 0 else ""
    )
    is_finalized = cluster.finalized and cluster.verdict == "yes"
    back = "" if cluster.lossless is None else "without loss" if cluster.lossless else "none"
    return (
        cluster.cluster,
        "is there" if is_finalized else _VERDICTS[cluster.verdict],
        f"{cluster.blockers}: {named}" if cluster.blockers else "-",
        "-" if is_finalized else back or "-",
        " ".join(cluster.reasons),
    )


def _show_days(counts_by_day: "Sequence[DailyCounts]", *, as_json: bool) -> None:
    if as_json:
        from featurewatch.cli.output.rendering import print_json

        for each in counts_by_day:
            print_json(each)
        return
    counts = ((each.yes, each.no, each.unknown, each.finalized) for each in counts_by_day)
    rows = [(str(day.day), *map(str, of)) for day, of in zip(counts_by_day, counts, strict=True)]
    _print([("day", "ready", "not ready", "unknown", "is there"), *rows])


def _drift(item: "Drift") -> tuple[str, ...]:
    from featurewatch.cli.output.rendering import called
    from featurewatch.controller.levels import finalized_name

    detail = item.detail
    if item.feature is not None:
        desired, actual = (
            finalized_name(item.feature, item.desired or None),
            finalized_name(item.feature, None if item.verdict == "missing" else item.actual),
        )
        detail = f"{item.feature} is {actual}, should be {desired}"
    return (*(called(item.cluster, item.name), item.environment or "-", str(item.verdict), detail),)


def _print(rows: Sequence[tuple[str, ...]]) -> None:
    """Prints columns as narrow as possible, without empty ones."""
    cells = [[plain(cell) for cell in row] for row in rows]
    columns = [column for column in zip(*cells, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    lines: Iterable[str] = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    )
    for line in lines:
        print_line(line)
