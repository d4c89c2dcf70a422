"""What the commands of the reference share."""

import argparse
import logging
import sys
from dataclasses import replace
from typing import Final

from featurewatch.kafka.address import Address
from featurewatch.reference.kraft.machines.replicas import (
    Endpoint,
    ReplicaKey,
    VoterNode,
    uuid_of,
)

NOTICE: Final = "This is a reference of KRaft's protocol. Never run production on it."
_LISTENER: Final = "CONTROLLER"


def begin() -> None:
    """Begins a command: logs to stderr, and says there that this is a reference."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    sys.stderr.write(f"{NOTICE}\n")
    sys.stderr.flush()


def voter_argument(text: str) -> VoterNode:
    """A voter from ``ID@HOST:PORT``; raises ``ArgumentTypeError`` for another text."""
    node_id, _, address = text.partition("@")
    try:
        host, port = Address.parse(address)
        return VoterNode(ReplicaKey(int(node_id)), (Endpoint(_LISTENER, host, port),))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not ID@HOST:PORT: {error}") from None


def first_voter_argument(text: str) -> VoterNode:
    """A voter from ``ID@HOST:PORT:DIRECTORY_ID``, as ``kafka-storage format`` has it.

    Raises ``ArgumentTypeError`` for another text.
    """
    address, _, directory_text = text.rpartition(":")
    try:
        directory = uuid_of(directory_text)
        if directory is None:
            raise ValueError("the directory id is zero")
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not ID@HOST:PORT:DIRECTORY_ID: {error}"
        ) from None
    voter = voter_argument(address)
    return replace(voter, key=ReplicaKey(voter.key.id, directory))
