"""The file in a stack's directory that says what the stack is and how to reach its supervisor."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from featurewatch.deploy.errors import StackError
from featurewatch.deploy.kafka.server_properties import Addresses
from featurewatch.deploy.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.deploy.zookeeper.specs import ServerPorts

FILE = "stack.json"


@dataclass(frozen=True, slots=True)
class Control:
    """Where the supervisor listens on the loopback interface, and the secret that it asks for."""

    pid: int
    port: int
    token: str


@dataclass(frozen=True, slots=True)
class ZooKeeperFile:
    """An ensemble: how many servers, and from its first start on their ports."""

    servers: int
    ports: Sequence[ServerPorts] = ()


@dataclass(frozen=True, slots=True)
class ReferenceFile:
    """A reference cluster of KIP-584: how many brokers, and options of ``python -m
    featurewatch.reference``."""

    brokers: int
    options: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class StackFile:
    """What a stack is; the cluster id, addresses, ports and control follow from its first start.

    Where ``spec`` is of ZooKeeper mode, its connect string need hold no more than the chroot: the
    ensemble's addresses are put before it.
    """

    spec: ClusterSpec | None = None
    zookeeper: ZooKeeperFile | None = None
    reference: ReferenceFile | None = None
    light_brokers: int = 0
    cluster_id: str | None = None
    addresses: Mapping[int, Addresses] | None = None
    control: Control | None = None

    def write(self, directory: Path) -> None:
        """Replaces the file in the directory; only its owner may read it."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / FILE
        unfinished = path.with_suffix(".unfinished")
        handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump(asdict(self), file, indent=1)
        unfinished.replace(path)


def read(directory: Path) -> StackFile | None:
    """The file in a directory; None if there is none.

    Raises:
        StackError: if it cannot be read or is not one of ours.
    """
    path = directory / FILE
    try:
        return _parse(json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StackError(
            f"{path} is not a stack file ({error}); remove it to begin anew"
        ) from error


def _parse(found: dict[str, Any]) -> StackFile:
    spec, zookeeper = found["spec"], found.get("zookeeper")
    reference = found.get("reference")
    addresses, control = found["addresses"], found["control"]
    return StackFile(
        spec=spec and _spec(spec),
        zookeeper=zookeeper and _zookeeper(zookeeper),
        reference=reference and ReferenceFile(reference["brokers"], tuple(reference["options"])),
        light_brokers=int(found["light_brokers"]),
        cluster_id=found["cluster_id"],
        addresses=addresses and {int(key): Addresses(**value) for key, value in addresses.items()},
        control=control and Control(**control),
    )


def _spec(found: dict[str, Any]) -> ClusterSpec:
    nodes = [NodeSpec(**(node | {"roles": Roles(node["roles"])})) for node in found["nodes"]]
    arguments = tuple(found["format_arguments"])
    return ClusterSpec(**(found | {"nodes": nodes, "format_arguments": arguments}))


def _zookeeper(found: dict[str, Any]) -> ZooKeeperFile:
    return ZooKeeperFile(found["servers"], tuple(ServerPorts(**own) for own in found["ports"]))
