"""Checks what must always be true of metadata, by reading the committed log on its own.

It knows nothing of how a controller decides: it reads records with the product's decoder, and holds
answers and states of controllers against them.
"""

from typing import Any

from featurewatch.reference.kraft.machines.batches import Batch
from featurewatch.reference.kraft.machines.controller.controller import MetadataController
from featurewatch.reference.kraft.machines.controller.requests import (
    AllocateProducerIds,
    AllocateProducerIdsResponse,
    AlterPartition,
    AlterPartitionResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    ControllerRequest,
    ControllerResponse,
    CreateTopics,
    CreateTopicsResponse,
    UnregisterBroker,
    UpdateFeatures,
    UpdateFeaturesResponse,
)
from featurewatch.reference.kraft.machines.metadata.state import NO_LEADER, MetadataState
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.records.decoder import RecordDecoder
from featurewatch.streams.kraft.records.selection import ALL_RECORDS
from featurewatch.streams.types import METADATA_VERSION
from tests.simulation.kraft.auditor import Auditor

_DECODER = RecordDecoder(ALL_RECORDS)


class MetadataAuditor:
    """What the committed log says, and what controllers have said of it."""

    def __init__(self, log: Auditor) -> None:
        self._log = log
        self._read = 0
        self.registrations: dict[tuple[int, int], str] = {}
        """The incarnation by broker and epoch."""
        self.epochs: dict[int, int] = {}
        self.removed: list[tuple[int, int]] = []
        """Offsets and brokers of removals."""
        self.topics: dict[str, str] = {}
        self.names: set[str] = set()
        self.levels: list[tuple[int, str, int]] = []
        self.isrs: dict[tuple[str, int, int], list[int]] = {}
        """By topic, partition and partition epoch."""
        self.partition_epochs: dict[tuple[str, int], int] = {}
        self.next_producer_id = 0
        self.producer_ids: set[int] = set()
        self.states: dict[int, MetadataState] = {}
        self.answers = 0
        self.level_changes = 0

    @property
    def end(self) -> int:
        """The end of what is committed."""
        return self._log.committed_end

    # -- the log -----------------------------------------------------------------------------------

    def read(self) -> None:
        """Reads what was committed since the last time."""
        for batch in self._log.committed[self._read :]:
            self._read += 1
            if not batch.is_control:
                self._read_batch(batch)

    def _read_batch(self, batch: Batch) -> None:
        (scanned,) = scan_batches(batch.data).batches
        for record in _DECODER.decode(scanned).records:
            offset, data = record["offset"], record["data"]
            match record["type"]:
                case "REGISTER_BROKER_RECORD":
                    self._on_registration(batch, offset, data)
                case "UNREGISTER_BROKER_RECORD":
                    self.removed.append((offset, data["brokerId"]))
                case "TOPIC_RECORD":
                    assert data["name"] not in self.names, f"two topics are {data['name']}"
                    self.names.add(data["name"])
                    self.topics[data["topicId"]] = data["name"]
                case "REMOVE_TOPIC_RECORD":
                    self.names.remove(self.topics[data["topicId"]])
                case "FEATURE_LEVEL_RECORD":
                    self.levels.append((offset, data["name"], data["featureLevel"]))
                    self.level_changes += 1
                case "PRODUCER_IDS_RECORD":
                    assert data["nextProducerId"] > self.next_producer_id, "ids are given twice"
                    self.next_producer_id = data["nextProducerId"]
                case "PARTITION_RECORD" | "PARTITION_CHANGE_RECORD":
                    self._on_partition(data)

    def _on_registration(self, batch: Batch, offset: int, data: dict[str, Any]) -> None:
        broker_id, epoch = data["brokerId"], data["brokerEpoch"]
        known = self.registrations.setdefault((broker_id, epoch), data["incarnationId"])
        assert known == data["incarnationId"], f"two lives of broker {broker_id} have one epoch"
        last = self.epochs.get(broker_id, -1)
        assert epoch >= last, f"the epoch of broker {broker_id} goes back"
        if epoch > last:
            assert batch.base <= epoch <= offset, f"epoch {epoch} is no offset of its batch"
        self.epochs[broker_id] = epoch

    def _on_partition(self, data: dict[str, Any]) -> None:
        key = (data["topicId"], data["partitionId"])
        before = self.partition_epochs.get(key, -1)
        self.partition_epochs[key] = before + 1
        isr = data.get("isr", self.isrs.get((*key, before)))
        assert isr is not None, "a partition changes that nobody created"
        self.isrs[(*key, before + 1)] = isr

    # -- answers -----------------------------------------------------------------------------------

    def on_answer(
        self, request: ControllerRequest, response: ControllerResponse, asked_at: int
    ) -> None:
        """A controller says that something was done: then it is committed.

        ``asked_at`` is the end of the committed log when the request was sent.
        """
        self.read()
        match request, response:
            case BrokerRegistration(), BrokerRegistrationResponse(0, epoch):
                known = self.registrations.get((request.broker_id, epoch))
                assert known == request.incarnation_id, "a registration is not committed"
            case UnregisterBroker(broker_id), _ if not response.error_code:  # type: ignore[union-attr]
                assert any(at >= asked_at and one == broker_id for at, one in self.removed)
            case CreateTopics(), CreateTopicsResponse(topics):
                for topic in topics:
                    assert topic.error_code or topic.topic_id in self.topics, "a topic is lost"
            case AllocateProducerIds(), AllocateProducerIdsResponse(0, first, size):
                ids = {first + at for at in range(size)}
                assert not ids & self.producer_ids, "producer ids are given twice"
                assert first + size <= self.next_producer_id, "producer ids are not committed"
                self.producer_ids |= ids
            case UpdateFeatures(updates), UpdateFeaturesResponse(0, _, results):
                (one,) = updates
                assert results[0].error_code or any(
                    at >= asked_at and (name, level) == (one.feature, one.max_version_level)
                    for at, name, level in self.levels
                ), "a level is not committed"
            case AlterPartition(), AlterPartitionResponse(0, altered):
                for topic_id, partitions in altered:
                    for found in partitions:
                        known_isr = self.isrs.get(
                            (topic_id, found.partition_index, found.partition_epoch)
                        )
                        assert found.error_code or known_isr == [*found.isr], "an ISR is lost"
            case _:
                return
        self.answers += 1

    # -- states ------------------------------------------------------------------------------------

    def on_state(self, node_id: int, controller: MetadataController) -> None:
        """A controller applied more: it has the state that all have there, and it is legal."""
        state = controller.committed
        known = self.states.get(state.offset)
        if known is state:
            return
        found = _comparable(state)
        if known is None:
            self.states[state.offset] = found
            _check_partitions(state)
        else:
            assert known == found, f"controller {node_id} has another state at {state.offset}"
        level = state.level
        if level is not None:
            supported = controller.settings.local.of(METADATA_VERSION)
            assert supported.includes(level), f"controller {node_id} runs at level {level}"

    def on_idle(self, controller: MetadataController) -> None:
        """A controller waits for nothing: what it decides on is what is committed."""
        leadership = controller._leadership
        if leadership is None or leadership.queue or leadership.proposed or leadership.appended:
            return
        ahead = leadership.state._replace(offset=0)
        assert ahead == controller.committed._replace(offset=0), "it is ahead of the log"


def _comparable(state: MetadataState) -> MetadataState:
    """Without where brokers registered, which a snapshot does not tell."""
    brokers = state.brokers
    for broker_id, broker in state.brokers.items():
        brokers = brokers.set(broker_id, broker._replace(offset=0))
    return state._replace(brokers=brokers)


def _check_partitions(state: MetadataState) -> None:
    """Each leader is in sync, and its broker may lead; ISRs are replicas."""
    for key, partition in state.partitions.items():
        assert {*partition.isr} <= {*partition.replicas}, f"{key}: an ISR of others"
        assert partition.isr, f"{key}: an empty ISR"
        if partition.leader != NO_LEADER:
            assert partition.leader in partition.isr, f"{key}: a leader that is not in sync"
            broker = state.brokers.get(partition.leader)
            assert broker is not None, f"{key}: a leader that is not registered"
            assert broker.is_active, f"{key}: broker {broker.id} leads, and may not"
