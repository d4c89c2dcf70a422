"""Applies the events of the topic ``featurewatch.api-versions``."""

from dataclasses import replace
from typing import Final

from immutables import Map

from featurewatch.streams.events import (
    Disagreement,
    NodeAnswer,
    NodeSilent,
    QuorumStatus,
    SourceResync,
)
from featurewatch.streams.topics import API_VERSIONS
from featurewatch.streams.types import NodeKey, Role
from featurewatch.tables.image.answers import AnswersDelta, AnswersResync
from featurewatch.tables.image.cluster import (
    NOTHING,
    SKIPPED,
    Authority,
    ClusterDelta,
    ClusterImage,
)
from featurewatch.tables.image.features import FeaturesImage, level_changes
from featurewatch.tables.image.limits import (
    MAX_FEATURES,
    MAX_VOTERS,
    BeyondLimitError,
    check_features,
    check_node,
    check_number,
)
from featurewatch.tables.image.nodes import (
    CapabilityKey,
    Node,
    NodeChanges,
    NodesImage,
    intern_capabilities,
)
from featurewatch.tables.image.provenance import AnswerProvenance
from featurewatch.tables.image.sources import count_unreadable

Folded = tuple[ClusterImage, ClusterDelta]

ANSWER: Final = "ANSWER"
"""The kind under which a response with more than an image holds is counted as unreadable."""


def fold_answer(
    image: ClusterImage, event: NodeAnswer | NodeSilent | Disagreement | QuorumStatus
) -> Folded:
    """Applies what nodes answered, or that one did not."""
    match event:
        case NodeAnswer():
            return fold_node_answer(image, event)
        case NodeSilent():
            return fold_node_silent(image, event)
        case Disagreement():
            return fold_disagreement(image, event)
        case QuorumStatus():
            return fold_quorum(image, event)


def fold_node_answer(image: ClusterImage, event: NodeAnswer) -> Folded:
    """Applies a node's ApiVersions response; it is the registration if there is no other source.

    Responses count in the order of the topic. Their times are the source's, whose clock may have
    been ahead.
    """
    beside = _has_higher_authority(image)
    try:
        check_features(event.supported, len(event.supported))
        check_features(event.finalized, len(event.finalized))
        node = _node(event)
        _check_number(image.answers.nodes if beside else image.nodes, node)
    except BeyondLimitError as error:
        return _unreadable(image, f"{event.role}-{event.node_id}", str(error)), NOTHING
    before = image.answers.nodes.get(node.key) or image.nodes.get(node.key)
    if before is not None and _seen_ms(before) == event.seen_ms:
        # Applied before; but after a crash perhaps only the node was persisted, and not the levels.
        node = before
    if beside:
        if node is before:
            return image, SKIPPED
        return _with_answers(image, {node.key: node})
    features = _with_levels(image, event)
    if node is before and features is image.features and image.authority is Authority.ANSWERS:
        return image, SKIPPED
    after = replace(
        image,
        authority=Authority.ANSWERS,
        nodes=image.nodes.with_changes({node.key: node}),
        features=features,
        answers=image.answers.published(node.key),
    )
    levels = level_changes(image.features, features)
    return after, ClusterDelta(nodes={node.key: node}, levels=levels)


def fold_node_silent(image: ClusterImage, event: NodeSilent) -> Folded:
    """Applies that a node does not respond, or is no longer listed."""
    key = NodeKey(event.role, event.node_id)
    is_answer = _has_higher_authority(image)
    before = (image.answers.nodes if is_answer else image.nodes).get(key)
    if before is None:
        return image, SKIPPED
    if before.silent and not event.gone:
        answers = image.answers.published(key)
        if answers is image.answers:
            return image, SKIPPED
        return replace(image, answers=answers), NOTHING
    changes = {key: None if event.gone else before._replace(silent=True)}
    if is_answer:
        return _with_answers(image, changes)
    nodes, answers = image.nodes.with_changes(changes), image.answers.published(key)
    return replace(image, nodes=nodes, answers=answers), ClusterDelta(nodes=changes)


def fold_disagreement(image: ClusterImage, event: Disagreement) -> Folded:
    """Applies that nodes report different levels of a feature, or agree again."""
    answers = image.answers
    disagreements, resync = answers.disagreements, answers.resync
    if resync is not None and event.feature in resync.features:
        resync = replace(resync, features=resync.features - {event.feature})
    if len(event.views) < 2:
        if event.feature in disagreements:
            disagreements = disagreements.delete(event.feature)
    elif event.feature not in disagreements and len(disagreements) >= MAX_FEATURES:
        reason = f"{event.feature} is beyond the {MAX_FEATURES} features that nodes may disagree on"
        return _unreadable(image, event.feature, reason), NOTHING
    else:
        disagreements = disagreements.set(event.feature, event.views)
    answers = replace(answers, disagreements=disagreements, resync=resync)
    return replace(image, answers=answers), NOTHING


def fold_quorum(image: ClusterImage, event: QuorumStatus) -> Folded:
    """Applies a description of the quorum; one without voters drops what was known.

    Descriptions count in the order of the topic.
    """
    try:
        check_number(event.voters, MAX_VOTERS, "voters")
        check_number(event.observers, MAX_VOTERS, "observers")
    except BeyondLimitError as error:
        return _unreadable(image, "quorum", str(error)), NOTHING
    answers = image.answers
    if event == answers.quorum and not (answers.resync and answers.resync.quorum):
        return image, SKIPPED
    resync = answers.resync and replace(answers.resync, quorum=False)
    quorum = event if event.voters else None
    return replace(image, answers=replace(answers, resync=resync, quorum=quorum)), NOTHING


def fold_answers_resync(image: ClusterImage, event: SourceResync) -> Folded:
    """Begins a resync of the responses, or ends it and drops what it did not publish again."""
    answers = image.answers
    is_beside = _has_higher_authority(image)
    if not event.finished:
        nodes = answers.nodes if is_beside else image.nodes
        resync = AnswersResync(
            frozenset(nodes.nodes), frozenset(answers.disagreements), answers.quorum is not None
        )
        return replace(image, answers=replace(answers, resync=resync)), NOTHING
    if answers.resync is None:
        return image, SKIPPED
    removed: NodeChanges = dict.fromkeys(answers.resync.nodes)
    disagreements = answers.disagreements
    for feature in answers.resync.features:
        disagreements = disagreements.delete(feature)
    quorum = None if answers.resync.quorum else answers.quorum
    answers = replace(answers, disagreements=disagreements, resync=None, quorum=quorum)
    sources = image.sources.without_lost(API_VERSIONS.short_name)
    image = replace(image, answers=answers, sources=sources)
    if is_beside:
        return _with_answers(image, removed)
    if not removed:
        return image, NOTHING
    return replace(image, nodes=image.nodes.with_changes(removed)), ClusterDelta(nodes=removed)


def _check_number(nodes: NodesImage, node: Node) -> None:
    """Raises `BeyondLimitError` if a node is more than an image holds."""
    is_new_class = CapabilityKey(node.key.role, node.capabilities) not in nodes.classes
    check_node(
        node.key,
        0 if nodes.get(node.key) else len(nodes),
        len(nodes.classes) if is_new_class else 0,
    )


def _unreadable(image: ClusterImage, place: str, reason: str) -> ClusterImage:
    unreadable = count_unreadable(image.sources.unreadable, ANSWER, place, reason)
    return image.with_unreadable(unreadable)


def _with_answers(image: ClusterImage, changes: NodeChanges) -> Folded:
    answers = image.answers
    for key in changes:
        answers = answers.published(key)
    answers = replace(answers, nodes=answers.nodes.with_changes(changes))
    return replace(image, answers=answers), ClusterDelta(answers=AnswersDelta(changes))


def _has_higher_authority(image: ClusterImage) -> bool:
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


def _seen_ms(node: Node) -> int:
    return node.provenance.seen_ms if isinstance(node.provenance, AnswerProvenance) else -1


def _with_levels(image: ClusterImage, event: NodeAnswer) -> FeaturesImage:
    """The finalized levels after a response: the highest epoch wins, brokers before controllers.

    A response counts only if its epoch is 0 or more (KIP-778). A broker's epoch is the highest
    offset of its image and a controller's the offset of the last change, so the two are not
    comparable: after a broker's response those of controllers are ignored. In one direction they
    are: a broker whose image ends before a change that a controller reported has not applied it.
    The same levels under a higher epoch raise the epoch, so that a response between the two, which
    is older, is ignored.
    """
    if event.epoch < 0:
        return image.features
    provenance = image.features.provenance
    levels = Map({name: level for name, level in event.finalized.items() if level > 0})
    if isinstance(provenance, AnswerProvenance):
        if provenance.role is Role.BROKER and event.role is Role.CONTROLLER:
            return image.features
        if event.epoch < provenance.epoch:
            return image.features
        is_known = (event.role, event.epoch) == (provenance.role, provenance.epoch)
        if is_known and levels == image.features.levels:
            return image.features
    answer = AnswerProvenance(event.role, event.node_id, event.epoch, event.seen_ms)
    return image.features.with_set(levels, event.epoch, answer)
