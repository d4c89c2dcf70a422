"""Rules about a cluster that moves from ZooKeeper to KRaft (KIP-866)."""

from collections.abc import Iterable
from typing import Final

from controller.migration import state_name, under_way
from controller.rules.rule import Finding, Rule, Subject, roughly
from streams.outputs import Severity
from tables.image import Authority, ClusterImage

_NAMED: Final = 10
"""So many missing brokers are named; of more, the rough number is said."""


def _under_way(image: ClusterImage, subject: Subject) -> Iterable[Finding]:
    """Sources: "Preparing for migration" in Kafka's operations manual, and
    ``FeatureControlManager.updateMetadataVersion`` of 3.4, 3.5 and 3.9.
    """
    del subject
    if under_way(image):
        summary = (
            "The cluster moves from ZooKeeper to KRaft: change neither metadata.version nor "
            "inter.broker.protocol.version before that is done. Controllers from 3.5 on refuse "
            "the first, 3.4 takes it, and Kafka warns that it may break the cluster (KIP-866)."
        )
        yield Finding(summary, Severity.WARNING, {"state": state_name(image)})


def _incomplete(image: ClusterImage, subject: Subject) -> Iterable[Finding]:
    del subject
    missing = image.unregistered
    if image.authority is not Authority.LOG or not under_way(image) or not missing:
        return
    if len(missing) <= _NAMED:
        ids = sorted(missing)
        who = f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"
        evidence: dict[str, object] = {"missing": len(ids), "nodes": ids}
    else:
        count = roughly(len(missing))
        who, evidence = f"at least {count} brokers", {"missing": count}
    summary = (
        f"ZooKeeper has {who} without a registration at the KRaft controllers as migrating, and "
        "the migration waits for that: set zookeeper.metadata.migration.enable and the "
        "controllers' addresses there, and restart."
    )
    yield Finding(summary, Severity.WARNING, evidence)


MIGRATION_RULES: Final = (
    Rule("migration-under-way", "the cluster moves from ZooKeeper to KRaft", _under_way),
    Rule(
        "migration-incomplete",
        "brokers in ZooKeeper have not registered with the KRaft controllers",
        _incomplete,
    ),
)
