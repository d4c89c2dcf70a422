"""The source's own decoders read back the bytes that the reference system writes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.reference.zookeeper.machines.controller.controller import ReferenceController
from featurewatch.reference.zookeeper.machines.dialect import (
    DIALECTS,
    EARLY_DRAFT,
    EARLY_DRAFT_STRUCK,
    LATER_DRAFT,
    RELEASED,
    RELEASED_1,
)
from featurewatch.reference.zookeeper.machines.encoding import (
    BrokerIdentity,
    ZnodeDecodeError,
    broker_path,
    decode_controller,
    decode_controller_epoch,
    decode_features,
    decode_ranges,
    encode_broker,
    encode_controller,
    encode_controller_epoch,
    encode_features,
    levels_of,
    metadata_of,
)
from featurewatch.reference.zookeeper.machines.requests import EarlyUpdate, UpdateFeatures
from featurewatch.streams.types import SupportedRange
from featurewatch.streams.znodes import BrokerZnode
from featurewatch.streams.zookeeper.decoding.znodes import decode_znode
from tests.reference.zookeeper.machines.driving import Driver

NAMES = st.text(min_size=1, max_size=8)
LEVELS = st.dictionaries(NAMES, st.integers(1, 32767))


@given(LEVELS, st.sampled_from([*DIALECTS]))
def test_levels_come_back(levels: dict[str, int], name: str) -> None:
    """Levels round-trip in each form, under any names."""
    dialect = DIALECTS[name]
    znode = decode_features(dialect, encode_features(dialect, levels))
    assert (levels_of(znode), znode.enabled, znode.form) == (levels, True, dialect.form)


@pytest.mark.form("document")
@given(LEVELS, st.dictionaries(st.sampled_from("xyz"), st.integers() | st.text(), max_size=2))
def test_the_drafts_keep_other_fields_beside_a_level(
    levels: dict[str, int], extra: dict[str, int | str]
) -> None:
    """An update of one feature loses no field of another (F-10)."""
    for dialect in (EARLY_DRAFT, LATER_DRAFT):
        metadata = {name: extra for name in levels if extra}
        try:
            znode = decode_features(dialect, encode_features(dialect, levels, metadata))
        except TypeError:  # an integer beyond 64 bits, which orjson does not write
            assert any(isinstance(value, int) for value in extra.values())
            continue
        assert (levels_of(znode), metadata_of(znode)) == (levels, metadata)


@pytest.mark.form("document", "released")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("early-draft", {"version": 0, "data": {"features": {"alpha": {"version": 3}}}}),
        ("later-draft", {"version": 0, "features": {"alpha": {"version_level": 3}}}),
        (
            "released-1",
            {
                "version": 1,
                "status": 1,
                "features": {"alpha": {"max_version_level": 3, "min_version_level": 3}},
            },
        ),
        (
            "released",
            {"version": 2, "status": 1, "features": {"alpha": {"max_version_level": 3}}},
        ),
    ],
)
def test_the_forms(name: str, expected: object) -> None:
    """Each form is as its text says; the newest has no minimum level (F-06, F-06 as released, F-07,
    F-08 as released, F-09, F-09 as released, M-14, M-14 as released)."""
    dialect = DIALECTS[name]
    assert json.loads(encode_features(dialect, {"alpha": 3})) == expected
    assert dialect.path == ("/features" if "draft" in name else "/feature")


@pytest.mark.form("document")
def test_the_struck_out_epoch_counts_the_writes() -> None:
    """The epoch in the znode's data equals the znode's next version (F-08)."""
    machine = ReferenceController(1, EARLY_DRAFT_STRUCK, {"alpha": SupportedRange(0, 3)})
    driver = Driver(machine)
    driver.start()
    for level in (1, 2, 3):
        driver.request(UpdateFeatures((EarlyUpdate("alpha", level),)))
        driver.rest()
        node = driver.history.tree["/features"]
        assert decode_features(EARLY_DRAFT_STRUCK, node.data).epoch == node.stat.version == level


@pytest.mark.form("document", "released")
def test_a_broker_writes_schema_5() -> None:
    """It has all fields of schema 4, and the ranges under the names of its form (F-01, F-02, F-02
    as released)."""
    listeners = {"IN": ("in.example", 9071, "PLAINTEXT"), "OUT": ("out.example", 9072, "SASL_SSL")}
    identity = BrokerIdentity(3, listeners, rack="r1")
    data = encode_broker(EARLY_DRAFT, identity, {"alpha": SupportedRange(0, 3)}, 1579041366882)
    assert json.loads(data) == {
        "version": 5,
        "host": "in.example",
        "port": 9071,
        "jmx_port": -1,
        "timestamp": "1579041366882",
        "endpoints": ["IN://in.example:9071", "OUT://out.example:9072"],
        "listener_security_protocol_map": {"IN": "PLAINTEXT", "OUT": "SASL_SSL"},
        "rack": "r1",
        "features": {"alpha": {"minVersion": 0, "maxVersion": 3}},
    }
    for dialect in (LATER_DRAFT, RELEASED):
        data = encode_broker(dialect, BrokerIdentity(3), {"alpha": SupportedRange(1, 3)}, 5)
        assert json.loads(data)["features"] == {"alpha": {"min_version": 1, "max_version": 3}}


@given(
    st.dictionaries(
        NAMES, st.builds(SupportedRange, st.integers(0, 9), st.integers(9, 99)), max_size=4
    )
)
def test_ranges_come_back(ranges: dict[str, SupportedRange]) -> None:
    """Ranges and addresses round-trip in each form."""
    for dialect in DIALECTS.values():
        data = encode_broker(dialect, BrokerIdentity(3), ranges, 5)
        assert decode_ranges(3, data).ranges == ranges
        znode = decode_znode(broker_path(3), data).content
        assert isinstance(znode, BrokerZnode)
        assert znode.addresses == {"PLAINTEXT": "localhost:9092"}


def test_the_controller_is_written_as_the_release_does() -> None:
    """From Kafka 3.4 on it has a KRaft epoch, here none."""
    new, old = encode_controller(RELEASED, 4, 17), encode_controller(RELEASED_1, 4, 17)
    assert json.loads(old) == {"version": 1, "brokerid": 4, "timestamp": "17"}
    assert json.loads(new) == json.loads(old) | {"version": 2, "kraftControllerEpoch": -1}
    assert decode_controller(new) == decode_controller(old) == 4
    assert decode_controller_epoch(encode_controller_epoch(12)) == 12


def test_unreadable_znodes() -> None:
    """The error gives the reason in one line; no controller is decoded from junk."""
    for data in (b"", b"{", b"[]", b'{"version":3,"status":1,"features":{}}'):
        with pytest.raises(ZnodeDecodeError):
            decode_features(RELEASED, data)
        with pytest.raises(ZnodeDecodeError):
            decode_ranges(1, data)
    with pytest.raises(ZnodeDecodeError, match="early-draft, not later-draft"):
        decode_features(LATER_DRAFT, encode_features(EARLY_DRAFT, {}))
    with pytest.raises(ZnodeDecodeError):
        decode_controller_epoch(b"one")
    assert decode_controller(b"{}") is None
