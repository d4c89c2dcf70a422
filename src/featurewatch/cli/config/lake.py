"""Options of the commands that run Spark."""

import math
from typing import Annotated

from click import BadParameter

from featurewatch.cli.command_line import Option

Master = Annotated[
    str,
    Option("--master", metavar="URL", help="Spark's master; local[*] runs in this process."),
]


def finite(value: float) -> float:
    """The value of an option, if it is a finite number."""
    if not math.isfinite(value):
        raise BadParameter("it must be a finite number")
    return value
