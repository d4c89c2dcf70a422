"""Applies records of brokers and controllers to the state (``ClusterControlManager.replay``)."""

from featurewatch.reference.kraft.machines.metadata.records import Data, Record
from featurewatch.reference.kraft.machines.metadata.state import (
    Broker,
    Controller,
    Feature,
    Listener,
    MetadataState,
    MisfitRecordError,
    ranges_of,
)


def _listeners(data: Data) -> tuple[Listener, ...]:
    return tuple(
        Listener(one["name"], one["host"], one["port"], one["securityProtocol"])
        for one in data["endPoints"]
    )


def _features(data: Data) -> tuple[Feature, ...]:
    return tuple(
        Feature(one["name"], one["minSupportedVersion"], one["maxSupportedVersion"])
        for one in data["features"]
    )


def register_broker(state: MetadataState, record: Record) -> MetadataState:
    """A broker registers, or registers again."""
    data = record.data
    features, cordoned = _features(data), data.get("cordonedLogDirs")
    broker = Broker(
        data["brokerId"],
        data["brokerEpoch"],
        data["incarnationId"],
        _listeners(data),
        features,
        ranges_of(features),
        data["rack"],
        data["fenced"],
        data.get("inControlledShutdown", False),
        data.get("isMigratingZkBroker", False),
        tuple(data.get("logDirs", ())),
        None if cordoned is None else tuple(cordoned),
        state.offset,
    )
    return state._replace(brokers=state.brokers.set(broker.id, broker))


def unregister_broker(state: MetadataState, record: Record) -> MetadataState:
    """A registration is removed."""
    _registered(state, record.data["brokerId"], record.data["brokerEpoch"])
    return state._replace(brokers=state.brokers.delete(record.data["brokerId"]))


def _registered(state: MetadataState, broker_id: int, epoch: int) -> Broker:
    broker = state.brokers[broker_id]
    if broker.epoch != epoch:
        raise MisfitRecordError(f"broker {broker_id} has epoch {broker.epoch}, not {epoch}")
    return broker


def _change_broker(state: MetadataState, broker: Broker) -> MetadataState:
    return state._replace(brokers=state.brokers.set(broker.id, broker))


def fence(state: MetadataState, record: Record) -> MetadataState:
    """A broker is fenced or unfenced."""
    broker = _registered(state, record.data["id"], record.data["epoch"])
    return _change_broker(state, broker._replace(fenced=record.type == "FENCE_BROKER_RECORD"))


def change_registration(state: MetadataState, record: Record) -> MetadataState:
    """A part of a registration changes."""
    data = record.data
    broker = _registered(state, data["brokerId"], data["brokerEpoch"])
    if fenced := data.get("fenced", 0):
        broker = broker._replace(fenced=fenced > 0)
    if data.get("inControlledShutdown", 0):
        broker = broker._replace(in_controlled_shutdown=True)
    if directories := data.get("logDirs"):
        broker = broker._replace(log_dirs=tuple(directories))
    if (cordoned := data.get("cordonedLogDirs")) is not None:
        broker = broker._replace(cordoned_log_dirs=tuple(cordoned))
    return _change_broker(state, broker)


def register_controller(state: MetadataState, record: Record) -> MetadataState:
    """A controller registers (KIP-919)."""
    data = record.data
    features = _features(data)
    controller = Controller(
        data["controllerId"],
        data["incarnationId"],
        data["zkMigrationReady"],
        _listeners(data),
        features,
        ranges_of(features),
    )
    return state._replace(controllers=state.controllers.set(controller.id, controller))


def unregister_controller(state: MetadataState, record: Record) -> MetadataState:
    """The registration of a controller is removed (KIP-1312)."""
    return state._replace(controllers=state.controllers.delete(record.data["controllerId"]))
