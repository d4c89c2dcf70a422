"""Builds the snapshot of a cluster: nodes by class, so its size follows the classes."""

from collections.abc import Iterator
from dataclasses import asdict
from hashlib import sha256
from itertools import islice
from typing import Any, Final

import orjson

from featurewatch.controller.compatibility import excluded_classes
from featurewatch.controller.software import notes_of_learned
from featurewatch.kafka.releases import learned_notes
from featurewatch.monitor.migration import migration_of
from featurewatch.streams.outputs import (
    CapabilityClass,
    IncompatibleNode,
    Snapshot,
    ZookeeperController,
)
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.image.nodes import CapabilityKey, intern_capabilities
from featurewatch.tables.image.provenance import Provenance

MAX_INCOMPATIBLE: Final = 20_000
"""Pairs of an incompatible node and a level in a snapshot; nodes times features has no bound."""


def snapshot(image: ClusterImage, at_ms: int) -> Snapshot:
    """The state of a cluster at ``at_ms``, with its digest. The cost follows the whole cluster."""
    classes = tuple(
        sorted(
            (_capability_class(image, key) for key in image.nodes.classes),
            key=lambda item: (item.role, item.nodes),
        )
    )
    incompatible = tuple(islice(_incompatible(image), MAX_INCOMPATIBLE))
    finalized = dict(sorted(image.features.levels.items()))
    migration = migration_of(image)
    content = {
        "cluster": image.cluster,
        "epoch": image.features.epoch,
        "revision": image.features.revision,
        "finalized": finalized,
        "classes": classes,
        "incompatible": incompatible,
        "migration": (migration.state, migration.in_progress, migration.missing),
    }
    return Snapshot(
        cluster=image.cluster,
        epoch=image.features.epoch,
        revision=image.features.revision,
        provenance=provenance_fields(image.features.provenance),
        ready=image.ready and not image.incomplete,
        leader_id=image.log.quorum.leader_id,
        leader_epoch=image.log.quorum.leader_epoch,
        finalized=finalized,
        classes=classes,
        incompatible=incompatible,
        sources={
            name: str(status.state) for name, status in sorted(image.sources.statuses.items())
        },
        digest=sha256(orjson.dumps(content, default=list, option=orjson.OPT_SORT_KEYS)).hexdigest(),
        at_ms=at_ms,
        authority=str(image.authority),
        controller=_controller(image),
        migration=migration,
        name=image.sources.cluster_name,
    )


def _controller(image: ClusterImage) -> ZookeeperController:
    controller, epoch = image.zookeeper.controller, image.zookeeper.controller_epoch
    if controller is None:
        return ZookeeperController(epoch=epoch)
    return ZookeeperController(controller.node_id, epoch, controller.kraft_epoch)


def provenance_fields(provenance: Provenance) -> dict[str, Any]:
    """A provenance as outputs carry it."""
    return asdict(provenance)


def _capability_class(image: ClusterImage, key: CapabilityKey) -> CapabilityClass:
    members = sorted(image.nodes.members(key), key=lambda node: node.key.node_id)
    return CapabilityClass(
        role=key.role,
        ranges=key.capabilities.ranges,
        complete=key.capabilities.complete,
        nodes=tuple(node.key.node_id for node in members),
        fenced=tuple(node.key.node_id for node in members if node.fenced),
        silent=tuple(node.key.node_id for node in members if node.silent),
    )


def _incompatible(image: ClusterImage) -> Iterator[IncompatibleNode]:
    """The incompatible nodes with each level that excludes them, by role and id."""
    nodes = [
        (key.role, node_id, unsupported)
        for key, unsupported in excluded_classes(image)
        for node_id in image.nodes.classes[key]
    ]
    nodes.sort(key=lambda node: node[:2])
    for role, node_id, unsupported in nodes:
        for item in unsupported:
            yield IncompatibleNode(
                role=role,
                node_id=node_id,
                feature=item.feature,
                level=item.level,
                range=item.range,
                verdict=str(item.verdict),
            )


def notes_of_snapshot(shown: Snapshot) -> tuple[str, ...]:
    """Where learned tables come from that what is shown of a cluster rests on, as known here."""
    if not learned_notes():
        return ()
    classes = (intern_capabilities(item.ranges) for item in shown.classes)
    return notes_of_learned(classes, shown.finalized)
