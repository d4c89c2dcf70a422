"""The configuration of a controller, as ``add-controller`` reads it (``MetadataQuorumCommand``).

What is wrong is said in the tool's words and in its order: id, directory, ``meta.properties``,
listeners.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from featurewatch.admin.quorum.checks import Candidate
from featurewatch.cli.kafka_tools.errors import KafkaToolError
from featurewatch.cli.kafka_tools.java import JavaError, parse_int, parse_uuid, split
from featurewatch.streams.kraft.directory.files import META_PROPERTIES, read_meta
from featurewatch.streams.quorum import VoterEndpoint
from featurewatch.streams.types import ClusterId, NodeId

_QUESTION: Final = "Is this a valid controller configuration file?"
_LISTENER: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_MAX_PORT: Final = 65_535


def read_candidate(properties: Mapping[str, str]) -> Candidate:
    """The controller of a configuration, with the directory id on this machine's disk.

    Raises:
        KafkaToolError: It is not the configuration of a controller, or its metadata directory is
            not formatted.
    """
    node_id = _node_id(properties)
    directory = _metadata_directory(properties)
    meta = _meta_properties(directory)
    directory_id = meta.get("directory.id")
    if directory_id is None:
        raise KafkaToolError(f"No directory id found in {directory}")
    return Candidate(
        node_id=node_id,
        directory_id=parse_uuid(directory_id),
        endpoints=tuple(_endpoints(properties)),
        meta_node_id=None if (own := parse_int(meta.get("node.id", ""))) is None else NodeId(own),
        cluster_id=ClusterId(meta["cluster.id"]) if "cluster.id" in meta else None,
        has_static_voters=bool(properties.get("controller.quorum.voters", "").strip()),
    )


def unsendable(candidate: Candidate) -> str | None:
    """Why no request can have these endpoints, in one line; None if one can."""
    for endpoint in candidate.endpoints:
        if not 0 <= endpoint.port <= _MAX_PORT:
            return f"{endpoint} has no port that there is"
    return None


def _node_id(properties: Mapping[str, str]) -> NodeId:
    text = properties.get("node.id")
    if text is None:
        raise KafkaToolError(f"node.id not found in configuration file. {_QUESTION}")
    node_id = _integer(text)
    if node_id < 0:
        raise KafkaToolError(f"node.id was negative in configuration file. {_QUESTION}")
    if "controller" not in properties.get("process.roles", ""):
        raise KafkaToolError(
            f"process.roles did not contain 'controller' in configuration file. {_QUESTION}"
        )
    return NodeId(node_id)


def _metadata_directory(properties: Mapping[str, str]) -> str:
    if (own := properties.get("metadata.log.dir")) is not None:
        return own
    if (listed := properties.get("log.dirs")) is not None:
        return split(listed.strip(), ",")[0]
    raise KafkaToolError(f"Neither metadata.log.dir nor log.dirs were found. {_QUESTION}")


def _meta_properties(directory: str) -> dict[str, str]:
    """What is in ``meta.properties`` (``MetaPropertiesEnsemble``, ``MetaProperties``)."""
    path = Path(directory) / META_PROPERTIES
    try:
        meta = read_meta(path)
    except (OSError, ValueError):
        raise _unreadable(directory) from None
    version = meta.get("version", "0")
    if version not in ("0", "1"):
        raise _unreadable(directory)
    # Version 0 is of ZooKeeper mode, where brokers may have no id.
    key = "broker.id" if version == "0" else "node.id"
    is_required = version == "1" or key in meta
    if is_required and parse_int(meta.get(key, "")) is None:
        raise _unreadable(directory)
    if (directory_id := meta.get("directory.id")) is not None:
        try:
            parse_uuid(directory_id)
        except JavaError:
            raise _unreadable(directory) from None
    return meta


def _unreadable(directory: str) -> KafkaToolError:
    return KafkaToolError(f"Unable to read meta.properties from {directory}")


def _endpoints(properties: Mapping[str, str]) -> Iterator[VoterEndpoint]:
    """The advertised endpoints of the controller's listeners, in their order and once each."""
    listeners = {
        endpoint.listener: endpoint
        for key in ("listeners", "advertised.listeners")
        for endpoint in _parsed(properties.get(key, ""))
    }
    names = properties.get("controller.listener.names")
    if names is None:
        raise KafkaToolError(f"controller.listener.names was not found. {_QUESTION}")
    found: dict[VoterEndpoint, None] = {}
    for name in split(names, ","):
        listener = _normalised(name)
        if (endpoint := listeners.get(listener)) is None:
            raise KafkaToolError(
                f"Cannot find information about controller listener name: {listener}"
            )
        if listener.strip() != listener:
            raise KafkaToolError("Leading or trailing whitespace is not allowed.")
        found[endpoint._replace(host=endpoint.host or "localhost")] = None
    yield from found


def _parsed(listeners: str) -> Iterator[VoterEndpoint]:
    """``SocketServerConfigs.listenerListToEndPoints``; an empty host is the wildcard."""
    for entry in re.split(r"\s*,\s*", listeners.strip()):
        if not entry:
            continue
        if (match := _LISTENER.fullmatch(entry)) is None:
            raise KafkaToolError(f"Unable to parse {entry} to a broker endpoint")
        yield VoterEndpoint(_normalised(match[1]), match[2], _integer(match[3]))


def _normalised(name: str) -> str:
    """``ListenerName.normalised``."""
    if not name:
        raise KafkaToolError("The provided listener name is null or empty string")
    return name.upper()


def _integer(text: str) -> int:
    """``Integer.parseInt``, with its error."""
    number = parse_int(text)
    if number is None:
        raise KafkaToolError(f'For input string: "{text}"')
    return number
