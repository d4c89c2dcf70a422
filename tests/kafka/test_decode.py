"""Messages are read and written as kio does it; newer ones and hostile ones do no harm."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from featurewatch.kafka.decode import DecodeError, read_entity, skip_tags
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import ApiVersionsResponseV4, request_names
from tests.kafka.kio_messages import PAIRS, instances, name_of, pair_of, plain, written

HOSTILE = [
    pair
    for pair in PAIRS
    if name_of(pair)
    in (
        "ApiVersionsResponse-0",
        "ApiVersionsResponse-3",
        "ApiVersionsResponse-4",
        "DescribeClusterResponse-0",
        "DescribeClusterResponse-1",
        "FetchResponse-13",
        "FetchResponse-17",
        "FetchSnapshotResponse-0",
        "FetchSnapshotResponse-1",
        "MetadataResponse-12",
        "SaslAuthenticateResponse-0",
        "SaslHandshakeResponse-1",
        "UpdateFeaturesResponse-1",
    )
]
"""The responses to sources and to logins."""

WITHOUT_CONFIGS = (
    "DescribeConfigsResponse-4",
    *(f"CreateTopicsResponse-{number}" for number in (5, 6, 7)),
)
"""Their settings are read separately, and they are not written again."""


def test_kio_has_most_of_the_messages() -> None:
    """The others are those of ZooKeeper mode, which are compared with Kafka's own classes, and one
    that is newer than kio."""
    known = {name.removesuffix("Request") for name, _ in PAIRS}
    missing = {api for api in request_names().values() if api not in known}
    of_zookeeper = {"LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"}
    assert missing <= {*of_zookeeper, "UnregisterController"}


@pytest.mark.parametrize("pair", PAIRS, ids=name_of)
@given(data=st.data())
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
def test_a_message_is_read_and_written_as_kio_does(pair, data):
    """Key, version and form, and every field of every message that kio has too: nulls, lists,
    tagged fields that have their default or another one. It is written to the same byte."""
    kind, theirs = pair_of(pair)
    for attribute in ("__api_key__", "__version__", "__flexible__"):
        assert getattr(kind, attribute) == getattr(theirs, attribute)
    expected = data.draw(instances(theirs))
    content = written(expected)
    message, end = read_entity(kind, memoryview(content))
    assert end == len(content)
    assert plain(message) == without_configs(plain(expected), kind.__name__, kind.__version__)
    if name_of(pair) not in WITHOUT_CONFIGS:
        assert write_entity(message) == content


def without_configs(message, name, version):
    """A message without the settings, which are read separately, with our spelling of KRaft."""
    if name == "UpdateRaftVoterRequest":
        message["kraft_version_feature"] = message.pop("k_raft_version_feature")
    if (name, version) == ("DescribeConfigsResponse", 4):
        for result in message["results"]:
            result["configs"] = tuple(
                (entry["name"], entry["value"], entry["config_source"] % 256, entry["is_sensitive"])
                for entry in result["configs"]
            )
    if name == "CreateTopicsResponse" and version >= 5:
        for topic in message["topics"]:
            topic["configs"] = ()
    return message


@pytest.mark.fuzz
@pytest.mark.parametrize("pair", HOSTILE, ids=name_of)
@given(data=st.data())
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
def test_a_response_that_was_cut_off_is_refused(pair, data):
    """Wherever it ends early: an error, and neither a wrong message nor anything worse."""
    kind, theirs = pair_of(pair)
    content = written(data.draw(instances(theirs)))
    end = data.draw(st.integers(0, max(0, len(content) - 1)))
    with pytest.raises(DecodeError):
        read_entity(kind, content[:end])


@pytest.mark.fuzz
@pytest.mark.parametrize("pair", HOSTILE, ids=name_of)
@given(st.binary(max_size=200))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_no_bytes_do_harm(pair, content):
    """Anything is a message or an `DecodeError`: a length is no reason to take memory."""
    kind, _ = pair_of(pair)
    for hostile in (content, content + b"\xff\xff\xff\xff\x0f" * 4, b"\x7f" * 4 + content):
        try:
            read_entity(kind, hostile)
        except DecodeError:
            continue


def test_what_a_newer_kafka_adds_is_passed_over():
    """A tagged field that is not known is skipped (KIP-482)."""
    message = ApiVersionsResponseV4(error_code=0, api_keys=(), throttle_time_ms=0)
    content = write_entity(message)
    assert content[-1:] == b"\0"
    newer = content[:-1] + b"\x01" + b"\x63" + b"\x03" + b"abc"
    assert read_entity(ApiVersionsResponseV4, newer) == (message, len(newer))
    assert skip_tags(b"\x01\x63\x03abc!", 0) == 6
