"""Nodes that differ from the log: in their levels, their epoch or their own ranges."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.levels import level_name
from featurewatch.controller.software import release_of_capabilities
from featurewatch.streams.events import FeatureView
from featurewatch.streams.types import FeatureName, NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.nodes import Node
from featurewatch.tables.image.provenance import AnswerProvenance, LogProvenance

_GRACE_MS: Final = 30_000
"""The time a node may take until its responses show a change in the log."""

MAX_FEATURES_NAMED: Final = 10
"""Features whose levels are named for a node. Kafka 4.4 has fewer; twenty thousand nodes that
disagree on a hundred would make two million sentences."""


@dataclass(frozen=True, slots=True)
class NodeDivergence:
    """A node that differs from the log, or does not respond, and the ``difference`` as a
    sentence."""

    role: Role
    node_id: NodeId
    difference: str


def divergences(image: ClusterImage, now_ms: int) -> tuple[NodeDivergence, ...]:
    """The nodes whose ApiVersions responses differ from the log, sorted.

    ``now_ms`` is the time in milliseconds since the Unix epoch. Empty where the log is not the
    authority, or ApiVersions is not polled.
    """
    if image.authority is not Authority.LOG:
        return ()
    differing = [*_level_divergences(image), *_answer_divergences(image, now_ms)]
    return tuple(
        sorted(
            set(differing),
            key=lambda divergence: (divergence.role, divergence.node_id, divergence.difference),
        )
    )


def _level_divergences(image: ClusterImage) -> Iterator[NodeDivergence]:
    disagreements = disagreeing_views(image)
    for feature, views in disagreements[:MAX_FEATURES_NAMED]:
        for view in _differing(image, feature, views):
            what = f"sees {feature} at {level_name(feature, view.level)}"
            for name in view.nodes:
                yield _divergence(name, what)
    others: Counter[str] = Counter()
    for feature, views in disagreements[MAX_FEATURES_NAMED:]:
        for view in _differing(image, feature, views):
            others.update(view.nodes)
    for name, count in others.items():
        yield _divergence(name, f"sees other levels of {count} more features")


def disagreeing_views(
    image: ClusterImage,
) -> list[tuple[FeatureName, tuple[FeatureView, ...]]]:
    """The features of which nodes report different levels, sorted, with each level's nodes."""
    disagreements = image.answers.disagreements.items()
    return sorted((feature, views) for feature, views in disagreements if len(views) > 1)


def _differing(
    image: ClusterImage, feature: FeatureName, views: tuple[FeatureView, ...]
) -> Iterator[FeatureView]:
    level = image.features.levels.get(feature, 0)
    return (view for view in views if view.level != level)


def _divergence(name: str, difference: str) -> NodeDivergence:
    role, _, node_id = name.rpartition("-")
    return NodeDivergence(Role(role), NodeId(int(node_id)), difference)


def _answer_divergences(image: ClusterImage, now_ms: int) -> Iterator[NodeDivergence]:
    for answer in sorted(image.answers.nodes.nodes.values(), key=lambda node: node.key):
        for what in _differences(image, answer, now_ms):
            yield NodeDivergence(answer.key.role, answer.key.node_id, what)


def _differences(image: ClusterImage, answer: Node, now_ms: int) -> Iterator[str]:
    if answer.silent:
        yield "does not answer"
        return
    if has_applied_levels(image, answer.key, now_ms) is Verdict.NO:
        yield f"has not applied the levels of offset {image.features.epoch}"
    node = image.nodes.get(answer.key)
    if node is None or not answer.capabilities.complete:
        return
    if node.capabilities is not answer.capabilities:
        registered, answered = (
            release_of_capabilities(node.capabilities),
            release_of_capabilities(answer.capabilities),
        )
        now_text = f"Kafka {answered.name}" if answered else "other ranges"
        before_text = f"Kafka {registered.name}" if registered else "other ranges"
        yield f"answers as {now_text} but is registered as {before_text}"


def has_applied_levels(image: ClusterImage, key: NodeKey, now_ms: int) -> Verdict:
    """Whether a node has applied the levels in the log, by its last ApiVersions response.

    A broker's epoch is the highest offset of its image, so a lower one than the change's shows that
    the change is not applied. A controller's epoch is the offset of the change, or of the snapshot
    that it started from, so it cannot be compared; -1 shows that it has no levels yet. A broker's
    lower epoch is inconclusive for the first 30 seconds after the change, since the last response
    may be older.
    """
    answer = image.answers.nodes.get(key)
    provenance = answer and answer.provenance
    if not image.responds(key) or not isinstance(provenance, AnswerProvenance):
        return Verdict.UNKNOWN
    if provenance.epoch < 0:
        return Verdict.NO
    if key.role is Role.CONTROLLER or provenance.epoch >= image.features.epoch:
        return Verdict.YES
    level_provenance = image.features.provenance
    changed_ms = level_provenance.append_ms if isinstance(level_provenance, LogProvenance) else -1
    is_late = now_ms - changed_ms > _GRACE_MS and changed_ms >= 0
    return Verdict.NO if is_late else Verdict.UNKNOWN


def applied_by_all(image: ClusterImage, now_ms: int) -> tuple[Verdict, tuple[NodeKey, ...]]:
    """Whether every node has applied the newest levels, and the nodes that may not have.

    A fenced broker counts as any other: one that is down has loaded nothing.

    Only then may older software be rolled out after a downgrade (KIP-778). Released Kafka does not
    track this; only the nodes' own ApiVersions responses show it.
    """
    doubtful: list[NodeKey] = []
    verdicts: set[Verdict] = set()
    for key in image.nodes.nodes:
        verdict = has_applied_levels(image, key, now_ms)
        if verdict is not Verdict.YES:
            doubtful.append(key)
            verdicts.add(verdict)
    order = (Verdict.NO, Verdict.UNKNOWN)
    return next((verdict for verdict in order if verdict in verdicts), Verdict.YES), tuple(
        sorted(doubtful)
    )
