"""The decoder against Kafka: the same log gives the same JSON as ``kafka-dump-log``."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from hypothesis import given, settings
from kio.schema.alter_client_quotas.v1.request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse
from kio.static.primitive import f64

from featurewatch.kafka.messages import AlterPartitionReassignmentsRequestV0
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec
from featurewatch.stack.wire.connection import BlockingConnection, check
from featurewatch.streams.events import SnapshotChunk
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.records.schema import RecordSchema
from featurewatch.streams.kraft.snapshot import parse_name, read_snapshot
from featurewatch.streams.types import ClusterId
from tests.conformance.dump_log import differences, kafkas, ours
from tests.conftest import MakeCluster
from tests.plugins.nightly import nightly_but
from tests.reference.zookeeper.request_bytes import exchange
from tests.streams.kraft.encoding import batch_of, control_framed, data_batch, metadata_value
from tests.streams.kraft.records.record_strategies import VERSIONS, record_data

pytestmark = pytest.mark.stack

NOT_IN_4_3 = {"ACCESS_CONTROL_RECORD", "UNREGISTER_CONTROLLER_RECORD"}
"""Types that the newest tool on Maven Central, that of 4.3, does not know or no longer knows."""

TOOLS = {"4.4.0": "4.3.0"}
"""The tool for a release that has none there."""


def some(schema: RecordSchema, version: int, number: int) -> list[dict[str, Any]]:
    """That many contents for a record, the same in each run."""
    contents: list[dict[str, Any]] = []

    @settings(max_examples=number, derandomize=True, database=None)
    @given(record_data(schema, version))
    def collect(content: dict[str, Any]) -> None:
        contents.append(content)

    collect()
    return contents


def test_every_version_of_every_type_reads_as_kafka_reads_it(
    stack_cache: Cache, tmp_path: Path
) -> None:
    """Kafka 4.3.0 and this decoder read a log with every record version alike."""
    values = [
        metadata_value(schema, version, content, {200: b"unknown"} if number % 5 == 0 else None)
        for schema, version in VERSIONS
        if schema.type not in NOT_IN_4_3
        for number, content in enumerate(some(schema, version, 30))
    ]
    voter = {"voterId": 1}
    full_voter = {
        "voterId": 2,
        "voterDirectoryId": "AAAAAAAAAAAAAAAAAAAAAQ",
        "endpoints": [{"name": "CONTROLLER", "host": "h", "port": 65535}],
        "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
    }
    controls: list[tuple[int, dict[str, Any]]] = [
        (2, {"version": 0, "leaderId": 1, "voters": [voter], "grantingVoters": [voter]}),
        (3, {"version": 0, "lastContainedLogTimestamp": 1_700_000_000_000}),
        (5, {"version": 0, "kRaftVersion": 1}),
        (6, {"version": 0, "voters": [full_voter]}),
        (4, {"version": 0}),
    ]
    framed = [control_framed(kind, data, delta) for delta, (kind, data) in enumerate(controls)]
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(batch_of(framed, control=True) + data_batch(values, base_offset=len(framed)))
    kafka = kafkas(log, "4.3.0", stack_cache)
    assert len(kafka) == len(framed) + len(values)
    assert differences(kafka, ours(log)) == []


def change_everything(cluster: Cluster, name: str) -> None:
    """Has a real cluster write records of many types."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    topics = [f"{name}-{suffix}" for suffix in ("kept", "gone")]
    for future in admin.create_topics(
        [NewTopic(t, num_partitions=3, replication_factor=2) for t in topics]
    ).values():
        future.result(30)
    entry = ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topics[0], incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    change: Any
    for change in (
        UserScramCredentialUpsertion(name, credential, b"a password"),
        UserScramCredentialDeletion(name, ScramMechanism.SCRAM_SHA_256),
    ):
        admin.alter_user_scram_credentials([change])[name].result(30)
    host, _, port = cluster.bootstrap_servers.split(",")[0].rpartition(":")
    _quota(host, int(port), name)
    with BlockingConnection(host, int(port), timeout_s=30) as broker:
        _reassign(broker, topics[0])
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(30)
    for future in admin.delete_topics(topics[1:]).values():
        future.result(30)


def _quota(host: str, port: int, user: str) -> None:
    request: Any = AlterClientQuotasRequest(
        entries=(
            EntryData(
                entity=(EntityData(entity_type="user", entity_name=user),),
                ops=(OpData(key="request_percentage", value=f64(12.75), remove=False),),
            ),
        ),
        validate_only=False,
    )
    for entry in exchange(host, port, request, AlterClientQuotasResponse).entries:
        check("a quota", int(entry.error_code.value), entry.error_message)


def _reassign(broker: BlockingConnection, topic: str) -> None:
    form = AlterPartitionReassignmentsRequestV0
    # A third replica: whichever two it has, this is a change.
    partition = form.ReassignablePartition(partition_index=0, replicas=(3, 1, 2))
    answer = broker.request(
        form(topics=(form.ReassignableTopic(name=topic, partitions=(partition,)),))
    )
    check("a reassignment", answer.error_code, answer.error_message)


def copied(cluster: Cluster, directory: Path) -> Path:
    """The first log segment of a controller, as far as it is whole."""
    (segment, *_) = sorted(cluster.leader().metadata_log.glob("*.log"))
    content = segment.read_bytes()
    copy = directory / segment.name
    copy.write_bytes(content[: scan_batches(content).consumed])
    return copy


MANY_TYPES = {
    *("LEADER_CHANGE", "FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD", "TOPIC_RECORD"),
    *("REGISTER_CONTROLLER_RECORD", "BROKER_REGISTRATION_CHANGE_RECORD", "PARTITION_RECORD"),
    *("PARTITION_CHANGE_RECORD", "CONFIG_RECORD", "REMOVE_TOPIC_RECORD", "PRODUCER_IDS_RECORD"),
    *("USER_SCRAM_CREDENTIAL_RECORD", "REMOVE_USER_SCRAM_CREDENTIAL_RECORD", "NO_OP_RECORD"),
    *("CLIENT_QUOTA_RECORD", "BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD"),
}


@pytest.mark.parametrize("release", ["3.9.1", "4.3.0"])
def test_log_of_a_real_cluster_reads_as_kafka_reads_it(
    release: str, quorum_of: Callable[[str], Cluster], stack_cache: Cache, tmp_path: Path
) -> None:
    """A log that real nodes wrote gives the JSON that the same release's own tool prints."""
    cluster = quorum_of(release)
    change_everything(cluster, "conformance")
    log = copied(cluster, tmp_path)
    kafka = kafkas(log, release, stack_cache)
    assert {record["type"] for record in kafka} >= MANY_TYPES
    assert differences(kafka, ours(log)) == []


@pytest.mark.parametrize("release", nightly_but({"4.4.0"}, ("3.9.1", "4.3.0", "4.4.0")))
def test_snapshots_of_a_real_cluster_read_as_kafka_reads_them(
    release: str, make_cluster: MakeCluster, stack_cache: Cache, tmp_path: Path
) -> None:
    """M-65: the snapshot of a format, and one that a node made, read as Kafka reads them."""
    spec = ClusterSpec(
        [NodeSpec(1, release)],
        properties={"metadata.log.max.record.bytes.between.snapshots": "4000"},
        dynamic_voters=True,
    )
    cluster = make_cluster(spec)
    directory = cluster.node(1).metadata_log
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic("some", num_partitions=90)])["some"].result(30)
    snapshots: list[Path] = []
    deadline = time.monotonic() + 60
    while not any(parse_name(path.name)[0] > 0 for path in snapshots):
        assert time.monotonic() < deadline, "no snapshot was made"
        time.sleep(0.2)
        paths = [*directory.glob("*.checkpoint"), *directory.parent.glob("*.checkpoint")]
        snapshots = sorted(paths, key=lambda path: path.name)
    kinds = set()
    for number, snapshot in enumerate(snapshots):
        copy = tmp_path / str(number) / snapshot.name
        copy.parent.mkdir()
        shutil.copyfile(snapshot, copy)
        assert differences(kafkas(copy, TOOLS.get(release, release), stack_cache), ours(copy)) == []
        with copy.open("rb") as file:
            (chunk,) = read_snapshot(file, ClusterId(cluster.cluster_id), copy.name, 1)
        assert isinstance(chunk, SnapshotChunk)
        kinds |= {record["type"] for record in chunk.records}
    assert kinds >= {"FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD", "KRAFT_VOTERS"}
