"""A cluster on an existing directory has the ports that it had last."""

import socket
from pathlib import Path

import pytest

from featurewatch.common.private_files import write_private
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.server_properties import (
    Addresses,
    format_properties,
    last_addresses,
    node_properties,
)
from featurewatch.stack.kafka.specs import single_bus
from featurewatch.stack.process.ports import LOOPBACK


def _ran(directory: Path) -> Addresses:
    """The ports of a cluster that left its properties behind, as a start writes them."""
    cluster = Cluster(single_bus(), directory)
    node = cluster.node(1)
    node.directory.mkdir(parents=True)
    properties = node_properties(cluster.spec, node.spec, cluster.addresses, node.data)
    write_private(node.directory / "server.properties", format_properties(properties))
    addresses = node.addresses
    cluster.close()
    return addresses


def test_the_ports_are_those_of_the_last_time(tmp_path: Path) -> None:
    """Clients that know the address find the cluster again."""
    before = _ran(tmp_path)
    cluster = Cluster(single_bus(), tmp_path)
    assert cluster.node(1).addresses == before
    cluster.close()


def test_a_port_that_is_taken_meanwhile_is_replaced(tmp_path: Path) -> None:
    """The other port stays."""
    before = _ran(tmp_path)
    assert before.broker is not None
    with socket.socket() as taken:
        taken.bind((LOOPBACK, before.broker))
        taken.listen()
        cluster = Cluster(single_bus(), tmp_path)
        assert cluster.node(1).addresses.broker not in (before.broker, None)
        assert cluster.node(1).addresses.controller == before.controller
        cluster.close()


@pytest.mark.parametrize("text", ["", "listeners=", "listeners=PLAINTEXT://0.0.0.0:9092", "\0"])
def test_properties_without_a_port_of_the_loopback_interface_are_passed_over(
    tmp_path: Path, text: str
) -> None:
    """Whatever is in the file, free ports are chosen then."""
    write_private(tmp_path / "server.properties", text)
    assert last_addresses(tmp_path) == Addresses(None, None)
