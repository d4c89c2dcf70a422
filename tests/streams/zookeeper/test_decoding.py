"""From bytes to what znodes say: every form that Kafka or a draft ever wrote, and what is wrong."""

import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.streams.codec.events import decode as decode_event
from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import ZnodeChange
from featurewatch.streams.topics import ZOOKEEPER
from featurewatch.streams.types import ClusterId, FeatureLevel, FeatureName, NodeId, SupportedRanges
from featurewatch.streams.znodes import (
    AdminTask,
    AdminZnode,
    BrokerZnode,
    ClusterIdZnode,
    ControllerEpochZnode,
    ControllerZnode,
    FeaturesForm,
    FeaturesZnode,
    MigrationZnode,
    PartitionStateZnode,
    UnreadableZnode,
    Znode,
)
from featurewatch.streams.zookeeper.decoding.znodes import decode_znode
from featurewatch.streams.zookeeper.paths import WatchScope

BROKER: dict[str, Any] = {
    "version": 5,
    "host": "kafka-1",
    "port": 9092,
    "jmx_port": 9999,
    "timestamp": "2233345666",
    "endpoints": ["CLIENT://kafka-1:9092", "REPLICATION://[::1]:9093"],
    "listener_security_protocol_map": {"CLIENT": "SSL", "REPLICATION": "PLAINTEXT"},
    "rack": "dc1",
    "features": {"group": {"min_version": 1, "max_version": 3}},
}
STATE = "/brokers/topics/orders.v1/partitions/12/state"
PATHS = [
    *(target.path for target in WatchScope(partitions=True, tasks=True).roots()),
    "/brokers/ids/3",
    "/admin/delete_topics/orders",
    STATE,
    "/somewhere/else",
]


def levels(**levels: int) -> dict[FeatureName, FeatureLevel]:
    """Finalized levels by feature."""
    return {FeatureName(name): FeatureLevel(level) for name, level in levels.items()}


def read(path: str, content: object) -> Any:
    """The content at the path, which must be valid."""
    decoded = decode_znode(path, content if isinstance(content, bytes) else orjson.dumps(content))
    assert decoded.error is None
    return decoded.content


def complaint(path: str, content: object) -> str:
    """The error of a znode that cannot be read."""
    decoded = decode_znode(path, content if isinstance(content, bytes) else orjson.dumps(content))
    assert decoded.error is not None
    assert decoded.content == UnreadableZnode(decoded.error)
    return decoded.error


def without(content: dict[str, Any], name: str) -> dict[str, Any]:
    """The object without a field."""
    return {key: value for key, value in content.items() if key != name}


@pytest.mark.form("document")
def test_a_broker_of_schema_5():
    """Features came with schema 5, every key of schema 4 stays (F-01), and the range is its own
    (F-05)."""
    assert read("/brokers/ids/7", BROKER) == BrokerZnode(
        node_id=NodeId(7),
        schema=5,
        features=SupportedRanges({FeatureName("group"): (1, 3)}),
        addresses={"CLIENT": "kafka-1:9092", "REPLICATION": "[::1]:9093"},
        rack="dc1",
        started_ms=2233345666,
    )


@pytest.mark.parametrize(
    ("version", "kept", "addresses", "rack"),
    [
        (1, ("host", "port"), {"PLAINTEXT": "kafka-1:9092"}, None),
        (2, ("host", "port", "endpoints"), None, None),
        (3, ("endpoints", "rack"), None, "dc1"),
        (4, ("endpoints", "rack", "listener_security_protocol_map"), None, "dc1"),
    ],
)
def test_a_broker_of_an_older_schema(version, kept, addresses, rack):
    """Schemas 1 to 4 say no features; the oldest has one address under two keys."""
    content = {"version": version, "timestamp": "1"} | {key: BROKER[key] for key in kept}
    broker = read("/brokers/ids/0", content)
    assert (broker.schema, broker.features, broker.rack) == (version, {}, rack)
    assert broker.addresses == (
        addresses or {"CLIENT": "kafka-1:9092", "REPLICATION": "[::1]:9093"}
    )


@pytest.mark.form("document")
def test_a_broker_of_the_early_draft():
    """The early draft spells the ends of a range minVersion and maxVersion, 64 bits wide (F-02)."""
    features = {"eos": {"minVersion": 0, "maxVersion": 2**40}}
    assert read("/brokers/ids/1", BROKER | {"features": features}).features == {"eos": (0, 2**40)}


def test_a_broker_whose_minimum_is_above_its_maximum():
    """It is complained of, and what the broker says is taken all the same."""
    features = {"group": {"min_version": 4, "max_version": 3}}
    decoded = decode_znode("/brokers/ids/1", orjson.dumps(BROKER | {"features": features}))
    assert isinstance(decoded.content, BrokerZnode)
    assert decoded.content.features == {"group": (4, 3)}
    assert decoded.error == ("it supports 'group' from 4 to 3: the minimum is above the maximum")


def test_a_broker_whose_time_is_nonsense():
    """A start time that is not a number is unknown; the rest of the broker counts."""
    assert read("/brokers/ids/1", BROKER | {"timestamp": "yesterday"}).started_ms == -1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 6}, "its version is 6; known is 1 to 5"),
        ({"version": 0}, "its version is 0; known is 1 to 5"),
        ({"version": "5"}, "version is not an integer"),
        ({"endpoints": None}, "endpoints is not a list"),
        ({"endpoints": ["kafka-1:9092"]}, "that is not LISTENER://host:port: 'kafka-1:9092'"),
        ({"rack": 3}, "rack is not a string: 3"),
        ({"features": []}, "features is not an object"),
        ({"features": {"": {"min_version": 1, "max_version": 1}}}, "a feature has an empty name"),
        ({"features": {"a": {"min_version": 1}}}, "max_version of 'a' is missing"),
        ({"features": {"a": {"maxVersion": 1}}}, "minVersion of 'a' is missing"),
        ({"features": {"a": {"min_version": 1, "max_version": 2**63}}}, "is not an integer from"),
        ({"features": {"a": {"min_version": True, "max_version": 1}}}, "is not an integer from"),
    ],
)
def test_a_broken_broker(change, reason):
    """One reason is given, and it names the field."""
    assert reason in complaint("/brokers/ids/1", BROKER | change)


@pytest.mark.parametrize("name", ["x", "-1", "99999999999", "2147483648", "1.0", "١"])
def test_an_invalid_broker_id(name):
    """A znode under /brokers/ids is named by a 32-bit number."""
    assert complaint(f"/brokers/ids/{name}", BROKER)


@pytest.mark.form("released")
def test_released_features_with_minimums():
    """Schema 1 has a maximum and a minimum level each (F-09 as released)."""
    content = {
        "version": 1,
        "status": 1,
        "features": {"group": {"max_version_level": 3, "min_version_level": 2}},
    }
    assert read("/feature", content) == FeaturesZnode(
        FeaturesForm.RELEASED_1, 1, True, levels(group=3), levels(group=2)
    )


@pytest.mark.form("released")
def test_released_features_without_minimums():
    """Schema 2 has one level for each feature and no min_version_level (M-14 as released, F-09 as
    released)."""
    content = {"version": 2, "status": 1, "features": {"group": {"max_version_level": 3}}}
    assert read("/feature", content) == FeaturesZnode(
        FeaturesForm.RELEASED_2, 2, True, levels(group=3)
    )


def test_disabled_features_have_no_levels():
    """With status 0 nothing is finalized, whatever is written beside it."""
    content = {"version": 2, "status": 0, "features": {"group": {"max_version_level": 3}}}
    assert read("/feature", content) == FeaturesZnode(FeaturesForm.RELEASED_2, 2, False, {})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"version": 3, "status": 1, "features": {}}, "its version is 3; known is 1 to 2"),
        ({"version": 2, "features": {}}, "status is missing"),
        ({"version": 2, "status": 2, "features": {}}, "status is not an integer from 0 to 1: 2"),
        ({"version": 2, "status": 1}, "features is missing"),
        ({"version": 2, "status": 1, "features": None}, "features is missing"),
        ({"version": 2, "status": 1, "features": {"a": {}}}, "max_version_level of 'a' is missing"),
        (
            {"version": 1, "status": 1, "features": {"a": {"max_version_level": 1}}},
            "min_version_level of 'a' is missing",
        ),
        (
            {"version": 2, "status": 1, "features": {"a": {"max_version_level": 0}}},
            "max_version_level of 'a' is not an integer from 1",
        ),
        (
            {
                "version": 1,
                "status": 1,
                "features": {"a": {"max_version_level": 1, "min_version_level": 2}},
            },
            "the minimum level of 'a', 2, is above 1",
        ),
    ],
)
def test_broken_released_features(content, reason):
    """Content that Kafka's own decoder refuses is refused, with the field."""
    assert reason in complaint("/feature", content)


@pytest.mark.form("document")
def test_features_of_the_early_draft():
    """The levels are in data.features, under the key version (F-06, F-07)."""
    content = {"version": 0, "data": {"features": {"eos": {"version": 3}, "off": {"version": 0}}}}
    assert read("/features", content) == FeaturesZnode(
        FeaturesForm.EARLY_DRAFT, 0, True, levels(eos=3, off=0)
    )


@pytest.mark.form("document")
def test_the_epoch_of_the_early_draft():
    """An epoch in the JSON is kept beside the levels (F-08)."""
    content = {"version": 0, "data": {"epoch": 2**33, "features": {"eos": {"version": 3}}}}
    assert read("/features", content).epoch == 2**33


@pytest.mark.form("document")
def test_features_of_the_later_draft():
    """The levels are in features, under the key version_level, 64 bits wide (F-06, F-09)."""
    content = {"version": 2**33, "features": {"eos": {"version_level": 2**40}}}
    assert read("/features", content) == FeaturesZnode(
        FeaturesForm.LATER_DRAFT, 2**33, True, levels(eos=2**40)
    )


@pytest.mark.form("document")
def test_other_metadata_is_kept():
    """Strings and numbers beside a level are tolerated, in both drafts (F-10)."""
    beside = {"owner": "streams", "since": 7, "share": 0.5}
    for content in (
        {"version": 1, "features": {"a": {"version_level": 3} | beside}},
        {"version": 0, "data": {"features": {"a": {"version": 3} | beside}}},
    ):
        assert read("/features", content).metadata == {"a": beside}
        assert read("/features", content).levels == {"a": 3}


@pytest.mark.form("released")
def test_kafka_reads_only_the_keys_that_it_knows():
    """Others do not count, at the top whatever they are; those of a feature must be integers
    (F-10 as released). There is no epoch among them (F-08 as released)."""
    content = {
        "version": 2,
        "status": 1,
        "epoch": 9,
        "data": {"epoch": 9, "features": {}},
        "features": {"a": {"max_version_level": 3, "epoch": 9}},
    }
    found = read("/feature", content)
    assert (found.levels, found.epoch) == ({"a": 3}, -1)
    for wrong in ("streams", 0.5, True, None):
        content["features"] = {"a": {"max_version_level": 3, "owner": wrong}}
        assert "'owner' of 'a' is not an integer" in complaint("/feature", content)


@pytest.mark.form("document")
@pytest.mark.parametrize("wrong", [None, True, [], {}, {"x": 1}])
def test_other_metadata_that_is_neither_string_nor_number(wrong):
    """It makes the znode unreadable, and so does an empty key or an empty feature name (F-10)."""
    content = {"version": 1, "features": {"a": {"version_level": 3, "owner": wrong}}}
    assert "'owner' of 'a' is neither a string nor a number" in complaint("/features", content)
    content = {"version": 1, "features": {"a": {"version_level": 3, "": "x"}}}
    assert "an empty name" in complaint("/features", content)
    content = {"version": 1, "features": {"": {"version_level": 3}}}
    assert "empty name" in complaint("/features", content)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"features": {}}, "version is missing"),
        ({"version": 0}, "features is missing"),
        ({"version": 0, "data": []}, "data is not an object"),
        ({"version": 0, "data": {}, "features": {}}, "both data"),
        ({"version": 0, "features": {"a": {"version_level": 0}}}, "is not an integer from 1"),
        ({"version": 0, "features": {"a": {"version_level": 1.5}}}, "is not an integer from 1"),
        ({"version": 0, "features": {"a": 1}}, "the entry of 'a' is not an object: 1"),
    ],
)
def test_broken_draft_features(content, reason):
    """One reason is given, and it names the field."""
    assert reason in complaint("/features", content)


def test_the_controller():
    """Until 3.3 without, then with KRaft's epoch, which is -1 while a broker is the controller."""
    old = {"version": 1, "brokerid": 3, "timestamp": "1700000000000"}
    assert read("/controller", old) == ControllerZnode(NodeId(3), -1, 1700000000000)
    new = old | {"version": 2, "kraftControllerEpoch": 9}
    assert read("/controller", new) == ControllerZnode(NodeId(3), 9, 1700000000000)
    assert "brokerid is missing" in complaint("/controller", without(old, "brokerid"))


def test_the_controller_epoch():
    """A bare number."""
    assert read("/controller_epoch", b"41") == ControllerEpochZnode(41)
    for wrong in (b"", b"x", b"-1", b"4.1", b"9999999999", "٣".encode(), b"1" * 5000):
        assert complaint("/controller_epoch", wrong)


def test_the_cluster_id():
    """Its version is a string."""
    content = {"version": "1", "id": "5L6g3nShT-eMCtK--X86sw"}
    assert read("/cluster/id", content) == ClusterIdZnode("5L6g3nShT-eMCtK--X86sw")
    assert (
        complaint("/cluster/id", content | {"version": "2"}) == "its version is '2'; known is '1'"
    )
    assert "id is not a string with" in complaint("/cluster/id", content | {"id": ""})


def test_the_migration():
    """How far a KRaft controller is."""
    content = {
        "version": 0,
        "kraft_controller_id": 3000,
        "kraft_controller_epoch": 2,
        "kraft_metadata_offset": 2**40,
        "kraft_metadata_epoch": 2,
    }
    assert read("/migration", content) == MigrationZnode(NodeId(3000), 2, 2**40, 2)
    assert "version is 1" in complaint("/migration", content | {"version": 1})


def test_a_partition_state():
    """Topic and partition come from the path; recovering is said only while it lasts."""
    content = {"version": 1, "leader": 2, "leader_epoch": 9, "controller_epoch": 4, "isr": [2, 3]}
    assert read(STATE, content) == PartitionStateZnode(
        "orders.v1", 12, NodeId(2), 9, 4, (NodeId(2), NodeId(3)), False
    )
    assert read(STATE, content | {"leader": -1, "leader_recovery_state": 1}).recovering
    assert "leader_recovery_state" in complaint(STATE, content | {"leader_recovery_state": 2})
    assert "isr is not a list" in complaint(STATE, content | {"isr": "2,3"})


def test_tasks_under_admin():
    """Reassignments have replicas, elections have none, a deletion is a name alone."""
    task = {"topic": "a", "partition": 0, "replicas": [1, 2]}
    assert read("/admin/reassign_partitions", {"version": 1, "partitions": [task]}) == (
        AdminZnode(AdminTask.REASSIGN, (task,))
    )
    assert read("/admin/preferred_replica_election", {"version": 1, "partitions": [task]}) == (
        AdminZnode(AdminTask.ELECT, (without(task, "replicas"),))
    )
    assert read("/admin/delete_topics/a", b"") == AdminZnode(AdminTask.DELETE, ({"topic": "a"},))
    assert "replicas is missing" in complaint(
        "/admin/reassign_partitions", {"version": 1, "partitions": [without(task, "replicas")]}
    )


HOSTILE = {
    "nothing": b"",
    "not UTF-8": b'{"version": 1, "x": "\xff"}',
    "a lone surrogate": b'{"version": 1, "x": "\\ud800"}',
    "no object": b"[1]",
    "half": b'{"version": 1',
    "deep": b"[" * 500_000 + b"]" * 500_000,
    "deep objects": b'{"features":' * 80_000,
    "a huge number": b'{"version": ' + b"9" * 1_000_000 + b"}",
    "a huge name": b'{"version":1,"status":1,"features":{"' + b"a" * 1_000_000 + b'":1}}',
    "many names": b'{"version":1,"status":1,"features":{'
    + b",".join(b'"%d":{}' % n for n in range(90_000))
    + b"}}",
    "infinite": b'{"version":1,"features":{"a":{"version_level":1,"b":1e999}}}',
    "not a number": b'{"version":1,"features":{"a":{"version_level":1,"b":NaN}}}',
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_bytes_are_refused_in_one_short_line_and_at_once(path, data):
    """Up to a mebibyte of anything: a reason of one line, well below a second."""
    began = time.process_time()
    decoded = decode_znode(path, data)
    assert time.process_time() - began < 1
    if not path.startswith("/admin/delete_topics/"):
        assert isinstance(decoded.content, UnreadableZnode)
        assert decoded.error is not None
        assert len(decoded.error) < 300
        assert "\n" not in decoded.error


def test_the_last_of_duplicate_names_counts():
    """The last one counts, as in Kafka's own parser."""
    data = b'{"version": 9, "version": "1", "id": "first", "id": "second"}'
    assert read("/cluster/id", data) == ClusterIdZnode("second")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "1", "a", "PLAINTEXT://a:1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *BROKER,
                    "",
                    "data",
                    "status",
                    "id",
                    "epoch",
                    "partitions",
                    "min_version",
                    "max_version",
                    "version_level",
                    "max_version_level",
                    "brokerid",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@pytest.mark.fuzz
@given(st.sampled_from(PATHS), JSON.map(orjson.dumps) | st.binary(max_size=40))
def test_whatever_is_read_can_be_published_on_the_topic(path, data):
    """Any bytes give a content, and an event with it comes back from the topic as it was."""
    znode = Znode(path, 5, 6, 1, 0, decode_znode(path, data).content)
    event = ZnodeChange(ClusterId("c"), path, znode, 0, False, 7, 8)
    assert decode_event(ZOOKEEPER, encode(ZOOKEEPER, event).value) == event
