"""``featurewatch shell``: the commands of one cluster, one after another."""

from featurewatch.cli.commands.shell.command import shell

__all__ = ["shell"]
