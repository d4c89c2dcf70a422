"""What a cluster in ZooKeeper mode needs before its migration to KRaft, checked before it begins.

Source: Kafka 3.9, "ZooKeeper to KRaft Migration" (KIP-866), with the setting that each check wants
changed. Nothing is changed by the checks.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from featurewatch.common.id_runs import format_ids
from featurewatch.controller.compatibility import Verdict
from featurewatch.monitor.migration import in_progress
from featurewatch.monitor.upgrade.plan import Precondition
from featurewatch.streams.types import NodeId
from featurewatch.tables.image.cluster import ClusterImage

BRIDGE: Final = "3.9"
"""The last release with ZooKeeper, from which a cluster is migrated."""

BrokerSettings = Mapping[NodeId, Mapping[str, str | None]]
"""What brokers answer of their settings, by broker; one that did not answer is left out."""

PROTOCOL: Final = "inter.broker.protocol.version"
_AUTHORIZER: Final = "authorizer.class.name"
_CONTROL_PLANE: Final = "control.plane.listener.name"
_RESERVED: Final = "reserved.broker.max.id"
_GENERATION: Final = "broker.id.generation.enable"
_DIRECTORIES: Final = "log.dirs"
_ENABLED: Final = "zookeeper.metadata.migration.enable"

SETTINGS: Final = (
    PROTOCOL,
    _AUTHORIZER,
    _CONTROL_PLANE,
    _RESERVED,
    _GENERATION,
    _DIRECTORIES,
    _ENABLED,
)
"""The settings of brokers that the checks need."""

_ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
_STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_ASK: Final = "add --bootstrap-server, so that the brokers are asked for their settings"


def preflight(
    image: ClusterImage, settings: BrokerSettings | None, running: str = ""
) -> tuple[Precondition, ...]:
    """The checks of a cluster in ZooKeeper mode.

    ``settings`` is None if no broker was asked; ``running`` is the release that a person says the
    brokers run (empty: not known).
    """
    brokers = tuple(sorted(key.node_id for key in image.brokers.nodes))
    known = settings or {}
    silent = [node for node in brokers if node not in known]
    return (
        _brokers(image, brokers, silent, is_asked=settings is not None),
        _controller(image),
        _leftovers(image),
        _software(known, brokers, silent, running),
        _protocol(known, silent),
        *_of_brokers(known, silent),
    )


def _brokers(
    image: ClusterImage, brokers: tuple[NodeId, ...], silent: list[NodeId], *, is_asked: bool
) -> Precondition:
    if not image.ready or not brokers:
        text = "the brokers in ZooKeeper are not known"
        return Precondition("brokers", Verdict.UNKNOWN, text, "check --zookeeper and its chroot")
    if is_asked and silent:
        text = f"{_some(silent)} did not answer"
        return Precondition("brokers", Verdict.UNKNOWN, text, "start it, or check its listener")
    text = f"{len(brokers)} brokers are live: {format_ids(brokers)}; each has to come along"
    return Precondition("brokers", Verdict.YES, text)


def _controller(image: ClusterImage) -> Precondition:
    found = image.zookeeper.controller
    if found is None:
        text = "no broker is the controller"
        return Precondition("controller", Verdict.NO, text, "check the brokers' logs", waits=True)
    return Precondition("controller", Verdict.YES, f"broker {found.node_id} is the controller")


def _leftovers(image: ClusterImage) -> Precondition:
    if in_progress(image):
        return Precondition(
            "migration",
            Verdict.NO,
            "/migration exists, or a KRaft controller is in /controller: a migration was begun",
            "if it was given up, get /migration and delete it with zookeeper-shell.sh; else "
            "continue with its plan",
        )
    return Precondition("migration", Verdict.YES, "no migration was begun")


def _software(
    known: BrokerSettings, brokers: tuple[NodeId, ...], silent: list[NodeId], running: str
) -> Precondition:
    on_bridge = [
        node for node, own in known.items() if release_of_protocol(own.get(PROTOCOL)) == BRIDGE
    ]
    if running == BRIDGE or (brokers and len(on_bridge) == len(brokers)):
        return Precondition("software", Verdict.YES, f"all brokers run Kafka {BRIDGE}")
    if running:
        text = f"the brokers run Kafka {running}"
        return Precondition("software", Verdict.NO, text, f"upgrade them to {BRIDGE}: step below")
    del silent
    return Precondition(
        "software",
        Verdict.UNKNOWN,
        "neither ZooKeeper nor the brokers' settings say which release runs",
        "pass it, as in --running 3.6",
    )


def _protocol(known: BrokerSettings, silent: list[NodeId]) -> Precondition:
    other = {node: own.get(PROTOCOL) for node, own in known.items()}
    wrong = [node for node, value in sorted(other.items()) if release_of_protocol(value) != BRIDGE]
    if wrong:
        found = ", ".join(sorted({str(other[node]) for node in wrong}))
        return Precondition(
            PROTOCOL,
            Verdict.NO,
            f"it is {found} on {_some(wrong)}",
            f"set {PROTOCOL}={BRIDGE} on every broker: step below",
        )
    return _unless_silent(PROTOCOL, silent, f"it is {BRIDGE} on every broker")


def _of_brokers(known: BrokerSettings, silent: list[NodeId]) -> Iterator[Precondition]:
    yield _broker_ids(known, silent)
    yield _authorizer(known, silent)
    planes = [node for node, own in sorted(known.items()) if own.get(_CONTROL_PLANE)]
    if planes:
        yield Precondition(
            _CONTROL_PLANE,
            Verdict.NO,
            f"it is set on {_some(planes)}, and KRaft has no such listener",
            f"remove {_CONTROL_PLANE} when the broker is restarted in KRaft mode",
        )
    else:
        yield _unless_silent(_CONTROL_PLANE, silent, "it is not set")
    several = [node for node, own in sorted(known.items()) if "," in (own.get(_DIRECTORIES) or "")]
    if several:
        text = (
            f"there are several on {_some(several)}: during the migration a failure of any of "
            "them stops the broker (KAFKA-16431)"
        )
        yield Precondition(
            _DIRECTORIES, Verdict.UNKNOWN, text, "check that every directory works: describeLogDirs"
        )
    else:
        yield _unless_silent(_DIRECTORIES, silent, "each broker has a single directory")


def _broker_ids(known: BrokerSettings, silent: list[NodeId]) -> Precondition:
    """Generated ids are above ``reserved.broker.max.id``, and refused once they are configured."""
    generated = []
    for node, own in sorted(known.items()):
        highest = own.get(_RESERVED) or "1000"
        if own.get(_GENERATION) != "false" and highest.isdecimal() and node > int(highest):
            generated.append(node)
    if generated:
        highest = known[generated[0]].get(_RESERVED) or "1000"
        return Precondition(
            "broker.id",
            Verdict.NO,
            f"generated ids, of {_some(generated)}, are above {_RESERVED} ({highest})",
            f"set broker.id to the id that each has, and {_RESERVED} to at least {max(generated)}",
        )
    return _unless_silent("broker.id", silent, f"no id is above {_RESERVED}")


def _authorizer(known: BrokerSettings, silent: list[NodeId]) -> Precondition:
    named = {node: own.get(_AUTHORIZER) or "" for node, own in known.items()}
    acl = [node for node, name in sorted(named.items()) if name == _ACL_AUTHORIZER]
    own_ones = sorted({name for name in named.values() if name not in ("", _ACL_AUTHORIZER)})
    if own_ones:
        text = f"{', '.join(own_ones)}: whether it works in KRaft mode is not known"
        return Precondition(_AUTHORIZER, Verdict.UNKNOWN, text, "ask who makes it")
    if acl:
        text = f"{_ACL_AUTHORIZER} on {_some(acl)}; the migration copies the ACLs"
        remedy = f"set {_AUTHORIZER}={_STANDARD} on the controllers, and on brokers in KRaft mode"
        return Precondition(_AUTHORIZER, Verdict.NO, text, remedy)
    return _unless_silent(_AUTHORIZER, silent, "there is no authorizer")


def _unless_silent(name: str, silent: list[NodeId], text: str) -> Precondition:
    if silent:
        return Precondition(name, Verdict.UNKNOWN, f"not known of {_some(silent)}", _ASK)
    return Precondition(name, Verdict.YES, text)


def _some(nodes: list[NodeId]) -> str:
    return f"{'broker' if len(nodes) == 1 else 'brokers'} {format_ids(nodes)}"


def release_of_protocol(value: str | None) -> str:
    """The release of a protocol version, ``3.9`` of ``3.9-IV0``."""
    return ".".join((value or "").partition("-")[0].split(".")[:2])
