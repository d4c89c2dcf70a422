"""Rules about a cluster that moves from ZooKeeper to KRaft (KIP-866)."""

from collections.abc import Iterable
from typing import Final

from featurewatch.monitor.migration import PRE_MIGRATION, in_progress, missing_brokers, state_name
from featurewatch.monitor.rules.rule import (
    Finding,
    Rule,
    RuleContext,
    Subject,
    SubjectKind,
    coarse_count,
)
from featurewatch.streams.outputs import Severity
from featurewatch.tables.image.cluster import Authority

_NAMED: Final = 10
"""The maximum number of missing brokers that are named; above it a coarse count is given."""


def _in_progress(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    """Sources: "Preparing for migration" in Kafka's operations manual, and
    ``FeatureControlManager.updateMetadataVersion`` of 3.4, 3.5 and 3.9.
    """
    del subject
    image = context.image
    if in_progress(image):
        summary = (
            "The cluster is migrating from ZooKeeper to KRaft: change neither metadata.version nor "
            "inter.broker.protocol.version until that is done. Controllers from 3.5 on refuse a "
            "change of metadata.version; 3.4 accepts it, and Kafka warns that it may break the "
            "cluster (KIP-866)."
        )
        if image.authority is not Authority.LOG:
            summary += (
                " ZooKeeper alone does not show when the migration ends; follow the metadata log "
                "too."
            )
        yield Finding(summary, Severity.WARNING, {"state": state_name(image)})


def _incomplete(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    del subject
    missing = missing_brokers(context.image)
    if not missing:
        return
    evidence: dict[str, object] = {"missing": len(missing)}
    if len(missing) <= _NAMED:
        ids = sorted(missing)
        brokers = f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"
        evidence["nodes"] = ids
    else:
        evidence["missing"] = coarse_count(len(missing))
        brokers = f"at least {evidence['missing']} brokers"
    waits = (
        "and the migration waits for that"
        if context.image.log.migration == PRE_MIGRATION
        else "which therefore send no metadata there"
    )
    summary = (
        f"ZooKeeper has {brokers} without a registration at the KRaft controllers, {waits}. Set "
        "zookeeper.metadata.migration.enable and the controllers' addresses there, and restart."
    )
    yield Finding(summary, Severity.WARNING, evidence)


_READS: Final = ("authority", "log.migration", "zookeeper", "awaited_registrations")


MIGRATION_RULES: Final = (
    Rule(
        "migration-in-progress",
        "the cluster is migrating from ZooKeeper to KRaft",
        SubjectKind.MIGRATION,
        _in_progress,
        reads=_READS,
    ),
    Rule(
        "migration-incomplete",
        "brokers in ZooKeeper have not yet registered with the KRaft controllers",
        SubjectKind.MIGRATION,
        _incomplete,
        reads=_READS,
    ),
)
