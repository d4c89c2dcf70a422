"""The command ``featurewatch``."""

import sys
from typing import Annotated, Final

import typer

from featurewatch.cli import logs
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.lazy import group_of

COMMANDS: Final = (
    "up",
    "watch",
    "worker",
    "state",
    "changes",
    "alerts",
    "epochs",
    "readiness",
    "retire",
    "demo",
    "stack",
    "pipeline",
    "replay",
    "features",
    "history",
    "fleet",
    "rehearse",
    "storage",
)
"""In the order of the help; each stands in the module of its name and is imported when it runs."""

app = typer.Typer(
    name="featurewatch",
    cls=group_of(COMMANDS),
    help="Follows the feature levels of Kafka clusters live: what changed, which node is "
    "incompatible, what blocks the next level.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version as installed_version

        sys.stdout.write(f"featurewatch {installed_version('featurewatch')}\n")
        raise typer.Exit


@app.callback()
def options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more, to stderr.")] = False,
    version: Annotated[  # noqa: ARG001 - typer acts on it
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Sets up logging, to stderr."""
    logs.set_up(verbose=verbose)


def main() -> None:
    """Runs the command; expected failures are one line on stderr."""
    try:
        app()
    except UsageError as error:
        _fail(str(error), ExitCode.USAGE)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except Exception as error:
        text = _expected(error)
        if text is None:
            raise
        _fail(text, ExitCode.FAILED)


def _expected(error: Exception) -> str | None:
    """What to say of a failure that is no defect; None if it is one."""
    # Here, so that a command that does not fail need not import what others may fail of.
    from featurewatch.deploy.errors import StackError
    from featurewatch.pipeline.errors import PipelineError
    from featurewatch.streams.bus import BusError
    from featurewatch.streams.errors import PortTakenError

    if isinstance(error, PortTakenError):
        return f"{error} (web.source_port and web.worker_port)"
    return str(error) if isinstance(error, BusError | PipelineError | StackError) else None


def _fail(text: str, code: ExitCode) -> None:
    sys.stderr.write(f"featurewatch: {text}\n")
    sys.exit(code)
