"""Rules about a cluster that moves from ZooKeeper to KRaft (KIP-866)."""

from collections.abc import Iterable
from typing import Final

from featurewatch.controller.migration import (
    PRE_MIGRATION,
    in_progress,
    missing_brokers,
    state_name,
)
from featurewatch.controller.rules.rule import Finding, Rule, Subject, coarse_count
from featurewatch.streams.outputs import Severity
from featurewatch.tables.image.cluster import Authority, ClusterImage

_NAMED: Final = 10
"""So many missing brokers are named; of more, the rough number is said."""


def _under_way(image: ClusterImage, subject: Subject) -> Iterable[Finding]:
    """Sources: "Preparing for migration" in Kafka's operations manual, and
    ``FeatureControlManager.updateMetadataVersion`` of 3.4, 3.5 and 3.9.
    """
    del subject
    if in_progress(image):
        summary = (
            "The cluster moves from ZooKeeper to KRaft: change neither metadata.version nor "
            "inter.broker.protocol.version before that is done. Controllers from 3.5 on refuse "
            "the first, 3.4 takes it, and Kafka warns that it may break the cluster (KIP-866)."
        )
        if image.authority is not Authority.LOG:
            summary += (
                " ZooKeeper alone does not tell when it is over: follow the metadata log too."
            )
        yield Finding(summary, Severity.WARNING, {"state": state_name(image)})


def _incomplete(image: ClusterImage, subject: Subject) -> Iterable[Finding]:
    del subject
    found = missing_brokers(image)
    if not found:
        return
    evidence: dict[str, object] = {"missing": len(found)}
    if len(found) <= _NAMED:
        ids = sorted(found)
        who = f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"
        evidence["nodes"] = ids
    else:
        evidence["missing"] = coarse_count(len(found))
        who = f"at least {evidence['missing']} brokers"
    waits = (
        "and the migration waits for that"
        if image.migration == PRE_MIGRATION
        else "and they send it no metadata"
    )
    summary = (
        f"ZooKeeper has {who} without a registration at the KRaft controllers, {waits}: set "
        "zookeeper.metadata.migration.enable and the controllers' addresses there, and restart."
    )
    yield Finding(summary, Severity.WARNING, evidence)


MIGRATION_RULES: Final = (
    Rule("migration-under-way", "the cluster is migrating from ZooKeeper to KRaft", _under_way),
    Rule(
        "migration-incomplete",
        "brokers in ZooKeeper have not yet registered with the KRaft controllers",
        _incomplete,
    ),
)
