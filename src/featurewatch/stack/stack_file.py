"""``stack.json`` in a stack's directory: what the stack is and how to reach its supervisor."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from featurewatch.common.private_files import write_private
from featurewatch.stack.errors import StackError
from featurewatch.stack.kafka.server_properties import Addresses
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.stack.zookeeper.specs import ServerPorts

FILE = "stack.json"


@dataclass(frozen=True, slots=True)
class Control:
    """The supervisor's process id, its loopback port, and the token that requests must carry."""

    pid: int
    port: int
    token: str


@dataclass(frozen=True, slots=True)
class ZookeeperFile:
    """An ensemble: the number of servers, and their ports from the first start on."""

    servers: int
    ports: Sequence[ServerPorts] = ()


@dataclass(frozen=True, slots=True)
class ReferenceFile:
    """A reference cluster of KIP-584: the number of brokers, and further options of
    ``python -m featurewatch.reference.zookeeper``."""

    brokers: int
    options: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class StackFile:
    """The definition of a stack; the first start adds the cluster id, addresses, ports and control.

    With ``controlled``, our own controllers control the brokers of a ``spec`` in ZooKeeper mode;
    ``operations_dialect`` is the form of their operations, None the default one.
    The connect string of such a ``spec`` need only hold the chroot: the ensemble's addresses are
    prepended.
    """

    spec: ClusterSpec | None = None
    zookeeper: ZookeeperFile | None = None
    reference: ReferenceFile | None = None
    light_brokers: int = 0
    controlled: bool = False
    operations_dialect: str | None = None
    cluster_id: str | None = None
    addresses: Mapping[int, Addresses] | None = None
    control: Control | None = None

    def write(self, directory: Path) -> None:
        """Replaces the file in ``directory`` atomically; only its owner may read it."""
        directory.mkdir(parents=True, exist_ok=True)
        write_private(directory / FILE, json.dumps(asdict(self), indent=1))


def read(directory: Path) -> StackFile | None:
    """Reads the file in ``directory``; None if it does not exist.

    Raises:
        StackError: if it cannot be read or parsed.
    """
    path = directory / FILE
    try:
        return _parse(json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StackError(
            f"{path} is not a stack file ({error}); remove it to start over"
        ) from error


def _parse(content: dict[str, Any]) -> StackFile:
    spec, zookeeper = content["spec"], content.get("zookeeper")
    reference = content.get("reference")
    addresses, control = content["addresses"], content["control"]
    return StackFile(
        spec=spec and _spec(spec),
        zookeeper=zookeeper and _zookeeper(zookeeper),
        reference=reference and ReferenceFile(reference["brokers"], tuple(reference["options"])),
        light_brokers=int(content["light_brokers"]),
        controlled=bool(content.get("controlled")),
        operations_dialect=content.get("operations_dialect"),
        cluster_id=content["cluster_id"],
        addresses=addresses and {int(key): Addresses(**value) for key, value in addresses.items()},
        control=control and Control(**control),
    )


def _spec(content: dict[str, Any]) -> ClusterSpec:
    nodes = [NodeSpec(**(node | {"roles": Roles(node["roles"])})) for node in content["nodes"]]
    tuples = {name: tuple(content.get(name, ())) for name in ("format_arguments", "first_voters")}
    return ClusterSpec(**(content | {"nodes": nodes} | tuples))


def _zookeeper(content: dict[str, Any]) -> ZookeeperFile:
    return ZookeeperFile(
        content["servers"], tuple(ServerPorts(**ports) for ports in content["ports"])
    )
