"""The machines' responses in each version of the wire protocol."""

from typing import Any

import pytest

from featurewatch.kafka.decode import read_entity
from featurewatch.kafka.messages import Kip778ApiVersionsResponseV4, response_class
from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.requests import (
    ErrorCode,
    FeaturesResponse,
    ItemResult,
    UpdateResponse,
)
from featurewatch.reference.zookeeper.wire import responses as answers
from featurewatch.reference.zookeeper.wire.api_keys import OFFERED, ApiDialect
from featurewatch.reference.zookeeper.wire.cluster_responses import topic_metadata
from featurewatch.reference.zookeeper.wire.frames import (
    WireRequest,
    request_class,
    write_response,
)
from featurewatch.reference.zookeeper.wire.responses import ClusterView

RELEASED = ApiDialect.RELEASED
EARLY, LATER = ApiDialect.EARLY_DRAFT, ApiDialect.LATER_DRAFT
FEATURES = FeaturesResponse({"a": (1, 3), "zero": (0, 2)}, {"a": 2}, 7)
VIEW = ClusterView("id", 2, {2: Endpoint("h", 9), 1: Endpoint("g", 8, "r")})


def call(key: int, version: int, api_dialect: ApiDialect = RELEASED, **body: Any) -> WireRequest:
    """A request with only the fields that matter here."""
    kind = request_class(api_dialect, key, version)
    message = kind.__new__(kind)
    for name, value in body.items():
        setattr(message, name, value)
    return WireRequest(key, version, 5, message)


def features_of(version: int, api_dialect: ApiDialect = RELEASED) -> Any:
    """The response to ApiVersions."""
    return answers.api_versions(call(18, version, api_dialect), api_dialect, FEATURES)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("api_dialect", list(ApiDialect))
def test_old_responses_have_no_features(api_dialect: ApiDialect, version: int) -> None:
    """ApiVersions v0-v2 lists only APIs, in every dialect."""
    response = features_of(version, api_dialect)
    assert not hasattr(response, "supported_features")
    listed = {
        api_key.api_key: (api_key.min_version, api_key.max_version) for api_key in response.api_keys
    }
    assert listed == OFFERED[api_dialect]


def test_ranges_from_zero_come_with_version_four() -> None:
    """Clients of earlier versions could not read them, so they are omitted (KAFKA-17492)."""
    three, four = features_of(3), features_of(4)
    assert [feature.name for feature in three.supported_features] == ["a"]
    assert [(f.name, f.min_version, f.max_version) for f in four.supported_features] == [
        ("a", 1, 3),
        ("zero", 0, 2),
    ]
    assert four.finalized_features_epoch == 7
    (level,) = four.finalized_features
    assert (level.name, level.max_version_level, level.min_version_level) == ("a", 2, 2)


@pytest.mark.form("released")
def test_released_levels_are_int16_in_tag_2() -> None:
    """Each has a name, a maximum and a minimum, which are equal (F-55 as released)."""
    written = write_response(5, features_of(4))
    assert written.endswith(bytes.fromhex("02 08 02 02 61 0002 0002 00"))


@pytest.mark.form("document", "released")
def test_kip_778_has_no_minimum_from_version_four_on() -> None:
    """A finalized level has a name, a maximum and, in version 3 alone, a minimum (M-10); released
    Kafka has all three in version 4 as well, both the same (M-10 as released)."""
    written = write_response(5, features_of(4, ApiDialect.KIP_778))
    assert written.endswith(bytes.fromhex("02 06 02 02 61 0002 00"))
    for api_dialect, version in ((ApiDialect.KIP_778, 3), (RELEASED, 3), (RELEASED, 4)):
        written = write_response(5, features_of(version, api_dialect))
        assert written.endswith(bytes.fromhex("02 08 02 02 61 0002 0002 00"))
    written = write_response(5, features_of(4, ApiDialect.KIP_778))
    response, _ = read_entity(Kip778ApiVersionsResponseV4, written[8:])
    (level,) = response.finalized_features
    assert (level.name, level.max_version_level, response.finalized_features_epoch) == ("a", 2, 7)
    assert not hasattr(level, "min_version_level")


@pytest.mark.form("document")
@pytest.mark.parametrize("api_dialect", [EARLY, LATER])
def test_the_drafts_features_are_in_their_own_tags(api_dialect: ApiDialect) -> None:
    """From v3 on tags 10000 to 10002 hold int64 ranges, the epoch and the levels; v0-v2 have none
    of them; a level is called version or versionLevel (F-54, F-55). No tag has anything else
    (F-90)."""
    response = features_of(3, api_dialect)
    (level,) = response.finalized_features
    assert (level.name, level.version_level) == ("a", 2)
    written = write_response(5, response)
    tags = written[-(len(written) - 4 - 4 - 2 - 1 - 7 * len(OFFERED[api_dialect]) - 4) :]
    number = "{:016x}".format
    assert tags == bytes.fromhex(
        "03"
        + "904e" + "2a" + "03"
        + "0261" + number(1) + number(3) + "00"
        + "057a65726f" + number(0) + number(2) + "00"
        + "914e" + "08" + number(7)
        + "924e" + "0c" + "02" + "0261" + number(2) + "00"
    )  # fmt: skip
    for version in (0, 1, 2):
        assert not hasattr(features_of(version, api_dialect), "finalized_features")


def test_an_unknown_version_gets_the_oldest_form() -> None:
    """The response has the supported versions, so that the client can choose (KIP-511)."""
    response = answers.api_versions_error(ErrorCode.UNSUPPORTED_VERSION)
    assert response.__version__ == 0
    assert response.error_code is ErrorCode.UNSUPPORTED_VERSION
    (listed,) = response.api_keys
    assert (listed.api_key, listed.min_version, listed.max_version) == (18, 0, 4)
    assert answers.api_versions_error(ErrorCode.INVALID_REQUEST).api_keys == ()


@pytest.mark.parametrize("version", range(13))
@pytest.mark.form("released")
def test_metadata_lists_brokers_and_controller(version: int) -> None:
    """Every version lists them, the controller by its id (A-04 as released, A-05 as released);
    a requested topic is unknown."""
    topic = type("Topic", (), {"name": "t", "topic_id": None})()
    request = call(3, version, topics=(topic,))
    response = answers.metadata(request, VIEW, topic_metadata(request, None))
    written = write_response(5, response)
    read, end = read_entity(response_class(request.body), written, 8 + (version >= 9))
    assert end == len(written)
    assert [(b.node_id, b.host, b.port) for b in read.brokers] == [(1, "g", 8), (2, "h", 9)]
    assert getattr(read, "controller_id", 2) == 2
    assert getattr(read, "cluster_id", "id") == "id"
    assert [topic.error_code for topic in read.topics] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_cluster_is_described_by_its_brokers() -> None:
    """A request for controllers gets an error (KIP-919)."""
    good = answers.describe_cluster(call(60, 1, endpoint_type=1), VIEW)
    assert (good.error_code, good.controller_id, len(good.brokers)) == (ErrorCode.NONE, 2, 2)
    assert answers.describe_cluster(call(60, 0), VIEW).cluster_id == "id"
    wrong = answers.describe_cluster(call(60, 1, endpoint_type=2), VIEW)
    assert wrong.error_code is ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert wrong.brokers == ()
    unknown = answers.describe_cluster(call(60, 1, endpoint_type=9), VIEW)
    assert unknown.error_code is ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


def test_a_controller_that_is_not_listed_is_left_out() -> None:
    """As in AuthHelper: an id without an address would only confuse."""
    view = ClusterView("id", 3, VIEW.brokers)
    assert answers.describe_cluster(call(60, 1, endpoint_type=1), view).controller_id == -1


def test_results_are_per_item_before_version_two() -> None:
    """UpdateFeatures v0-v1 have each item's error, v2 only that of the whole (KIP-1022)."""
    items = (ItemResult("a"), ItemResult("b", ErrorCode.INVALID_REQUEST, "no"))
    for version in (0, 1):
        response = answers.update_features(call(57, version), UpdateResponse(results=items))
        results = [(r.feature, r.error_code, r.error_message) for r in response.results]
        assert results == [("a", ErrorCode.NONE, None), ("b", ErrorCode.INVALID_REQUEST, "no")]
    failure = UpdateResponse(ErrorCode.INVALID_REQUEST, "no")
    response = answers.update_features(call(57, 2), failure)
    assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, "no")
    assert not hasattr(response, "results")


@pytest.mark.form("document")
@pytest.mark.parametrize("api_dialect", [EARLY, LATER])
@pytest.mark.parametrize("version", [0, 1])
def test_the_drafts_return_a_code_and_a_text(api_dialect: ApiDialect, version: int) -> None:
    """Without an error, ErrorCode int16 is 0 and ErrorMessage is null (F-26)."""
    header = b"\0\0\0\5" + b"\0" * version
    for outcome, body in (
        (UpdateResponse(), (b"\0\0" + b"\xff\xff", b"\0\0" + b"\0" + b"\0")),
        (
            UpdateResponse(ErrorCode.NOT_CONTROLLER, "no"),
            (b"\0\x29" + b"\0\2no", b"\0\x29" + b"\3no" + b"\0"),
        ),
    ):
        request = call(48, version, api_dialect)
        response = answers.update_features(request, outcome)
        assert isinstance(response, response_class(request.body))
        assert write_response(5, response)[4:] == header + body[version]
