"""``featurewatch pipeline``: the history of the topics, as tables of a lake, by Spark."""

import typer

from featurewatch.cli.commands.pipeline.audit import audit as run_audit
from featurewatch.cli.commands.pipeline.run import maintain, run

app = typer.Typer(help="The history of the topics as Delta tables, by Spark.", no_args_is_help=True)
app.command()(run)
app.command()(maintain)
app.command()(run_audit)
