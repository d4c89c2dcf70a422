"""``featurewatch history``: what was, from the tables of the lake, without a JVM."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from featurewatch.cli.config.options import AsJson, LakeRoot, OnlyCluster
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.runtime.lake_reader import open_reader, require_package

if TYPE_CHECKING:
    from featurewatch.pipeline.history.moments import Moment

# What commands need is imported where they run: half of their time is imports.

_MOMENT = "a time (ISO 8601, UTC without a zone; '2 days ago'), offset:N, epoch:N or revision:N"
T = TypeVar("T")


def show(
    lake: LakeRoot = "",
    cluster: OnlyCluster = "",
    at: Annotated[
        str,
        typer.Option("--at", help="A time: ISO 8601, UTC without a zone; or '2 days ago'."),
    ] = "",
    offset: Annotated[
        int | None, typer.Option("--offset", min=0, help="After this offset of the metadata log.")
    ] = None,
    epoch: Annotated[
        int | None, typer.Option("--epoch", min=0, help="While the cluster said this epoch.")
    ] = None,
    revision: Annotated[
        int | None, typer.Option("--revision", min=1, help="When this revision began.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a cluster as it was: levels, nodes and their releases, alerts.

    Without a moment: as it is by the newest word in the lake. Exits with 4 where the history does
    not reach.
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

    with _answering():
        found = open_reader(lake)
        state = point_in_time.state_at(found, point_in_time.cluster_of(found, cluster), moment, now)
    from featurewatch.cli.commands.history.rendering import state_parts
    from featurewatch.cli.output import rendering

    if as_json:
        rendering.print_json(state)
    else:
        for part in state_parts(state):
            rendering.console().print(part, soft_wrap=not hasattr(part, "columns"))


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help=f"A moment: {_MOMENT}.")],
    after: Annotated[str, typer.Argument(metavar="B", help="Another.")] = "now",
    lake: LakeRoot = "",
    cluster: OnlyCluster = "",
    as_json: AsJson = False,
) -> None:
    """Show what differs between two moments of a cluster: levels, nodes, releases, alerts.

    Exits with 4 where the history does not reach.
    """
    now = datetime.now(UTC)
    moments = [_moment(before, now), _moment(after, now)]
    from featurewatch.pipeline.history import differences, point_in_time

    with _answering():
        found = open_reader(lake)
        name = point_in_time.cluster_of(found, cluster)
        states = [point_in_time.state_at(found, name, moment, now) for moment in moments]
    differs = differences.diff(*states)
    from featurewatch.cli.commands.history.rendering import diff_lines
    from featurewatch.cli.output import rendering

    if as_json:
        rendering.print_json(differs)
    else:
        for line in diff_lines(differs):
            rendering.console().print(line, soft_wrap=True)


def upgrades(
    lake: LakeRoot = "",
    cluster: OnlyCluster = "",
    since: Annotated[
        str, typer.Option("--since", help="Only those that went on at this time or later.")
    ] = "",
    nodes: Annotated[
        bool, typer.Option("--nodes", help="The time of each node's restart, too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show each roll of a cluster, or of all: when, how long, which levels, the way back."""
    from featurewatch.pipeline.history import differences, point_in_time
    from featurewatch.pipeline.history.moments import parse_time

    from_time = _usage(lambda: parse_time(since, datetime.now(UTC))) if since else None
    with _answering():
        found = open_reader(lake)
        name = point_in_time.cluster_of(found, cluster) if cluster else ""
        rolls = differences.upgrades(found, name, from_time)
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


def plot(
    out: Annotated[
        Path | None, typer.Option("--out", help="The file to write: .png, or .html for a page.")
    ] = None,
    lake: LakeRoot = "",
    cluster: OnlyCluster = "",
    since: Annotated[str, typer.Option("--since", help="From this time on.")] = "",
    until: Annotated[str, typer.Option("--until", help="Up to this time.")] = "",
) -> None:
    """Draw levels and what nodes support over time, as an image or as one page that stands alone.

    Exits with 4 where the history does not reach.
    """
    if out is None or out.suffix not in (".png", ".html"):
        raise UsageError("say what to draw with --out FILE.png or --out FILE.html")
    now = datetime.now(UTC)
    from featurewatch.pipeline.history import point_in_time
    from featurewatch.pipeline.history.moments import parse_time
    from featurewatch.pipeline.history.plot import picture
    from featurewatch.pipeline.history.plot.layout import layout

    first = _usage(lambda: parse_time(since, now)) if since else None
    last = _usage(lambda: parse_time(until, now)) if until else None
    with _answering():
        found = open_reader(lake)
        name = point_in_time.cluster_of(found, cluster)
        drawing = layout(picture.picture(found, name, first, last, now))
    try:
        if out.suffix == ".png":
            require_package("matplotlib")
            from featurewatch.pipeline.history.plot.png import png

            out.write_bytes(png(drawing))
        else:
            from featurewatch.pipeline.history.plot.html_page import html

            out.write_text(html(drawing), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from None
    sys.stderr.write(f"{out} shows cluster {name}\n")


def _moment(given: str, now: datetime) -> "Moment":
    from featurewatch.pipeline.history.moments import parse_moment

    return _usage(lambda: parse_moment(given, now))


def _usage(work: Callable[[], T]) -> T:
    """What a function gives; what is no moment is wrong usage."""
    from featurewatch.pipeline.history.moments import MomentError

    try:
        return work()
    except MomentError as error:
        raise UsageError(str(error)) from None


@contextmanager
def _answering() -> Iterator[None]:
    """What the history does not know is one line and an exit code of its own."""
    from featurewatch.pipeline.history.moments import MomentError, UnknownMomentError

    try:
        yield
    except MomentError as error:
        raise UsageError(str(error)) from None
    except UnknownMomentError as error:
        sys.stderr.write(f"featurewatch: {error}\n")
        raise typer.Exit(ExitCode.UNKNOWN) from None
