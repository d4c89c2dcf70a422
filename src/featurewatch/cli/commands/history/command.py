"""``featurewatch history``: the past, from the tables of the lake, without a JVM."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from featurewatch.cli.command_line import Argument, Exit, Option, command
from featurewatch.cli.config.options import AsJson, LakeRoot, OnlyCluster
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.terminal import print_error, print_note
from featurewatch.cli.runtime.lake_reader import open_reader, require_package

if TYPE_CHECKING:
    from featurewatch.pipeline.history.moments import Moment

# Imports are where commands run: help needs none of them.

_MOMENT = "a time (ISO 8601, UTC without a zone; '2 days ago'), offset:N, epoch:N or revision:N"
T = TypeVar("T")


@command()
def show(
    lake: LakeRoot = "",
    cluster: OnlyCluster = "",
    at: Annotated[
        str,
        Option(
            "--at",
            metavar="TIME",
            help="State at this time: ISO 8601 (UTC without a zone), or '2 days ago'.",
            default="now",
        ),
    ] = "",
    offset: Annotated[
        int | None,
        Option("--offset", min=0, metavar="OFFSET", help="State after this offset of the log."),
    ] = None,
    epoch: Annotated[
        int | None,
        Option("--epoch", min=0, metavar="EPOCH", help="State at this epoch of the cluster."),
    ] = None,
    revision: Annotated[
        int | None,
        Option(
            "--revision", min=1, metavar="REVISION", help="State at the start of this revision."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a cluster as it was: levels, nodes and their releases, alerts.

    Without a moment, shows the state at the newest message in the lake. Exits with 4 if the history
    does not reach the moment.
    """
    numbered = {"offset": offset, "epoch": epoch, "revision": revision}
    given = [at] if at else []
    given += [f"{name}:{number}" for name, number in numbered.items() if number is not None]
    if len(given) > 1:
        raise UsageError("give one of --at, --offset, --epoch and --revision")
    now = datetime.now(UTC)
    from featurewatch.pipeline.history.moments import parse_time

    moment = _moment(given[0] if given else "now", now)
    if at:
        _usage(lambda: parse_time(at, now))
    from featurewatch.pipeline.history import point_in_time

    with _known():
        reader = open_reader(lake)
        state = point_in_time.state_at(
            reader, point_in_time.cluster_of(reader, cluster), moment, now
        )
    from featurewatch.cli.commands.history.rendering import state_parts
    from featurewatch.cli.output import rendering

    if as_json:
        rendering.print_json(state)
    else:
        for part in state_parts(state):
            rendering.console().print(part, soft_wrap=not hasattr(part, "columns"))


@command()
def diff(
    before: Annotated[str, Argument(metavar="A", help=f"First moment to compare: {_MOMENT}.")],
    after: Annotated[str, Argument(metavar="[B]", help="Second moment to compare.")] = "now",
    lake: LakeRoot = "",
    cluster: OnlyCluster = "",
    as_json: AsJson = False,
) -> None:
    """Show what differs between two moments of a cluster: levels, nodes, releases, alerts.

    Exits with 4 if the history does not reach a moment.
    """
    now = datetime.now(UTC)
    moments = [_moment(before, now), _moment(after, now)]
    from featurewatch.pipeline.history import differences, point_in_time

    with _known():
        reader = open_reader(lake)
        name = point_in_time.cluster_of(reader, cluster)
        states = [point_in_time.state_at(reader, name, moment, now) for moment in moments]
    differs = differences.diff(*states)
    from featurewatch.cli.commands.history.rendering import diff_lines
    from featurewatch.cli.output import rendering

    if as_json:
        rendering.print_json(differs.document())
    else:
        for line in diff_lines(differs):
            rendering.console().print(line, soft_wrap=True)


@command()
def upgrades(
    lake: LakeRoot = "",
    cluster: OnlyCluster = "",
    since: Annotated[
        str,
        Option(
            "--since", metavar="TIME", help="Only upgrades that lasted until this time or later."
        ),
    ] = "",
    nodes: Annotated[bool, Option("--nodes", help="Show when each node restarted.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show each roll of a cluster, or of all: when, how long, which levels, the downgrade path."""
    from featurewatch.pipeline.history import differences, point_in_time
    from featurewatch.pipeline.history.moments import parse_time

    from_time = _usage(lambda: parse_time(since, datetime.now(UTC))) if since else None
    with _known():
        reader = open_reader(lake)
        name = point_in_time.cluster_of(reader, cluster) if cluster else ""
        rolls = differences.upgrades(reader, name, from_time)
    from featurewatch.cli.commands.history.rendering import roll_lines
    from featurewatch.cli.output import rendering

    console = rendering.console()
    for roll in rolls:
        if as_json:
            rendering.print_json(roll)
        else:
            for line in roll_lines(roll, nodes=nodes):
                console.print(line, soft_wrap=True)
    if not rolls and not as_json:
        console.print("no upgrade is known")


@command()
def operations(
    lake: LakeRoot = "",
    cluster: OnlyCluster = "",
    since: Annotated[
        str, Option("--since", metavar="TIME", help="Show operations from this time on.")
    ] = "",
    until: Annotated[
        str,
        Option("--until", metavar="TIME", help="Show operations up to this time.", default="now"),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show what controllers did with topics and partitions, and why, oldest first.

    They are in the lake if `worker` and `pipeline run` follow operations.
    """
    from featurewatch.pipeline.history import point_in_time
    from featurewatch.pipeline.history.moments import parse_time
    from featurewatch.pipeline.history.operations import operations as steps_in

    now = datetime.now(UTC)
    first = _usage(lambda: parse_time(since, now)) if since else None
    last = _usage(lambda: parse_time(until, now)) if until else None
    with _known():
        reader = open_reader(lake)
        name = point_in_time.cluster_of(reader, cluster) if cluster else ""
        steps = steps_in(reader, name, first, last)
    from featurewatch.cli.output import rendering

    console = rendering.console()
    for step in steps:
        if as_json:
            rendering.print_json(step)
        else:
            console.print(rendering.operation_line(step), soft_wrap=True)
    if not steps and not as_json:
        console.print("no operation is known: pipeline run follows them with --operations")


@command()
def plot(
    out: Annotated[
        Path | None,
        Option(
            "--out",
            metavar="FILE",
            help="File to write: .png, .html for a page, or .svg for the rolls.",
        ),
    ] = None,
    lake: LakeRoot = "",
    cluster: OnlyCluster = "",
    since: Annotated[str, Option("--since", metavar="TIME", help="Draw from this time on.")] = "",
    until: Annotated[
        str, Option("--until", metavar="TIME", help="Draw up to this time.", default="now")
    ] = "",
) -> None:
    """Draw finalized levels and supported ranges over time, or each node's rolls as SVG.

    An SVG file has one band per node: its release, and when it was fenced or away, with levels,
    alerts, and the points from which there is no way back. Exits with 4 if the history does not
    reach the time.
    """
    if out is None or out.suffix not in (".png", ".html", ".svg"):
        raise UsageError("name the file to write with --out FILE.png, FILE.html or FILE.svg")
    now = datetime.now(UTC)
    from featurewatch.pipeline.history import point_in_time
    from featurewatch.pipeline.history.moments import parse_time
    from featurewatch.pipeline.history.plot import picture, roll
    from featurewatch.pipeline.history.plot.layout import layout

    first = _usage(lambda: parse_time(since, now)) if since else None
    last = _usage(lambda: parse_time(until, now)) if until else None
    with _known():
        reader = open_reader(lake)
        name = point_in_time.cluster_of(reader, cluster)
        if out.suffix == ".svg":
            rolls = roll.roll_of(reader, name, first, last, now)
        else:
            drawing = layout(picture.picture(reader, name, first, last, now))
    try:
        if out.suffix == ".svg":
            from featurewatch.pipeline.history.plot.roll_svg import svg

            out.write_text(svg(rolls), encoding="utf-8")
        elif out.suffix == ".png":
            require_package("matplotlib")
            from featurewatch.pipeline.history.plot.png import png

            out.write_bytes(png(drawing))
        else:
            from featurewatch.pipeline.history.plot.html_page import html

            out.write_text(html(drawing), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from None
    print_note(f"{out} shows cluster {name}")


def _moment(given: str, now: datetime) -> "Moment":
    from featurewatch.pipeline.history.moments import parse_moment

    return _usage(lambda: parse_moment(given, now))


def _usage(work: Callable[[], T]) -> T:
    """Returns the result of a function; an invalid moment is wrong usage."""
    from featurewatch.pipeline.history.moments import MomentError

    try:
        return work()
    except MomentError as error:
        raise UsageError(str(error)) from None


@contextmanager
def _known() -> Iterator[None]:
    """A moment that the history does not reach is one line and exit code 4."""
    from featurewatch.pipeline.history.moments import MomentError, UnknownMomentError

    try:
        yield
    except MomentError as error:
        raise UsageError(str(error)) from None
    except UnknownMomentError as error:
        print_error(str(error))
        raise Exit(ExitCode.UNKNOWN) from None
