"""``featurewatch readiness``."""

from featurewatch.cli.commands.readiness.command import readiness

__all__ = ["readiness"]
