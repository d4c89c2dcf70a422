"""The fold of what stands on ``featurewatch.api-versions``."""

from dataclasses import replace

from immutables import Map

from featurewatch.streams.events import Disagreement, NodeAnswer, NodeSilent
from featurewatch.streams.types import NodeKey, Role
from featurewatch.tables.image.cluster import (
    NOTHING,
    SKIPPED,
    Authority,
    ClusterDelta,
    ClusterImage,
)
from featurewatch.tables.image.features import FeaturesImage, level_changes
from featurewatch.tables.image.nodes import Node, intern_capabilities
from featurewatch.tables.image.provenance import AnswerProvenance

Folded = tuple[ClusterImage, ClusterDelta]


def fold_node_answer(image: ClusterImage, event: NodeAnswer) -> Folded:
    """Takes in what a node says; it is the registration where nothing else is followed."""
    node = _node(event)
    before = image.answers.get(node.key) or image.nodes.get(node.key)
    if before is not None and _heard_ms(before) > event.seen_ms:
        return image, SKIPPED
    if before is not None and _heard_ms(before) == event.seen_ms:
        # Taken in before; but after a crash perhaps the node only, and not yet the levels.
        node = before
    if _outranked(image):
        if node is before:
            return image, SKIPPED
        changes = {node.key: node}
        return replace(image, answers=image.answers.with_changes(changes)), ClusterDelta(
            answers=changes
        )
    features = _adopted(image, event)
    if node is before and features is image.features and image.authority is Authority.ANSWERS:
        return image, SKIPPED
    after = replace(
        image,
        authority=Authority.ANSWERS,
        nodes=image.nodes.with_changes({node.key: node}),
        features=features,
    )
    levels = level_changes(image.features, features)
    return after, ClusterDelta(nodes={node.key: node}, levels=levels)


def fold_node_silent(image: ClusterImage, event: NodeSilent) -> Folded:
    """Takes in that a node does not answer, or is no longer listed."""
    key = NodeKey(event.role, event.node_id)
    as_answer = _outranked(image)
    before = (image.answers if as_answer else image.nodes).get(key)
    if before is None or _heard_ms(before) >= event.seen_ms:
        return image, SKIPPED
    changes = {key: None if event.gone else before._replace(silent=True)}
    if as_answer:
        return replace(image, answers=image.answers.with_changes(changes)), ClusterDelta(
            answers=changes
        )
    return replace(image, nodes=image.nodes.with_changes(changes)), ClusterDelta(nodes=changes)


def fold_disagreement(image: ClusterImage, event: Disagreement) -> Folded:
    """Takes in that nodes see different levels of a feature, or agree again."""
    if len(event.views) < 2:
        disagreements = image.disagreements
        if event.feature in disagreements:
            disagreements = disagreements.delete(event.feature)
    else:
        disagreements = image.disagreements.set(event.feature, event.views)
    return replace(image, disagreements=disagreements), NOTHING


def _outranked(image: ClusterImage) -> bool:
    return image.authority in (Authority.LOG, Authority.ZOOKEEPER)


def _node(event: NodeAnswer) -> Node:
    return Node(
        key=NodeKey(event.role, event.node_id),
        capabilities=intern_capabilities(event.supported, complete=event.complete),
        incarnation="",
        epoch=-1,
        fenced=False,
        shutting_down=False,
        migrating=False,
        silent=False,
        provenance=AnswerProvenance(event.role, event.node_id, event.epoch, event.seen_ms),
    )


def _heard_ms(node: Node) -> int:
    return node.provenance.seen_ms if isinstance(node.provenance, AnswerProvenance) else -1


def _adopted(image: ClusterImage, event: NodeAnswer) -> FeaturesImage:
    """The finalized levels after an answer: the highest epoch wins, brokers before controllers.

    An answer counts only if its epoch is 0 or more (KIP-778). A broker's epoch is the highest
    offset of its image, a controller's the offset of the last change, so the two do not compare:
    once a broker has spoken controllers are not asked. One way they do: a broker whose image ends
    before a change that a controller has told of does not know that change yet.
    """
    if event.epoch < 0:
        return image.features
    known = image.features.provenance
    if isinstance(known, AnswerProvenance):
        if known.role is Role.BROKER and event.role is Role.CONTROLLER:
            return image.features
        if event.epoch < known.epoch:
            return image.features
    provenance = AnswerProvenance(event.role, event.node_id, event.epoch, event.seen_ms)
    levels = Map({name: level for name, level in event.finalized.items() if level > 0})
    return image.features.with_snapshot(levels, event.epoch, provenance)
