"""Tracks what changes between the rounds of requests to all nodes of a cluster. Pure.

The shell passes on listings, responses, missing responses and the end of each round; each call
returns the events to publish. Nothing is published twice, and a new observer
publishes everything once.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import orjson

from featurewatch.common.text import quoted
from featurewatch.streams.apiversions.node_features import NodeFeatures
from featurewatch.streams.events import (
    DeadLetter,
    Disagreement,
    FeatureView,
    NodeAnswer,
    NodeSilent,
)
from featurewatch.streams.types import ClusterId, FeatureLevel, FeatureName, NodeKey

TrackerEvent = NodeAnswer | NodeSilent | Disagreement | DeadLetter

Views = tuple[FeatureView, ...]

HOLD_MS: Final = 4_000
"""How long a node must have reported a level, without a break, before it counts as its view: a
change takes seconds to reach every node, and so does the start of a node."""

UNLISTED_BEFORE_GONE = 2
"""One listing may come from a broker that has itself just lost the controller."""


@dataclass(slots=True)
class _Node:
    address: str
    features: NodeFeatures | None = None
    """The features that were published last; None: none, or the node was published as silent."""
    misses: int = 0
    silent: bool = False
    unlisted: int = 0
    levels: Mapping[FeatureName, FeatureLevel] | None = None
    """The finalized levels of the last round; None: no response, or one that does not count."""
    levels_since_ms: int = 0
    """Since when it has reported levels in each round."""
    changed_ms: Mapping[FeatureName, int] = field(default_factory=dict)
    """When levels changed that changed since then, and not long ago."""
    invalid_reasons: frozenset[str] = field(default_factory=frozenset)

    def set_levels(
        self, levels: Mapping[FeatureName, FeatureLevel] | None, now_ms: int, hold_ms: int
    ) -> None:
        """Takes the levels of a round."""
        if self.levels is None or levels is None:
            self.levels_since_ms, self.changed_ms = now_ms, {}
        elif self.changed_ms or levels != self.levels:
            none = FeatureLevel(0)
            changed = {
                name: now_ms
                for name in levels.keys() | self.levels.keys()
                if levels.get(name, none) != self.levels.get(name, none)
            }
            recent = {n: ms for n, ms in self.changed_ms.items() if now_ms - ms < hold_ms}
            self.changed_ms = recent | changed
        self.levels = levels

    def held_ms(self, name: FeatureName, now_ms: int) -> int:
        """How long it has reported the level of a feature, at least."""
        return now_ms - max(self.levels_since_ms, self.changed_ms.get(name, self.levels_since_ms))


class NodeTracker:
    """The nodes of one cluster; one without ``misses`` responses in a row is silent.

    A level that a node reported for less than ``hold_ms`` does not count as its view.
    """

    def __init__(self, cluster: ClusterId, misses: int = 3, hold_ms: int = HOLD_MS) -> None:
        self.cluster = cluster
        self._misses = misses
        self._hold_ms = hold_ms
        self._nodes: dict[NodeKey, _Node] = {}
        self._views: dict[FeatureName, Views] = {}

    @property
    def nodes(self) -> Mapping[NodeKey, str]:
        """The nodes to query, and their addresses."""
        return {key: node.address for key, node in self._nodes.items()}

    @property
    def is_whole(self) -> bool:
        """Whether every node's features, or its silence, were published."""
        return all(node.features is not None or node.silent for node in self._nodes.values())

    def republish(self, now_ms: int) -> list[TrackerEvent]:
        """Returns the events to publish again; the nodes' next responses are published too."""
        events: list[TrackerEvent] = []
        for key, node in self._nodes.items():
            node.features = None
            if node.silent:
                detail = "it still does not answer"
                events.append(self._silence(key, node.address, detail, now_ms, gone=False))
        events += [
            Disagreement(self.cluster, feature, views, now_ms)
            for feature, views in sorted(self._views.items())
            if len(views) > 1
        ]
        return events

    def on_listing(self, nodes: Mapping[NodeKey, str], now_ms: int) -> list[TrackerEvent]:
        """Takes the cluster's nodes and addresses, and drops nodes that it no longer lists.

        A node is dropped at the second listing without it.
        """
        events: list[TrackerEvent] = []
        for key, address in nodes.items():
            node = self._nodes.setdefault(key, _Node(address))
            node.unlisted = 0
            if node.address != address:
                node.address = address
                # Published again: the address is part of the event.
                node.features = None
        for key in [key for key in self._nodes if key not in nodes]:
            node = self._nodes[key]
            node.unlisted += 1
            if node.unlisted < UNLISTED_BEFORE_GONE:
                continue
            detail = "the cluster no longer lists it"
            events.append(self._silence(key, node.address, detail, now_ms, gone=True))
            del self._nodes[key]
        return events

    def withdraw(self, detail: str, now_ms: int) -> list[TrackerEvent]:
        """Drops all nodes; ``detail`` is why nothing holds that was published of them."""
        events: list[TrackerEvent] = [
            self._silence(key, node.address, detail, now_ms, gone=True)
            for key, node in self._nodes.items()
            if node.features is not None or node.silent
        ]
        self._nodes.clear()
        return events

    def on_response(self, key: NodeKey, features: NodeFeatures, now_ms: int) -> list[TrackerEvent]:
        """A node's response; published if it differs from the last, or if the node was silent."""
        node = self._nodes.get(key)
        if node is None:
            return []
        node.misses, node.silent = 0, False
        levels = features.finalized if features.epoch >= 0 else None
        node.set_levels(levels, now_ms, self._hold_ms)
        if node.features is not None and node.features.same_features(features):
            return []
        node.features = features
        events: list[TrackerEvent] = [
            NodeAnswer(
                cluster=self.cluster,
                role=key.role,
                node_id=key.node_id,
                address=node.address,
                supported=features.supported,
                finalized=features.finalized,
                epoch=features.epoch,
                complete=features.complete,
                seen_ms=now_ms,
            )
        ]
        events += self._new_invalid(key, node, features, now_ms)
        return events

    def on_no_response(self, key: NodeKey, detail: str, now_ms: int) -> list[TrackerEvent]:
        """A node that did not respond; ``detail`` is why, in one line."""
        node = self._nodes.get(key)
        if node is None:
            return []
        node.misses += 1
        node.set_levels(None, now_ms, self._hold_ms)
        if node.misses < self._misses or node.silent:
            return []
        node.silent, node.features = True, None
        return [self._silence(key, node.address, detail, now_ms, gone=False)]

    def end_round(self, now_ms: int) -> list[TrackerEvent]:
        """The round is over: publish on which features nodes disagree, where that changed.

        Only levels that a node has reported for the time of the hold count: a node that is behind
        by the time that a change needs to propagate does not disagree, and neither does one that
        has just started again. Epochs are not compared; brokers and controllers count them
        differently.
        """
        views = self._stable_views(now_ms)
        events: list[TrackerEvent] = []
        unsettled = {
            str(key): node
            for key, node in self._nodes.items()
            if node.levels is None
            or node.changed_ms
            or now_ms - node.levels_since_ms < self._hold_ms
        }
        for feature in sorted(views.keys() | self._views.keys()):
            current, before = views.get(feature, ()), self._views.get(feature, ())
            if len(before) > 1 and self._may_still_hold(feature, before, unsettled, now_ms):
                continue
            if current != before and (len(current) > 1 or len(before) > 1):
                events.append(Disagreement(self.cluster, feature, current, now_ms))
            self._views[feature] = current
        self._views = {
            feature: views for feature, views in self._views.items() if len(views) > 1 or _on(views)
        }
        return events

    def _may_still_hold(
        self,
        feature: FeatureName,
        views: Views,
        unsettled: Mapping[str, _Node],
        now_ms: int,
    ) -> bool:
        """Whether a node of these views missed a request, or reports the same level since then.

        It is not gone yet: it may well have the level that it had. The ``unsettled`` nodes are
        those that may have missed one.
        """
        for view in views:
            for node in map(unsettled.__getitem__, unsettled.keys() & view.nodes):
                if node.levels is None:
                    if node.misses and not node.silent:
                        return True
                elif (
                    node.levels.get(feature, FeatureLevel(0)) == view.level
                    and node.held_ms(feature, now_ms) < self._hold_ms
                ):
                    return True
        return False

    def _stable_views(self, now_ms: int) -> dict[FeatureName, Views]:
        stable = {
            key: (node.changed_ms, node.levels)
            for key, node in self._nodes.items()
            if node.levels is not None and now_ms - node.levels_since_ms >= self._hold_ms
        }
        held_since_ms = now_ms - self._hold_ms
        names = self._views.keys() | {name for _, levels in stable.values() for name in levels}
        views: dict[FeatureName, Views] = {}
        for name in names:
            by_level: defaultdict[FeatureLevel, list[NodeKey]] = defaultdict(list)
            for key, (changed_ms, levels) in stable.items():
                # Most nodes have changed nothing lately.
                if not changed_ms or changed_ms.get(name, held_since_ms) <= held_since_ms:
                    by_level[levels.get(name, FeatureLevel(0))].append(key)
            views[name] = tuple(
                FeatureView(level, tuple(str(key) for key in sorted(by_level[level])))
                for level in sorted(by_level)
            )
        return views

    def _silence(
        self, key: NodeKey, address: str, detail: str, now_ms: int, *, gone: bool
    ) -> NodeSilent:
        return NodeSilent(self.cluster, key.role, key.node_id, address, gone, detail, now_ms)

    def _new_invalid(
        self, key: NodeKey, node: _Node, answer: NodeFeatures, now_ms: int
    ) -> Iterable[DeadLetter]:
        reported, node.invalid_reasons = (
            node.invalid_reasons,
            frozenset(reason for _, reason in answer.invalid),
        )
        for advertised, reason in answer.invalid:
            if reason not in reported:
                yield DeadLetter(
                    self.cluster,
                    f"ApiVersions answer of {key}, feature {quoted(advertised.name)!r}",
                    f"{node.address}: {reason}, so it is left out: upgrade or stop the node",
                    orjson.dumps(advertised._asdict()),
                    now_ms,
                )


def _on(views: Views) -> bool:
    return any(view.level > 0 for view in views)
