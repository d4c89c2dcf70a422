"""Errors of the command line, and its exit codes."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The meaning of a command's exit code."""

    GOOD = 0
    FAILED = 1
    USAGE = 2
    NO = 3
    """The answer is no."""
    UNKNOWN = 4
    """The answer cannot be known now."""
    INTERRUPTED = 130
    """Ctrl-C, as shells count it."""
    TERMINATED = 143
    """SIGTERM, as shells count it."""


class UsageError(ValueError):
    """Wrong arguments or settings: one line with what to give instead."""
