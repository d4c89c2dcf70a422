"""``featurewatch rehearse``."""

from featurewatch.cli.commands.rehearse.command import rehearse

__all__ = ["rehearse"]
