"""Prints the results of commands that need no cluster."""

import re
from collections.abc import Iterable, Iterator

from featurewatch.cli.commands.features.common.documents import print_document
from featurewatch.cli.kafka_tools.target import AdminTarget

_LEVEL = re.compile(r"(?P<indent> *)(?P<feature>[^=]+)=(?P<level>-?\d+)(?: \((?P<name>[^)]+)\))?")


def look_up(target: AdminTarget, lines: Iterator[str]) -> None:
    """Prints the tool's lines, or their content as one document; raises `KafkaToolError`."""
    if target.as_json:
        print_document({"features": list(_parsed(lines))})
    else:
        target.lines(lines)


def _parsed(lines: Iterable[str]) -> Iterator[dict[str, object]]:
    feature: dict[str, object] | None = None
    for line in lines:
        match = _LEVEL.match(line)
        if match is None:
            continue
        level = {"feature": match["feature"], "level": int(match["level"]), "name": match["name"]}
        if not match["indent"]:
            if feature is not None:
                yield feature
            feature = {**level, "requires": []}
        elif feature is not None:
            requires = feature["requires"]
            assert isinstance(requires, list)  # noqa: S101 - it was made so above
            requires.append(level)
    if feature is not None:
        yield feature
