"""``featurewatch demo``: a rolling upgrade of a real cluster, seen live."""

import contextlib
import logging
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from featurewatch.cli.config.options import AsJson
from featurewatch.cli.errors import ExitCode


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(demo)


def demo(
    as_json: AsJson = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything up at the end, until Ctrl-C.")
    ] = False,
    directory: Annotated[
        Path | None, typer.Option(help="Where the nodes live (default: a temporary directory).")
    ] = None,
) -> None:
    """Start a real cluster of Kafka 3.9.1, roll it to 4.3.0, and watch it happen.

    Exits with 1 if a change was lost or said twice.
    """
    # Here, so that the other commands start without the engines.
    from featurewatch.cli.commands.demo.printer import DemoPrinter
    from featurewatch.cli.commands.demo.script import play

    # What the parts log when all is well would stand between the acts.
    quiet = logging.WARNING if not logging.getLogger().isEnabledFor(logging.INFO) else logging.INFO
    logging.getLogger("featurewatch").setLevel(quiet)
    with contextlib.ExitStack() as stack:
        if directory is None:
            made = tempfile.TemporaryDirectory(prefix="featurewatch-", ignore_cleanup_errors=True)
            directory = Path(stack.enter_context(made))
        summary = play(directory, DemoPrinter(as_json=as_json), keep=keep)
    if summary["lost"] or summary["duplicated"]:
        raise typer.Exit(ExitCode.FAILED)
