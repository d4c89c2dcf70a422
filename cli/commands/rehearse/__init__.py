"""``featurewatch rehearse``."""

from featurewatch.cli.commands.rehearse.command import register

__all__ = ["register"]
