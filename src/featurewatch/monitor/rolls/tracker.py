"""Tracks the rolls of a cluster: nodes restarted on other software, and levels changed after it.

A roll begins when a known node comes back with software of another release. It is *rolled* when no
registered node is behind any more, and *finalized* by the first level that is then changed in its
direction. It is *abandoned* if all its nodes go back before that. New nodes, such as those of a new
cluster, and restarts on the same software do not begin a roll.

A downgrade lowers levels first (KIP-778), so its levels are those lowered since the previous roll;
it ends when it is rolled.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from featurewatch.controller.downgrade_path import rollback_path
from featurewatch.controller.software import (
    Direction,
    direction_of,
    identifies_software,
    release_name,
)
from featurewatch.monitor.alerts import Cause
from featurewatch.monitor.rolls.roll import (
    CapabilityChange,
    Roll,
    RolledNode,
    RollHistory,
    RollState,
)
from featurewatch.streams.types import NodeKey
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.features import LevelChange
from featurewatch.tables.image.nodes import Capabilities

MAX_DEPARTED: Final = 1000
"""The maximum number of departed nodes whose software is kept; the oldest are dropped."""


def track_rolls(
    rolls: RollHistory,
    image: ClusterImage,
    changes: Sequence[CapabilityChange],
    levels: Sequence[LevelChange],
    cause: Cause,
) -> tuple[RollHistory, tuple[Roll, ...]]:
    """The rolls after an event that changed capabilities or levels, and the rolls that it ended.

    ``image`` is the cluster after the event. Pure; the cost follows the changes and the number of
    node classes.
    """
    tracker = _RollTracker(rolls, image, cause)
    tracker.lower(levels)
    for change in changes:
        tracker.move(change)
    if changes:
        tracker.settle()
    tracker.set_levels(levels)
    return tracker.result()


class _RollTracker:
    """Applies one event to the rolls."""

    def __init__(self, rolls: RollHistory, image: ClusterImage, cause: Cause) -> None:
        self._image = image
        self._cause = cause
        self._roll, self._before = rolls.current, rolls.before
        self._lowered, self._last = dict(rolls.lowered), dict(rolls.last)
        self._ended: list[Roll] = []
        self._arrived = False

    def lower(self, levels: Iterable[LevelChange]) -> None:
        """Records lowered levels, which may precede a downgrade; drops levels raised again."""
        for change in levels:
            if change.after < change.before:
                first, _ = self._lowered.get(change.feature, (change.before, change.after))
                self._lowered[change.feature] = (first, change.after)
            else:
                self._lowered.pop(change.feature, None)

    def move(self, change: CapabilityChange) -> None:
        """Applies a node that registers, leaves or changes its software."""
        key, before, after = change
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
            is_known = _is_among(before, (*roll.old, *roll.new))
            old = roll.old if is_known else (*roll.old, before)
            self._roll = self._with_node(replace(roll, old=old, new=(*roll.new, after)), key, after)
        else:  # the node went back; `settle` checks whether any is left
            nodes = tuple(node for node in roll.nodes if (node.role, node.node_id) != key)
            self._roll = replace(roll, nodes=nodes)

    def _begin(
        self, key: NodeKey, before: Capabilities, after: Capabilities, direction: Direction
    ) -> None:
        at_ms = self._cause.at_ms
        if self._roll is not None:
            self._before = self._roll
            ended_ms = at_ms if self._roll.ended_ms is None else self._roll.ended_ms
            self._ended.append(replace(self._roll, ended_ms=ended_ms))
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
        # A straggler: the roll was not complete when it seemed to be.
        return replace(roll, rolled_ms=at_ms, ended_ms=None if roll.ended_ms is None else at_ms)

    def _after_start(self, roll: Roll) -> int:
        """The time of the event, but not before the roll's start: clocks of sources differ."""
        return max(self._cause.at_ms, roll.started_ms)

    def settle(self) -> None:
        """Updates whether the roll is complete, after all nodes of the event are applied."""
        roll = self._roll
        if roll is None or roll.ended_ms is not None:
            return
        if not roll.nodes:
            self._abandon(replace(roll, ended_ms=self._after_start(roll)))
            return
        if not self._arrived and self._image.authority is not Authority.LOG:
            return  # an absent node may be restarting: only the log shows who has left
        if any(_is_behind(key.capabilities, roll) for key in self._image.nodes.classes):
            self._roll = replace(roll, rolled_ms=None)
        elif roll.rolled_ms is None:
            self._roll = _end_if_complete(replace(roll, rolled_ms=self._after_start(roll)))

    def _abandon(self, roll: Roll) -> None:
        """Ends the roll; the previous roll continues if it was not abandoned itself."""
        before, self._before = self._before, None
        if before is None or before.state is RollState.ABANDONED:
            self._roll = roll
        else:
            self._ended.append(self._with_rollback_path(roll))
            self._roll = before

    def set_levels(self, levels: Iterable[LevelChange]) -> None:
        """Applies levels that change in the roll's direction; the first finalizes it."""
        roll = self._roll
        if roll is None or roll.state is RollState.ABANDONED:
            return
        if roll.direction is Direction.DOWNGRADE and roll.ended_ms is not None:
            return  # lowered for another roll
        new_levels, is_finalizing = dict(roll.levels), roll.rolled_ms is not None
        for change in levels:
            if (change.after - change.before) * roll.direction.sign > 0:
                first, _ = new_levels.get(change.feature, (change.before, change.after))
                new_levels[change.feature] = (first, change.after)
                is_finalizing = is_finalizing or any(
                    _excludes(capabilities, change) for capabilities in roll.old
                )
        if new_levels == roll.levels:
            return
        if is_finalizing and roll.finalized_ms is None:
            roll = replace(roll, finalized_ms=self._after_start(roll))
        self._roll = _end_if_complete(replace(roll, levels=new_levels))

    def result(self) -> tuple[RollHistory, tuple[Roll, ...]]:
        """The history after the event, and the rolls that ended."""
        roll = None if self._roll is None else self._with_rollback_path(self._roll)
        last = dict([*self._last.items()][-MAX_DEPARTED:])
        return RollHistory(roll, self._before, self._lowered, last), tuple(self._ended)

    def _with_rollback_path(self, roll: Roll) -> Roll:
        newest = next((node.release for node in roll.nodes[::-1] if node.release), "")
        path = rollback_path(roll.direction, self._image.features.levels, roll.old, newest)
        return roll if path == roll.rollback_path else replace(roll, rollback_path=path)


def _end_if_complete(roll: Roll) -> Roll:
    """Ends an upgrade that is finalized, or a downgrade that is rolled."""
    if roll.ended_ms is not None or roll.rolled_ms is None:
        return roll
    if roll.finalized_ms is not None:
        return replace(roll, ended_ms=max(roll.rolled_ms, roll.finalized_ms))
    return replace(roll, ended_ms=roll.rolled_ms) if roll.direction is Direction.DOWNGRADE else roll


def _is_among(capabilities: Capabilities, others: Iterable[Capabilities]) -> bool:
    return any(direction_of(capabilities, other) is None for other in others)


def _is_joined(roll: Roll, newcomer: Capabilities) -> bool:
    return roll.state is RollState.ROLLING and _is_among(newcomer, roll.new)


def _is_behind(capabilities: Capabilities, roll: Roll) -> bool:
    """Whether a node may be behind; one that does not identify its software may be."""
    if not identifies_software(capabilities):
        return True
    return any(direction_of(capabilities, new) is roll.direction for new in roll.new)


def _excludes(capabilities: Capabilities, change: LevelChange) -> bool:
    return not capabilities.ranges.of(change.feature).includes(change.after)
