"""``featurewatch features``: stands in for ``kafka-features``, and asks before it changes.

The group of commands is `cli.features.group`, imported when it is asked for: what is printed can be
had without the machinery that reads command lines.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "app":
        from cli.features.group import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
