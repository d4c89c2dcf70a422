"""Blocks of producer ids for brokers; follows ``ZkProducerIdManager`` of Kafka 3.9."""

from typing import Any, Final

import orjson

from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.task_queue import Task, perform
from featurewatch.reference.zookeeper.machines.topics.operations.parts import OperationParts
from featurewatch.reference.zookeeper.machines.topics.requests import (
    PRODUCER_IDS,
    ProducerIds,
    RequestFailed,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    BadVersion,
    Create,
    GetData,
    GetDataResult,
    NoNode,
    OperationDone,
    SetData,
)

PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"
_LAST_PRODUCER_ID: Final = (1 << 63) - 1


class ProducerIdBlocks:
    """Performs AllocateProducerIds."""

    def __init__(self, parts: OperationParts) -> None:
        self._parts = parts

    def allocate(self, broker_id: int) -> Task[ProducerIds | RequestFailed]:
        """Takes the next block of producer ids for a broker."""
        while True:
            result = yield from perform(GetData(PRODUCER_ID_BLOCK))
            if isinstance(result, NoNode):
                yield from self._parts.write(Create(PRODUCER_ID_BLOCK, b""))
                continue
            if not isinstance(result, GetDataResult):
                break
            try:
                first = _after_block(result.data)
            except (ValueError, KeyError, TypeError):
                self._parts.log(f"cannot read {PRODUCER_ID_BLOCK}: repair it")
                break
            last = first + PRODUCER_IDS - 1
            if last > _LAST_PRODUCER_ID:
                break
            block = {
                "version": 1,
                "broker": broker_id,
                "block_start": str(first),
                "block_end": str(last),
            }
            data = orjson.dumps(block)
            written = yield from self._parts.write(
                SetData(PRODUCER_ID_BLOCK, data, result.stat.version)
            )
            if isinstance(written, OperationDone):
                return ProducerIds(first)
            if not isinstance(written, BadVersion):
                break
        return RequestFailed(ErrorCode.UNKNOWN_SERVER_ERROR, "No producer ids can be allocated.")


def _after_block(data: bytes) -> int:
    """The first id after the last block; 0 without a block."""
    if not data:
        return 0
    content: Any = orjson.loads(data)
    return int(content["block_end"]) + 1
