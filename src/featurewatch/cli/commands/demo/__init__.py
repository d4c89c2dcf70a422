"""``featurewatch demo``: a rolling upgrade of a real cluster, seen live."""

from pathlib import Path
from typing import Annotated

from featurewatch.cli.command_line import Exit, Option, command
from featurewatch.cli.config.options import AsJson
from featurewatch.cli.errors import ExitCode


@command()
def demo(
    as_json: AsJson = False,
    keep: Annotated[
        bool, Option("--keep", help="Keep everything running at the end, until Ctrl-C.")
    ] = False,
    directory: Annotated[
        Path | None,
        Option(
            metavar="DIRECTORY",
            help="Directory for the nodes' data.",
            default="a temporary directory",
        ),
    ] = None,
) -> None:
    """Start a real cluster of Kafka 3.9.1, roll it to the newest release, and watch it happen.

    Exits with 1 if a change was lost or published twice.
    """
    # Here, so that help needs no engines.
    import contextlib
    import logging
    import tempfile

    from featurewatch.cli.commands.demo.printer import DemoPrinter
    from featurewatch.cli.commands.demo.script import play

    # Information that the components log would come between the acts.
    quiet = logging.WARNING if not logging.getLogger().isEnabledFor(logging.INFO) else logging.INFO
    logging.getLogger("featurewatch").setLevel(quiet)
    with contextlib.ExitStack() as stack:
        if directory is None:
            made = tempfile.TemporaryDirectory(prefix="featurewatch-", ignore_cleanup_errors=True)
            directory = Path(stack.enter_context(made))
        summary = play(directory, DemoPrinter(as_json=as_json), keep=keep)
    if summary["lost"] or summary["duplicated"]:
        raise Exit(ExitCode.FAILED)
