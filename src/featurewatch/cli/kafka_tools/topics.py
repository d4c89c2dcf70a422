"""The arguments and texts of ``kafka-topics`` of release 3.9 or 4.3 (``TopicCommand``); pure.

Its texts are Kafka's own, to the byte. The two releases differ in how they name a topic that is
missing. Expressions for names are Python's: where they would differ from Java's in meaning, they
are refused.
"""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from featurewatch.cli.kafka_tools import java
from featurewatch.cli.kafka_tools.errors import KafkaToolError, KafkaUsageError

COLLISION_WARNING: Final = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') "
    "could collide. To avoid issues it is best to use either, but not both."
)
_MAX_SHORT: Final = 2**15 - 1
_OUTSIDE: Final = r"(?=[^\]]*(?:\[|$))"
"""Lookahead that holds for a character outside of square brackets."""

_INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def check_exclusive(used: Mapping[str, object], refused: Mapping[str, object]) -> None:
    """Raises `KafkaUsageError` for an option that cannot be given with another one."""
    for name, value in used.items():
        for other, other_value in refused.items():
            if value and other_value:
                raise KafkaUsageError(f'Option "[{name}]" can\'t be used with option "[{other}]"')


def single(values: Sequence[str] | None, option: str) -> str | None:
    """The value of an option that may be given once; raises `KafkaToolError`."""
    if values and len(values) > 1:
        raise KafkaToolError(
            f"Found multiple arguments for option {option}, but you asked for only one"
        )
    return values[0] if values else None


def integer(values: Sequence[str] | None, option: str) -> int | None:
    """The number that an option gives, as Java reads it; raises `KafkaToolError`."""
    text = single(values, option)
    if text is None:
        return None
    number = java.parse_int(text)
    if number is None:
        raise KafkaToolError(f"Cannot parse argument '{text}' of option {option}")
    return number


def check_counts(partitions: int | None, replication_factor: int | None) -> None:
    """Raises `KafkaToolError` for a count that no topic can have."""
    if replication_factor is not None and not 1 <= replication_factor <= _MAX_SHORT:
        raise KafkaToolError(f"The replication factor must be between 1 and {_MAX_SHORT} inclusive")
    if partitions is not None and partitions < 1:
        raise KafkaToolError("The partitions must be greater than 0")


def parse_assignment(text: str | None) -> list[list[int]] | None:
    """The replicas of each partition of ``1:2,2:3``; raises `KafkaToolError`."""
    if not text:
        return None
    assignment: list[list[int]] = []
    for number, part in enumerate(java.split(text, ",")):
        replicas = [_broker_id(item.strip()) for item in java.split(part, ":")]
        if doubled := [str(item) for item in dict.fromkeys(replicas) if replicas.count(item) > 1]:
            raise KafkaToolError(
                f"Partition replica lists may not contain duplicate entries: {','.join(doubled)}"
            )
        assignment.append(replicas)
        if len(replicas) != len(assignment[0]):
            raise KafkaToolError(f"Partition {number} has different replication factor: {replicas}")
    return assignment


def parse_configs(texts: Iterable[str] | None) -> dict[str, str]:
    """The settings of ``key=val`` texts; raises `KafkaToolError`."""
    pairs = [re.split(r"\s*=\s*", text) for text in texts or ()]
    for pair in pairs:
        while len(pair) > 1 and not pair[-1]:
            pair.pop()
    if any(len(pair) != 2 for pair in pairs):
        raise KafkaToolError(
            "requirement failed: Invalid topic config: all configs to be added must be in the "
            'format "key=val".'
        )
    return {key.strip(): value.strip() for key, value in pairs}


def parse_setting_changes(
    added: Sequence[str] | None, deleted: Sequence[str] | None
) -> tuple[dict[str, str], list[str]]:
    """Settings to set and to delete, as ``kafka-configs`` takes them; raises `KafkaToolError`.

    ``a=1,b=[x,y]`` sets two; brackets keep commas and are removed.
    """
    values: dict[str, str] = {}
    for text in added or ():
        for part in re.split(f",{_OUTSIDE}", text):
            pair = re.split(rf"\s*=\s*{_OUTSIDE}", part)
            if len(pair) != 2:
                raise KafkaToolError(
                    "requirement failed: Invalid entity config: all configs to be added must be in "
                    'the format "key=val".'
                )
            values[pair[0].strip()] = re.sub(r"[\[\]]", "", pair[1]).strip()
    names = [name.strip() for text in deleted or () for name in text.split(",")]
    return values, [name for name in names if name]


def has_collision_chars(name: str) -> bool:
    """Whether the name of a metric may be that of another topic (``Topic.hasCollisionChars``)."""
    return "." in name or "_" in name


def matching(names: Iterable[str], expression: str | None) -> list[str]:
    """The names that a list of expressions matches whole, in order (``IncludeList``).

    Raises:
        KafkaToolError: The expression is invalid, or means something else in Java.
    """
    names = sorted(names)
    if expression is None:
        return names
    text = expression.strip().replace(",", "|").replace(" ", "")
    text = text.lstrip("\"'").rstrip("\"'")
    try:
        with warnings.catch_warnings():
            # Python warns of sets within sets, which Java has.
            warnings.simplefilter("error", FutureWarning)
            pattern = re.compile(text)
    except (re.error, FutureWarning, RecursionError, OverflowError):
        raise KafkaToolError(f"{text} is an invalid regex.") from None
    return [name for name in names if pattern.fullmatch(name)]


def is_internal(name: str) -> bool:
    """Whether the topic is internal to Kafka (``Topic.isInternal``)."""
    return name in _INTERNAL


def missing_topic(name: str, release: str, right: str = "") -> KafkaToolError:
    """The error that no topic matches; 3.9 prints Java's ``Optional`` around the name."""
    shown = f"Optional[{name}]" if release == "3.9" else name
    return KafkaToolError(f"Topic '{shown}' does not exist as expected", right=right)


def _broker_id(text: str) -> int:
    number = java.parse_int(text)
    if number is None:
        raise KafkaToolError(f'For input string: "{text}"')
    return number
