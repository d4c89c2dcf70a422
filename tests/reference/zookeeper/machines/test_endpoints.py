"""The addresses of brokers, out of znodes that anybody may have written."""

import json
from typing import Any

import pytest

from featurewatch.reference.zookeeper.machines.dialect import RELEASED
from featurewatch.reference.zookeeper.machines.encoding import (
    BrokerIdentity,
    BrokerListener,
    Endpoint,
    decode_endpoint,
    encode_broker,
)
from featurewatch.reference.zookeeper.wire.messages.topic_ids import topic_id_text, topic_uuid

KAFKA: dict[str, Any] = {
    "version": 5,
    "host": "h",
    "port": 9092,
    "rack": "r",
    "endpoints": ["PLAINTEXT://h:9092", "OUTSIDE://example.org:9093"],
    "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT", "OUTSIDE": "SASL_SSL"},
}


def decoded(**fields: Any) -> Endpoint | None:
    """The address in a broker's znode with other fields."""
    return decode_endpoint(json.dumps(KAFKA | fields).encode())


def test_listeners_keep_names_and_protocols() -> None:
    """UpdateMetadata tells brokers of every listener, with its name and its protocol's number."""
    endpoint = decoded()
    assert endpoint == Endpoint(
        "h",
        9092,
        "r",
        (
            BrokerListener("PLAINTEXT", "h", 9092, 0),
            BrokerListener("OUTSIDE", "example.org", 9093, 3),
        ),
    )
    assert endpoint.listeners == endpoint.named_listeners


@pytest.mark.parametrize("listeners", [["PLAINTEXT://h:9092"], [], None])
def test_the_usual_listener_needs_no_name(listeners: list[str] | None) -> None:
    """A broker with one plaintext listener, as most are, is its address."""
    endpoint = decoded(endpoints=listeners)
    assert endpoint == Endpoint("h", 9092, "r")
    assert endpoint.listeners == (BrokerListener("PLAINTEXT", "h", 9092, 0),)


def test_our_own_brokers_have_the_usual_listener() -> None:
    """Znodes that the reference system writes are read as they were meant."""
    data = encode_broker(RELEASED, BrokerIdentity(3, rack="x"), {}, 0)
    assert decode_endpoint(data) == Endpoint("localhost", 9092, "x")


def test_an_address_in_brackets_is_of_ipv6() -> None:
    """The brackets are not part of the host."""
    endpoint = decoded(
        endpoints=["L://[2001:db8::1]:1"], listener_security_protocol_map={"L": "SSL"}
    )
    assert endpoint is not None
    assert endpoint.listeners == (BrokerListener("L", "2001:db8::1", 1, 1),)


@pytest.mark.parametrize(
    "fields",
    [
        {"host": None},
        {"host": ""},
        {"host": "h" * 300},
        {"host": 5},
        {"port": -1},
        {"port": 65536},
        {"port": "9092"},
        {"rack": {"a": 1}},
        {"rack": 7},
        {"endpoints": 5},
        {"endpoints": [5]},
        {"endpoints": ["PLAINTEXT://h:port"]},
        {"listener_security_protocol_map": [1]},
        {"listener_security_protocol_map": {"OUTSIDE": ["SSL"]}},
    ],
)
def test_a_znode_of_another_shape_gives_no_address(fields: dict[str, Any]) -> None:
    """The broker waits for a znode that can be read; no such value reaches a request."""
    assert decoded(**fields) is None


def test_a_listener_of_an_unknown_protocol_is_left_out() -> None:
    """The others stay; so it is with a listener that has no address."""
    assert decoded(endpoints=["PLAINTEXT://h:9092", "OUTSIDE"]) == Endpoint("h", 9092, "r")
    endpoint = decoded(listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT", "OUTSIDE": "QUIC"})
    assert endpoint == Endpoint("h", 9092, "r")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"7", b'"text"', b"{}"])
def test_what_is_no_object_gives_no_address(data: bytes) -> None:
    """Nor does what is no JSON."""
    assert decode_endpoint(data) is None


@pytest.mark.parametrize("text", [None, "", "x", "!" * 22, "A" * 21, "A" * 24, "é" * 22])
def test_a_text_that_is_not_a_topic_id_is_left_out(text: str | None) -> None:
    """A znode may have any text for an id; the request goes out without it."""
    assert topic_uuid(text) is None


def test_topic_ids_are_kafkas_texts() -> None:
    """URL-safe base64 without padding (``Uuid.toString``)."""
    text = "-_8AAAAAAAAAAAAAAAAAAQ"
    topic_id = topic_uuid(text)
    assert topic_id is not None
    assert topic_id_text(topic_id) == text
