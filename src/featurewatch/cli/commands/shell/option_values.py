"""The values that an option can be completed with; pure.

What an option takes follows from its name and its metavar, the same in all commands.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from featurewatch.cli.commands.shell.catalogue import OptionShape
from featurewatch.cli.commands.shell.cluster_names import (
    ClusterNames,
    FeatureLevels,
    topics_with,
)

MAX_LEVELS: Final = 100
"""Of one feature, from the highest on."""

NEW_TOPIC: Final = ("topics", "create")
"""The command whose ``--topic`` is not there yet."""


class Value(NamedTuple):
    """A value, or the next part of one; ``kept`` is the part of the typed text before it."""

    text: str
    note: str = ""
    kept: str = ""


_Complete = Callable[[ClusterNames, str], Iterator[Value]]


def values_of(
    path: tuple[str, ...], option: OptionShape, typed: str, names: ClusterNames
) -> Iterator[Value]:
    """The values of an option that begin with the typed text; empty if they are unknown."""
    if option.choices:
        return (Value(choice) for choice in option.choices if choice.startswith(typed))
    complete = _BY_OPTION.get((option.names[0], option.metavar))
    if complete is None or (complete is _topics and path == NEW_TOPIC):
        return iter(())
    return complete(names, typed)


def _topics(names: ClusterNames, typed: str) -> Iterator[Value]:
    return map(Value, topics_with(names, typed))


def _brokers(names: ClusterNames, typed: str) -> Iterator[Value]:
    for broker in names.brokers:
        if broker.node_id.startswith(typed):
            yield Value(broker.node_id, broker.address)


def _features(names: ClusterNames, typed: str) -> Iterator[Value]:
    for feature in names.features:
        if feature.name.startswith(typed):
            yield Value(feature.name, _levels_note(feature))


def _feature_levels(names: ClusterNames, typed: str) -> Iterator[Value]:
    name, is_named, level = typed.partition("=")
    for feature in names.features:
        if not is_named and feature.name.startswith(name):
            yield Value(f"{feature.name}=", _levels_note(feature))
        if is_named and feature.name == name:
            lowest = max(feature.lowest, 0, feature.highest - MAX_LEVELS + 1)
            for number in range(feature.highest, lowest - 1, -1):
                if str(number).startswith(level):
                    note = "finalized" if number == feature.finalized else ""
                    yield Value(str(number), note, kept=f"{name}=")


def _levels_note(feature: FeatureLevels) -> str:
    finalized = "not finalized" if feature.finalized is None else f"finalized {feature.finalized}"
    return f"{finalized}, supported {feature.lowest}-{feature.highest}"


def _listed(complete: _Complete) -> _Complete:
    """Completes the last item of a comma list, but for those that are in it already."""

    def complete_last(names: ClusterNames, typed: str) -> Iterator[Value]:
        before, comma, last = typed.rpartition(",")
        listed = set(before.split(","))
        for value in complete(names, last):
            if value.text not in listed:
                yield value._replace(kept=before + comma)

    return complete_last


_BY_OPTION: Final[dict[tuple[str, str], _Complete]] = {
    ("--topic", "NAME"): _topics,
    ("--node-id", "ID"): _brokers,
    ("--broker-list", "ID,..."): _listed(_brokers),
    ("--feature", "NAME"): _features,
    ("--feature", "NAME=LEVEL"): _feature_levels,
    ("--features", "NAME,..."): _listed(_features),
}
"""By an option's name and metavar."""

COMPLETED_OPTIONS: Final = frozenset(_BY_OPTION)
