"""A worker that follows operations, and records of one topic written by hand."""

from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.streams.events import RecordJson
from featurewatch.streams.outputs import Operation
from tests.simulation import records as r
from tests.simulation.controller_log import ControllerLog
from tests.simulation.engine import Engine
from tests.simulation.records import record

TOPIC = "topic-id-of-orders-00"


class Worker:
    """An engine and a log that is written by hand."""

    def __init__(self, release: str = "4.3", *brokers: list[int]) -> None:
        self.log = ControllerLog(1, release)
        self.log.elr = False
        self.engine = Engine()
        self.engine.limits = Limits(operations=True)
        self.engine.apply_all([self.log.start()])
        self.engine.apply_all([r.following(self.log.offset - 1, seen_ms=self.log.now_ms)])
        self.created = self.commit(*creation(*brokers)) if brokers else []

    def commit(self, *records: RecordJson) -> list[Operation]:
        """The steps that a commit of these records leads to."""
        result = self.engine.apply(self.log.commit([*records]), offset=self.engine.end)
        self.engine.end += 1
        return [output for output in result.outputs if isinstance(output, Operation)]


def creation(*brokers: list[int]) -> list[RecordJson]:
    """A topic with these lists of replicas, all in sync."""
    return [record("TOPIC_RECORD", {"topicId": TOPIC, "name": "orders"}), *partitions(0, *brokers)]


def partitions(first: int, *brokers: list[int]) -> list[RecordJson]:
    """New partitions with these replicas."""
    return [
        record(
            "PARTITION_RECORD",
            {
                "topicId": TOPIC,
                "partitionId": index,
                "replicas": ids,
                "isr": ids,
                "leader": ids[0],
                "leaderEpoch": 0,
                "partitionEpoch": 0,
            },
        )
        for index, ids in enumerate(brokers, start=first)
    ]


def change(index: int, **fields: object) -> RecordJson:
    """A change of a partition of the topic."""
    return record("PARTITION_CHANGE_RECORD", {"topicId": TOPIC, "partitionId": index, **fields})
