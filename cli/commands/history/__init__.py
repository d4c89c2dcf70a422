"""``featurewatch history``: what was, from the tables of the lake, without a JVM."""

import typer

from featurewatch.cli.commands.history.command import diff, plot, show, upgrades

app = typer.Typer(
    help="What was: a cluster at any moment, what changed, its upgrades, and a picture of it all.",
    no_args_is_help=True,
)
for command in (show, diff, upgrades, plot):
    app.command()(command)
