"""Asks a person before something is changed. What is asked stands on stderr."""

import sys
from collections.abc import Iterable


def is_asked(yes: bool) -> bool:
    """Whether there is somebody to ask: without a terminal a change goes ahead, as Kafka's does."""
    return not yes and sys.stdin.isatty()


def confirmed(lines: Iterable[str], question: str = "Go on? [y/N] ") -> bool:
    """Says the lines and asks; anything but y or yes, the end of the input too, is a no."""
    sys.stdout.flush()
    for line in lines:
        sys.stderr.write(f"{line}\n")
    sys.stderr.write(question)
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n") or not sys.stdin.isatty():
        sys.stderr.write("\n")
    return answer.strip().lower() in ("y", "yes")
