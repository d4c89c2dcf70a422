"""Leaves a transaction open whose end the bus has lost."""

import asyncio

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import InvalidTxnState
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from featurewatch.streams.bus.settings import BusSettings

_VERIFICATION = "transaction.partition.verification.enable"


async def leave_unended(
    bus: BusSettings, transactional_id: str, topic: str, partition: int, row: tuple[bytes, bytes]
) -> None:
    """Writes one row in a transaction that the bus' coordinator does not know.

    A coordinator that starts and does not know a partition's leader yet forgets the partition, and
    sends it no marker. Here it never learns of the partition, which the broker has to allow.
    """
    _verify(bus, AlterConfigOpType.SET)
    try:
        async with asyncio.timeout(30):
            while not await _is_left(bus, transactional_id, TopicPartition(topic, partition), row):
                await asyncio.sleep(0.1)
    finally:
        _verify(bus, AlterConfigOpType.DELETE)


async def _is_left(
    bus: BusSettings, transactional_id: str, place: TopicPartition, row: tuple[bytes, bytes]
) -> bool:
    """Whether the row was written; the broker applies its settings a moment later."""
    producer = AIOKafkaProducer(
        bootstrap_servers=bus.bootstrap_servers, transactional_id=transactional_id
    )
    await producer.start()
    try:
        await producer.begin_transaction()
        manager = producer._txn_manager
        manager.maybe_add_partition_to_txn(place)
        manager.partition_added(place)  # and so it is not sent to the coordinator
        key, value = row
        try:
            await producer.send_and_wait(place.topic, value, key, place.partition)
        except InvalidTxnState:
            return False
        manager._txn_partitions.clear()
        await producer.abort_transaction()  # of nothing, as it seems
        return True
    finally:
        await producer.stop()


def _verify(bus: BusSettings, operation: AlterConfigOpType) -> None:
    """Lets the broker take records without asking the coordinator, or no longer."""
    admin = AdminClient(bus.client())
    (broker,) = admin.list_topics(timeout=30).brokers
    entry = ConfigEntry(_VERIFICATION, "false", incremental_operation=operation)
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker), incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)
