"""Rolls of a cluster: node after node restarted on other software, and levels raised after it.

A roll begins when a node that was known comes back with software of another release. It is *rolled*
when no registered node is behind any more, and *finalized* with the first level that is then set in
its direction. Where all its nodes go back before that, it is *abandoned*. Nodes without a past, as
those of a new cluster, begin nothing; neither does a restart on the same software.

A downgrade lowers levels first (KIP-778), so that its levels are those lowered since the roll
before it; it ends when it is rolled.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from featurewatch.controller.alerts import Cause
from featurewatch.controller.downgrade_path import rollback_path
from featurewatch.controller.rolls.roll import (
    CapabilityChange,
    Roll,
    RolledNode,
    RollHistory,
    RollState,
)
from featurewatch.controller.software import (
    Direction,
    direction_of,
    identifies_software,
    release_name,
)
from featurewatch.streams.types import NodeKey
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.features import LevelChange
from featurewatch.tables.image.nodes import Capabilities

MAX_DEPARTED: Final = 1000
"""Of so many nodes that left their software is remembered, of the newest."""


def track_rolls(
    rolls: RollHistory,
    image: ClusterImage,
    moved: Sequence[CapabilityChange],
    levels: Sequence[LevelChange],
    cause: Cause,
) -> tuple[RollHistory, tuple[Roll, ...]]:
    """The rolls after an event that moved nodes or changed levels, and those that ended by it.

    ``image`` is the cluster after it. Pure; the cost follows what changed, and how many kinds of
    nodes there are.
    """
    now = _RollTracker(rolls, image, cause)
    now.lower(levels)
    for each in moved:
        now.move(each)
    if moved:
        now.settle()
    now.set_levels(levels)
    return now.result()


class _RollTracker:
    """Rolls while they take in one event."""

    def __init__(self, rolls: RollHistory, image: ClusterImage, cause: Cause) -> None:
        self._image = image
        self._cause = cause
        self._roll, self._before = rolls.current, rolls.before
        self._lowered, self._last = dict(rolls.lowered), dict(rolls.last)
        self._ended: list[Roll] = []
        self._arrived = False

    def lower(self, levels: Iterable[LevelChange]) -> None:
        """Levels go down, perhaps before a downgrade; one that goes up again is none of it."""
        for change in levels:
            if change.after < change.before:
                first, _ = self._lowered.get(change.feature, (change.before, change.after))
                self._lowered[change.feature] = (first, change.after)
            else:
                self._lowered.pop(change.feature, None)

    def move(self, moved: CapabilityChange) -> None:
        """A node comes, goes, or comes back as another."""
        key, before, after = moved
        if before is None or not identifies_software(before):
            before = self._last.get(key)
        self._last.pop(key, None)
        if after is None or not identifies_software(after):
            if before is not None:
                self._last[key] = before
            return
        self._arrived = True
        direction = None if before is None else direction_of(before, after)
        roll = self._roll
        if before is not None and direction is not None:
            self._step(key, before, after, direction)
        elif before is None and roll is not None and _is_joined(roll, after):
            self._roll = self._with_node(roll, key, after)

    def _step(
        self, key: NodeKey, before: Capabilities, after: Capabilities, direction: Direction
    ) -> None:
        roll = self._roll
        if roll is None or (roll.ended_ms is not None and not roll.nodes):
            self._begin(key, before, after, direction)
        elif roll.direction is direction and _is_among(after, roll.new):
            self._roll = self._with_node(roll, key, after)
        elif roll.rolled_ms is not None or (roll.direction is not direction and not roll.nodes):
            self._begin(key, before, after, direction)
        elif roll.direction is direction:
            known = _is_among(before, (*roll.old, *roll.new))
            old = roll.old if known else (*roll.old, before)
            self._roll = self._with_node(replace(roll, old=old, new=(*roll.new, after)), key, after)
        else:  # back where it came from; whether any is left is seen when all have moved
            nodes = tuple(each for each in roll.nodes if (each.role, each.node_id) != key)
            self._roll = replace(roll, nodes=nodes)

    def _begin(
        self, key: NodeKey, before: Capabilities, after: Capabilities, direction: Direction
    ) -> None:
        at_ms = self._cause.at_ms
        if self._roll is not None:
            self._before = self._roll
            over = at_ms if self._roll.ended_ms is None else self._roll.ended_ms
            self._ended.append(replace(self._roll, ended_ms=over))
        levels = self._lowered if direction is Direction.DOWNGRADE else {}
        self._lowered = {}
        roll = Roll(direction, self._cause.id, at_ms, (before,), (after,), levels=levels)
        self._roll = self._with_node(roll, key, after)

    def _with_node(self, roll: Roll, key: NodeKey, after: Capabilities) -> Roll:
        at_ms = self._after_start(roll)
        arrival = RolledNode(key.role, key.node_id, at_ms, release_name(after))
        roll = replace(roll, nodes=(*roll.nodes, arrival))
        if roll.rolled_ms is None or roll.finalized_ms is not None:
            return roll
        # A straggler: it was not rolled when it was thought to be.
        return replace(roll, rolled_ms=at_ms, ended_ms=None if roll.ended_ms is None else at_ms)

    def _after_start(self, roll: Roll) -> int:
        """The time of the event; clocks differ, and nothing of a roll comes before its start."""
        return max(self._cause.at_ms, roll.started_ms)

    def settle(self) -> None:
        """Whether it is rolled, now that the nodes are what they are."""
        roll = self._roll
        if roll is None or roll.ended_ms is not None:
            return
        if not roll.nodes:
            self._abandon(replace(roll, ended_ms=self._after_start(roll)))
            return
        if not self._arrived and self._image.authority is not Authority.LOG:
            return  # who is not there may be on its way back: only the log tells who has left
        if any(_is_behind(key.capabilities, roll) for key in self._image.nodes.classes):
            self._roll = replace(roll, rolled_ms=None)
        elif roll.rolled_ms is None:
            self._roll = _ended(replace(roll, rolled_ms=self._after_start(roll)))

    def _abandon(self, roll: Roll) -> None:
        """The roll before it goes on, if it was not abandoned itself."""
        before, self._before = self._before, None
        if before is None or before.state is RollState.ABANDONED:
            self._roll = roll
        else:
            self._ended.append(self._with_way_back(roll))
            self._roll = before

    def set_levels(self, levels: Iterable[LevelChange]) -> None:
        """Levels go the roll's way: the first finalizes it."""
        roll = self._roll
        if roll is None or roll.state is RollState.ABANDONED:
            return
        if roll.direction is Direction.DOWNGRADE and roll.ended_ms is not None:
            return  # lowered for another one
        found, due = dict(roll.levels), roll.rolled_ms is not None
        for change in levels:
            if (change.after - change.before) * roll.direction.sign > 0:
                first, _ = found.get(change.feature, (change.before, change.after))
                found[change.feature] = (first, change.after)
                due = due or any(_excludes(known, change) for known in roll.old)
        if found == roll.levels:
            return
        if due and roll.finalized_ms is None:
            roll = replace(roll, finalized_ms=self._after_start(roll))
        self._roll = _ended(replace(roll, levels=found))

    def result(self) -> tuple[RollHistory, tuple[Roll, ...]]:
        """What came of it."""
        roll = None if self._roll is None else self._with_way_back(self._roll)
        last = dict([*self._last.items()][-MAX_DEPARTED:])
        return RollHistory(roll, self._before, self._lowered, last), tuple(self._ended)

    def _with_way_back(self, roll: Roll) -> Roll:
        newest = next((each.release for each in roll.nodes[::-1] if each.release), "")
        found = rollback_path(roll.direction, self._image.features.levels, roll.old, newest)
        return roll if found == roll.way_back else replace(roll, way_back=found)


def _ended(roll: Roll) -> Roll:
    """An upgrade ends with levels, a downgrade with nodes."""
    if roll.ended_ms is not None or roll.rolled_ms is None:
        return roll
    if roll.finalized_ms is not None:
        return replace(roll, ended_ms=max(roll.rolled_ms, roll.finalized_ms))
    return replace(roll, ended_ms=roll.rolled_ms) if roll.direction is Direction.DOWNGRADE else roll


def _is_among(known: Capabilities, others: Iterable[Capabilities]) -> bool:
    return any(direction_of(known, other) is None for other in others)


def _is_joined(roll: Roll, newcomer: Capabilities) -> bool:
    return roll.state is RollState.ROLLING and _is_among(newcomer, roll.new)


def _is_behind(known: Capabilities, roll: Roll) -> bool:
    """Who does not tell what it runs may be behind."""
    if not identifies_software(known):
        return True
    return any(direction_of(known, new) is roll.direction for new in roll.new)


def _excludes(known: Capabilities, change: LevelChange) -> bool:
    return not known.ranges.of(change.feature).includes(change.after)
