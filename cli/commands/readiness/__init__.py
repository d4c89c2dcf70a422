"""``featurewatch readiness``."""

from featurewatch.cli.commands.readiness.command import register

__all__ = ["register"]
