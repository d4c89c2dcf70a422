"""Creates the topics, and checks the existing ones."""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    BrokerMetadata,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    TopicMetadata,
)

from featurewatch.streams.bus.client_errors import STARTING, missing_right
from featurewatch.streams.bus.diagnosis import unanswered
from featurewatch.streams.bus.errors import BusSetupError, BusUnavailableError, TopicMismatchError
from featurewatch.streams.bus.settings import (
    LOG,
    MAX_MESSAGE_BYTES,
    REQUEST_TIMEOUT_S,
    BusSettings,
)
from featurewatch.streams.topics import ALL, COMPACTED, Topic

_POLICY: Final = "cleanup.policy"
_TIME: Final = "message.timestamp.type"
_POLL_S: Final = 0.05
_DESCRIBE_S: Final = 10.0
_KNOWN_S: Final = 15.0
"""How long one broker may take to learn of new topics, on a machine that is busy."""

REPLICAS: Final = 3
"""Replicas of each topic, where the bus has as many brokers and nothing else is set."""

_Seconds = Callable[[], float]


def ensure_topics(
    bus: BusSettings,
    topics: Iterable[Topic] = ALL,
    changelogs: Iterable[str] = (),
    timeout_s: float = 60,
    monotonic: _Seconds = time.monotonic,
) -> None:
    """Every topic exists, with the partitions that it must have, and each partition has a leader.

    ``changelogs`` are full names of compacted topics that a table needs beside its input topic, so
    they have as many partitions. Blocks; may be called again at any time, by many at once.
    ``monotonic`` gives seconds of a clock that does not go back.

    Raises `BusUnavailableError` after ``timeout_s`` seconds, `TopicMismatchError` if a topic is
    there with another partition count or cleanup policy, `BusSetupError` if one cannot be created.
    """
    wanted: dict[str, Mapping[str, str]] = {bus.topic(topic): topic.config for topic in topics}
    wanted |= dict.fromkeys(changelogs, COMPACTED)
    timeout_ms = round(REQUEST_TIMEOUT_S * 1000)
    admin = AdminClient(bus.client(socket_timeout_ms=timeout_ms), logger=LOG)
    deadline = monotonic() + timeout_s

    left_s = partial(_left_s, deadline, monotonic)
    metadata = _metadata(admin, bus, left_s)
    missing = {name: config for name, config in wanted.items() if name not in metadata.topics}
    created = _create(admin, bus, missing, len(metadata.brokers), left_s) if missing else set()
    _wait_for_leaders(admin, bus, wanted, left_s)
    if created and len(metadata.brokers) > 1:
        _wait_until_known(bus, metadata.brokers.values(), created, monotonic)
    _check_policies(admin, bus, {name: wanted[name] for name in wanted.keys() - created})


def _metadata(admin: AdminClient, bus: BusSettings, left_s: _Seconds) -> ClusterMetadata:
    """All topics: a request by name could create a topic with the bus' defaults."""
    while True:
        try:
            # A request that the bus lost is not answered when the bus has recovered.
            return admin.list_topics(timeout=max(min(left_s(), REQUEST_TIMEOUT_S), 1))
        except KafkaException as exception:
            if left_s() > 0:
                continue
            error = exception
        raise BusUnavailableError(unanswered(bus, error.args[0].str())) from error


def _create(
    admin: AdminClient,
    bus: BusSettings,
    wanted: Mapping[str, Mapping[str, str]],
    broker_count: int,
    left_s: _Seconds,
) -> set[str]:
    """The names of the topics that this call created."""
    replication_factor = bus.replication_factor
    if replication_factor < 0:
        replication_factor = min(broker_count, REPLICAS)
    durability = {}
    if replication_factor >= REPLICAS:
        # A message counts as written once two brokers have it: the loss of one loses nothing.
        durability["min.insync.replicas"] = "2"
    new = [
        NewTopic(
            name,
            num_partitions=bus.partitions,
            replication_factor=replication_factor,
            config={"max.message.bytes": str(MAX_MESSAGE_BYTES), **durability, **config},
        )
        for name, config in wanted.items()
    ]
    wait_s = max(left_s(), 1)
    futures = admin.create_topics(new, operation_timeout=wait_s, request_timeout=wait_s)
    created = set()
    for name, future in futures.items():
        try:
            future.result()
            created.add(name)
        except KafkaException as exception:
            error = exception.args[0]
            # Another process may have created it a moment before.
            if error.code() in STARTING:
                raise BusUnavailableError(
                    f"topic {name} could not be created yet ({error.str()}): look at the brokers "
                    f"of the bus at {bus.bootstrap_servers}"
                ) from exception
            if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise BusSetupError(
                    f"topic {name} could not be created ({error.str()}): create it with "
                    f"{bus.partitions} partitions, or allow its creation"
                ) from exception
    return created


def _wait_for_leaders(
    admin: AdminClient, bus: BusSettings, names: Iterable[str], left_s: _Seconds
) -> None:
    while True:
        existing = _metadata(admin, bus, left_s).topics
        behind = [name for name in names if not _is_ready(name, existing.get(name), bus)]
        if not behind:
            return
        _check_visible(admin, bus, [name for name in behind if name not in existing])
        if left_s() < 0:
            raise BusUnavailableError(
                f"partitions without a leader on the bus at {bus.bootstrap_servers}: "
                f"{', '.join(behind)}: look at the bus' brokers"
            )
        time.sleep(_POLL_S)


def _check_visible(admin: AdminClient, bus: BusSettings, names: Iterable[str]) -> None:
    """Raises `BusSetupError` for topics that exist and are not listed for want of a right."""
    if not (hidden := list(names)):
        return
    described = admin.describe_topics(TopicCollection(hidden), request_timeout=_DESCRIBE_S)
    denied = [
        name
        for name, future in described.items()
        if isinstance(error := future.exception(), KafkaException)
        and error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    ]
    if denied:
        raise BusSetupError(missing_right(bus, "see topics", f"DESCRIBE on {', '.join(denied)}"))


def _wait_until_known(
    bus: BusSettings, brokers: Iterable[BrokerMetadata], names: Iterable[str], monotonic: _Seconds
) -> None:
    """Waits until each broker knows new topics: a client asks any of them, and fails without.

    A broker that does not answer is passed over: no client gets an answer of it either.
    """
    timeout_ms = round(REQUEST_TIMEOUT_S * 1000)
    for broker in brokers:
        address = {"bootstrap.servers": f"{broker.host}:{broker.port}"}
        deadline = monotonic() + _KNOWN_S
        left_s = partial(_left_s, deadline, monotonic)
        with contextlib.suppress(BusUnavailableError):
            while left_s() > 0:
                # A new client each time: only its first request goes to its bootstrap server.
                admin = AdminClient(bus.client(socket_timeout_ms=timeout_ms) | address, logger=LOG)
                existing = _metadata(admin, bus, left_s).topics
                if all(_is_ready(name, existing.get(name), bus) for name in names):
                    break
                time.sleep(_POLL_S)


def _left_s(deadline: float, monotonic: _Seconds) -> float:
    return deadline - monotonic()


def _is_ready(name: str, topic: TopicMetadata | None, bus: BusSettings) -> bool:
    if topic is None or topic.error is not None or not topic.partitions:
        return False
    if len(topic.partitions) != bus.partitions:
        raise TopicMismatchError(
            f"topic {name} has {len(topic.partitions)} partitions and must have {bus.partitions}, "
            f"like all of featurewatch's: set partitions to {len(topic.partitions)} or delete it"
        )
    return all(partition.leader >= 0 for partition in topic.partitions.values())


def _check_policies(
    admin: AdminClient, bus: BusSettings, wanted: Mapping[str, Mapping[str, str]]
) -> None:
    """Compacting what must be kept in order, or deleting what must be kept, loses data silently."""
    if not wanted:
        return
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in wanted]
    for resource, future in admin.describe_configs(resources).items():
        required = wanted[resource.name].get(_POLICY, "delete")
        try:
            configs = future.result()
            policy = str(configs[_POLICY].value)
        except KafkaException as error:
            LOG.warning(
                "the cleanup policy of %s could not be read (%s): it must be %s",
                resource.name,
                error.args[0].str(),
                required,
            )
            continue
        if policy != required:
            raise TopicMismatchError(
                f"topic {resource.name} has the cleanup policy {policy} and must have {required}: "
                f"change {_POLICY} of the topic, or choose another prefix than {bus.prefix}"
            )
        time_type = wanted[resource.name].get(_TIME)
        if time_type is not None and _TIME in configs and configs[_TIME].value != time_type:
            _set_time_type(admin, resource.name, time_type)


def _set_time_type(admin: AdminClient, topic: str, time_type: str) -> None:
    """An older featurewatch made its topics with the producers' times."""
    operation = AlterConfigOpType.SET
    entry = ConfigEntry(_TIME, time_type, incremental_operation=operation)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    try:
        for future in admin.incremental_alter_configs([resource]).values():
            future.result()
    except KafkaException as error:
        LOG.warning(
            "%s has the times of its producers, so a wrong clock moves the limits of alerts, and "
            "that could not be changed (%s): kafka-configs.sh --bootstrap-server HOST:PORT "
            "--alter --topic %s --add-config %s=%s",
            *(topic, error.args[0].str(), topic, _TIME, time_type),
        )
    else:
        LOG.info("%s has the bus's times from now on (%s=%s)", topic, _TIME, time_type)
