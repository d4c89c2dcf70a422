"""Nodes that see something else than the log says: of the levels, of the epoch, of themselves."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.levels import level_name
from featurewatch.controller.software import release_of_capabilities
from featurewatch.streams.types import NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.nodes import Node
from featurewatch.tables.image.provenance import AnswerProvenance, LogProvenance

_GRACE_MS: Final = 30_000
"""So long a node may take until it answers with a change that stands in the log."""


@dataclass(frozen=True, slots=True)
class NodeDivergence:
    """A node that differs, or of which nothing is heard, and how."""

    role: Role
    node_id: NodeId
    what: str


def divergences(image: ClusterImage, now_ms: int) -> tuple[NodeDivergence, ...]:
    """The nodes whose answers to ApiVersions do not fit, in order; none where nobody asks them."""
    if image.authority is not Authority.LOG:
        return ()
    found = [*_of_levels(image), *_of_answers(image, now_ms)]
    return tuple(sorted(set(found), key=lambda view: (view.role, view.node_id, view.what)))


def _of_levels(image: ClusterImage) -> Iterator[NodeDivergence]:
    for feature, views in sorted(image.disagreements.items()):
        level = image.features.levels.get(feature, 0)
        for view in views if len(views) > 1 else ():
            for name in view.nodes if view.level != level else ():
                role, _, node_id = name.rpartition("-")
                what = f"sees {feature} at {level_name(feature, view.level)}"
                yield NodeDivergence(Role(role), NodeId(int(node_id)), what)


def _of_answers(image: ClusterImage, now_ms: int) -> Iterator[NodeDivergence]:
    for answer in sorted(image.answers.nodes.values(), key=lambda node: node.key):
        for what in _what(image, answer, now_ms):
            yield NodeDivergence(answer.key.role, answer.key.node_id, what)


def _what(image: ClusterImage, answer: Node, now_ms: int) -> Iterator[str]:
    if answer.silent:
        yield "does not answer"
        return
    if has_applied_levels(image, answer.key, now_ms) is Verdict.NO:
        yield f"has not taken in the levels of offset {image.features.epoch}"
    node = image.nodes.get(answer.key)
    if node is None or not answer.capabilities.complete:
        return
    if node.capabilities is not answer.capabilities:
        known, told = (
            release_of_capabilities(node.capabilities),
            release_of_capabilities(answer.capabilities),
        )
        runs = f"Kafka {told.name}" if told else "other ranges"
        was = f"Kafka {known.name}" if known else "other ranges"
        yield f"answers as {runs} and is registered as {was}"


def has_applied_levels(image: ClusterImage, key: NodeKey, now_ms: int) -> Verdict:
    """Whether a node works with the levels that the log has, as far as its answer tells.

    A broker's epoch is the highest offset of its image, so one below the change does not know it
    yet. A controller's is that of the change itself, or of the snapshot it was started with, and
    they do not compare; one that has none (-1) has no levels yet. What was answered before the
    change says nothing against it: an answer is heard when something in it is different.
    """
    answer = image.answers.get(key)
    place = answer and answer.provenance
    if answer is None or answer.silent or not isinstance(place, AnswerProvenance):
        return Verdict.UNKNOWN
    if place.epoch < 0:
        return Verdict.NO
    if key.role is Role.CONTROLLER or place.epoch >= image.features.epoch:
        return Verdict.YES
    changed = image.features.provenance
    changed_ms = changed.append_ms if isinstance(changed, LogProvenance) else -1
    late = now_ms - changed_ms > _GRACE_MS and changed_ms >= 0
    return Verdict.NO if late else Verdict.UNKNOWN


def applied_by_all(image: ClusterImage, now_ms: int) -> tuple[Verdict, tuple[NodeKey, ...]]:
    """Whether every living node works with the newest levels, and those that are not sure to.

    Only then may older software be rolled out after a downgrade (KIP-778). Released Kafka does not
    keep account of it; the nodes themselves say it, to whoever asks them.
    """
    doubtful: list[NodeKey] = []
    verdicts: set[Verdict] = set()
    for key, node in image.nodes.nodes.items():
        verdict = Verdict.YES if node.fenced else has_applied_levels(image, key, now_ms)
        if verdict is not Verdict.YES:
            doubtful.append(key)
            verdicts.add(verdict)
    order = (Verdict.NO, Verdict.UNKNOWN)
    return next((one for one in order if one in verdicts), Verdict.YES), tuple(sorted(doubtful))
