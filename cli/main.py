"""The command ``featurewatch``."""

import sys
from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from cli import (
    alerts,
    changes,
    demo,
    epochs,
    logs,
    pipeline,
    retire,
    stack,
    state,
    up,
    watch,
    worker,
)
from cli.errors import Exit, UsageError
from deploy.errors import StackError
from pipeline.errors import PipelineError
from streams.bus import BusError
from streams.errors import PortTakenError

app = typer.Typer(
    name="featurewatch",
    help="Follows the feature levels of Kafka clusters live: what changed, which node is "
    "incompatible, what blocks the next level.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for command in (up, watch, worker, state, changes, alerts, epochs, retire, demo):
    command.register(app)
app.add_typer(stack.app, name="stack")
app.add_typer(pipeline.app, name="pipeline")


def _version(asked: bool) -> None:
    if asked:
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
        _fail(str(error), Exit.USAGE)
    except PortTakenError as error:
        _fail(f"{error} (web.source_port and web.worker_port)", Exit.FAILED)
    except (BusError, PipelineError, StackError) as error:
        _fail(str(error), Exit.FAILED)
    except KeyboardInterrupt:
        sys.exit(130)


def _fail(text: str, code: Exit) -> None:
    sys.stderr.write(f"featurewatch: {text}\n")
    sys.exit(code)
