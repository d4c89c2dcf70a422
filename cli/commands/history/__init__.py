"""``featurewatch history``: what was, from the tables of the lake, without a JVM."""

import typer

from featurewatch.cli.commands.history.command import diff, plot, show, upgrades

app = typer.Typer(
    help="What was: a cluster at any moment, what changed, its upgrades, and a picture of it all.",
    no_args_is_help=True,
)
app.command()(show)
app.command()(diff)
app.command()(upgrades)
app.command()(plot)
