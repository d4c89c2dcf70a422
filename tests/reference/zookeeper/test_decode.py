"""Requests are decoded as kio encodes them, and no bytes from a client do harm."""

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.describe_cluster import v1 as describe_cluster
from kio.schema.metadata import v0 as metadata_0
from kio.schema.metadata import v4 as metadata_4
from kio.schema.metadata import v12 as metadata_12
from kio.schema.types import TopicName
from kio.schema.update_features import v0 as update_0
from kio.schema.update_features import v1 as update_1
from kio.schema.update_features import v2 as update_2
from kio.static.primitive import i8, i16

from featurewatch.admin.errors import RequestError
from featurewatch.admin.features import kip_778
from featurewatch.admin.features.update_request import update_request
from featurewatch.admin.features.updates import DowngradeType, FeatureUpdate
from featurewatch.kafka.messages import (
    EarlyDeleteFeaturesRequestV0,
    EarlyUpdateFeaturesRequestV0,
    StruckUpdateMetadataRequestV6,
    message_class,
)
from featurewatch.reference.zookeeper.machines.requests import (
    EarlyUpdate,
    LaterUpdate,
    ReleasedUpdate,
    Update,
    UpdateFeatures,
    UpdateMetadata,
)
from featurewatch.reference.zookeeper.wire.api_keys import (
    DRAFT_DELETE,
    DRAFT_UPDATE,
    OFFERED,
    ApiDialect,
)
from featurewatch.reference.zookeeper.wire.frames import (
    MalformedRequestError,
    WireRequest,
    read_request,
    request_class,
)
from featurewatch.reference.zookeeper.wire.requests import read_update_features
from featurewatch.reference.zookeeper.wire.update_metadata import UpdateMetadataSender
from featurewatch.streams.types import FeatureLevel, FeatureName, UpgradeType
from tests.kafka.kio_messages import plain
from tests.reference.zookeeper.request_bytes import request_bytes

SPEECHES = list(ApiDialect)
RELEASED = ApiDialect.RELEASED
EARLY, LATER = ApiDialect.EARLY_DRAFT, ApiDialect.LATER_DRAFT


def draft_update(api_dialect: ApiDialect, version: int) -> Any:
    """An update of a draft with two items, one of which names two features."""
    form = request_class(api_dialect, DRAFT_UPDATE, version)
    mode = "allow_downgrade" if api_dialect is LATER else "feature_update_type"

    def update(how: int, *levels: tuple[str, int]) -> Any:
        value = bool(how) if api_dialect is LATER else how
        features = tuple(form.FeatureKey(name=name, version_level=level) for name, level in levels)
        return form.FeatureUpdateKey(**{mode: value}, feature=features)

    return form(feature_update=(update(0, ("a", 1)), update(1, ("b", 2**40), ("ü", 0))))


def updates_in(request: WireRequest, api_dialect: ApiDialect) -> tuple[Update, ...]:
    """The items of an update as the controller reads them."""
    read = read_update_features(request, api_dialect)
    assert isinstance(read, UpdateFeatures)
    return read.updates


def draft_deletion(version: int) -> Any:
    """A deletion of two features."""
    form = message_class("EarlyDeleteFeaturesRequest", version)
    return form(feature=(form.FeatureKey(name="a"), form.FeatureKey(name="b")))


REQUESTS = [
    (RELEASED, metadata_0.request.MetadataRequest(topics=())),
    (RELEASED, metadata_4.request.MetadataRequest(topics=None, allow_auto_topic_creation=True)),
    (
        RELEASED,
        metadata_12.request.MetadataRequest(
            topics=(metadata_12.request.MetadataRequestTopic(name=TopicName("t"), topic_id=None),),
            include_topic_authorized_operations=True,
        ),
    ),
    (
        RELEASED,
        update_0.request.UpdateFeaturesRequest(
            feature_updates=(
                update_0.request.FeatureUpdateKey(
                    feature="a", max_version_level=i16(3), allow_downgrade=True
                ),
            )
        ),
    ),
    (
        RELEASED,
        update_1.request.UpdateFeaturesRequest(
            feature_updates=(
                update_1.request.FeatureUpdateKey(
                    feature="a", max_version_level=i16(-1), upgrade_type=i8(3)
                ),
            ),
            validate_only=True,
        ),
    ),
    (RELEASED, update_2.request.UpdateFeaturesRequest(feature_updates=())),
    (
        RELEASED,
        describe_cluster.request.DescribeClusterRequest(
            include_cluster_authorized_operations=True, endpoint_type=i8(2)
        ),
    ),
    *(
        (api_dialect, draft_update(api_dialect, version))
        for api_dialect in (EARLY, LATER)
        for version in (0, 1)
    ),
    *((EARLY, draft_deletion(version)) for version in (0, 1)),
]


@pytest.mark.parametrize(("api_dialect", "request_"), REQUESTS)
def test_a_request_is_read_as_it_was_written(api_dialect: ApiDialect, request_: Any) -> None:
    """A request that kio encodes, or one of a draft, is decoded with equal fields."""
    call = read_request(request_bytes(request_, 9), api_dialect)
    assert (call.key, call.version) == (request_.__api_key__, request_.__version__)
    assert call.correlation_id == 9
    assert plain(call.body) == plain(request_)


@pytest.mark.parametrize("client_id", [None, "", "ä client"])
def test_the_header_is_skipped(client_id: str | None) -> None:
    """A client may have any name, or none."""
    api_dialect, request_ = REQUESTS[-1]
    read = read_request(request_bytes(request_, client_id=client_id), api_dialect)
    assert read.body == request_


@pytest.mark.parametrize("api_dialect", SPEECHES)
def test_every_version_that_is_offered_has_a_class(api_dialect: ApiDialect) -> None:
    """A listener can decode everything that ApiVersions lists."""
    for key, (low, high) in OFFERED[api_dialect].items():
        for version in range(low, high + 1):
            kind = request_class(api_dialect, key, version)
            assert (kind.__api_key__, kind.__version__) == (
                key,
                version,
            ) or key == 18


def test_trailing_bytes_are_ignored() -> None:
    """As in Kafka: librdkafka's Metadata of version 12 has some."""
    api_dialect, request_ = REQUESTS[0]
    read = read_request(request_bytes(request_) + b"\0\0\0", api_dialect)
    assert plain(read.body) == plain(request_)


def test_unknown_tags_are_skipped() -> None:
    """A client may be newer than the listener (KIP-482)."""
    api_dialect, request_ = REQUESTS[5]
    written = request_bytes(request_)
    assert written[-1:] == b"\0"
    tagged = written[:-1] + b"\x01\x90\x4e\x03abc"
    assert plain(read_request(tagged, api_dialect).body) == plain(request_)


@pytest.mark.parametrize(
    ("bytes_", "message"),
    [
        (b"", "too short"),
        (b"GET / HTTP/1.1\r\n\r\n", "API key 18245 is not served here"),
        (struct.pack(">hhih", 10, 0, 1, -1), "API key 10 (FindCoordinator) is not served here"),
        (struct.pack(">hhih", 3, 13, 1, -1), "version 13 of API key 3 (Metadata) is not served"),
        (struct.pack(">hhih", 48, 0, 1, -1), "API key 48 is not served here"),
        (struct.pack(">hhihi", 3, 0, 1, -1, 2**31 - 1), "2147483647 items should follow"),
        (struct.pack(">hhihi", 3, 0, 1, -1, -1), "a list is missing"),
        (struct.pack(">hhih", 3, 0, 1, 5), "5 bytes should follow, but only 0 do"),
        (struct.pack(">hhihih", 3, 0, 1, -1, 1, 2) + b"\xff\xff", "not UTF-8"),
        (struct.pack(">hhih", 57, 1, 1, -1) + b"\xff" * 6, "longer than five bytes"),
    ],
)
def test_each_kind_of_garbage_has_a_one_line_error(bytes_: bytes, message: str) -> None:
    """No length is trusted beyond the bytes that are there."""
    with pytest.raises(MalformedRequestError) as raised:
        read_request(bytes_, RELEASED)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_unknown_version_of_api_versions_is_no_garbage() -> None:
    """It gets a response; the connection stays open (KIP-511)."""
    call = read_request(struct.pack(">hhih", 18, 9, 5, -1) + b"whatever", RELEASED)
    assert call == WireRequest(18, 9, 5, None)


@pytest.mark.fuzz
@settings(max_examples=400)
@given(
    which=st.sampled_from(REQUESTS),
    cut=st.integers(0, 60),
    changes=st.lists(st.tuples(st.integers(8, 60), st.binary(min_size=1, max_size=5)), max_size=4),
)
def test_broken_requests_never_break_the_reader(
    which: tuple[ApiDialect, Any], cut: int, changes: list[tuple[int, bytes]]
) -> None:
    """Randomly changed or truncated bytes give a request or the one error."""
    api_dialect, request_ = which
    broken = bytearray(request_bytes(request_))
    for place, new in changes:
        broken[place : place + len(new)] = new
    try:
        call = read_request(bytes(broken[: len(broken) - cut]), api_dialect)
    except MalformedRequestError:
        return
    assert call.body is not None


@pytest.mark.form("document")
@pytest.mark.parametrize("version", [0, 1])
def test_the_later_draft_is_laid_out_as_its_schema_says(version: int) -> None:
    """Key 48: a timeout of 60000 ms by default, old form in v0, flexible from v1; an item has
    AllowDowngrade and a list of names and int64 levels (F-20, F-24)."""
    form = message_class("LateUpdateFeaturesRequest", version)
    feature = form.FeatureKey(name="f", version_level=2**33)
    update = form.FeatureUpdateKey(allow_downgrade=True, feature=(feature,))
    sent = form(feature_update=(update,))
    level = struct.pack(">q", 2**33)
    body = (
        b"\0\0\xea\x60" + b"\0\0\0\1" + b"\1" + b"\0\0\0\1" + b"\0\1f" + level
        if version == 0
        else b"\0\0\xea\x60" + b"\2" + b"\1" + b"\2" + b"\2f" + level + b"\0" + b"\0" + b"\0"
    )
    head = struct.pack(">hhi", DRAFT_UPDATE, version, 7) + b"\0\x08somebody" + b"\0" * version
    assert request_bytes(sent) == head + body
    both = draft_update(LATER, version)
    assert updates_in(read_request(request_bytes(both), LATER), LATER) == (
        LaterUpdate("a", 1, False),
        LaterUpdate("b", 2**40, True),
        LaterUpdate("ü", 0, True),
    )


@pytest.mark.form("document")
@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("downgrade_type", DowngradeType)
@pytest.mark.parametrize("dry_run", [False, True])
def test_kip_778s_update_is_laid_out_as_its_schema_says(
    version: int, downgrade_type: DowngradeType, dry_run: bool
) -> None:
    """DowngradeType is an int8 from 0 in each item, DryRun a bool from version 1 on (M-05, M-08).

    The reference controller reads what the client writes.
    """
    update = FeatureUpdate(FeatureName("f"), FeatureLevel(300), downgrade_type.upgrade_type)
    if version == 0 and dry_run:
        with pytest.raises(RequestError, match="takes no dry run"):
            kip_778.update_request([update], version, dry_run=True)
        return
    sent = kip_778.update_request([update], version, dry_run=dry_run)
    item = b"\2f" + struct.pack(">hb", 300, downgrade_type) + b"\0"
    flag = struct.pack(">?", dry_run) * version
    head = struct.pack(">hhi", 57, version, 7) + b"\0\x08somebody" + b"\0"
    assert request_bytes(sent) == head + b"\0\0\xea\x60" + b"\2" + item + flag + b"\0"
    form = message_class("Kip778UpdateFeaturesRequest", version)
    assert form.FeatureUpdateKey(feature="f", max_version_level=1).downgrade_type == 0
    assert getattr(form(feature_updates=()), "dry_run", False) is False
    read = read_update_features(
        read_request(request_bytes(sent), ApiDialect.KIP_778), ApiDialect.KIP_778
    )
    assert read == UpdateFeatures(
        (ReleasedUpdate("f", 300, upgrade_type=downgrade_type + 1),),
        60_000,
        version=1,
        validate_only=dry_run,
    )


@pytest.mark.form("released")
@pytest.mark.parametrize("version", [0, 1, 2])
def test_released_kafkas_update_is_laid_out_as_its_schema_says(version: int) -> None:
    """Key 57 in versions 0 to 2, all of them flexible: the timeout, and of each item its name, an
    int16 level and what it permits (F-19 as released, F-20 as released, F-21 as released)."""
    assert OFFERED[RELEASED][57] == (0, 2)
    sent = update_request(
        [FeatureUpdate(FeatureName("f"), FeatureLevel(300), UpgradeType.SAFE_DOWNGRADE)], version
    )
    permission = b"\1" if version == 0 else b"\2"
    item = b"\2f" + struct.pack(">h", 300) + permission + b"\0"
    dry_run = b"" if version == 0 else b"\0"
    head = struct.pack(">hhi", 57, version, 7) + b"\0\x08somebody" + b"\0"
    body = b"\0\0\xea\x60" + b"\2" + item + dry_run + b"\0"
    assert request_bytes(sent) == head + body
    read = read_request(head + body, RELEASED)
    assert read.body == sent
    kind = {"allow_downgrade": True} if version == 0 else {"upgrade_type": 2}
    assert updates_in(read, RELEASED) == (ReleasedUpdate("f", 300, **kind),)


@pytest.mark.form("document")
def test_the_early_draft_is_laid_out_as_its_schema_says() -> None:
    """Key 48: an item has FeatureUpdateType int16 and a list of names and int64 versions; key 49:
    a list of names (F-21)."""
    form = EarlyUpdateFeaturesRequestV0
    feature = form.FeatureKey(name="f", version_level=3)
    update = form.FeatureUpdateKey(feature_update_type=1, feature=(feature,))
    sent = form(feature_update=(update,))
    head = struct.pack(">hhi", DRAFT_UPDATE, 0, 7) + b"\0\x08somebody"
    item = b"\0\1" + b"\0\0\0\1" + b"\0\1f" + struct.pack(">q", 3)
    assert request_bytes(sent) == head + b"\0\0\xea\x60" + b"\0\0\0\1" + item
    head = struct.pack(">hhi", DRAFT_DELETE, 0, 7) + b"\0\x08somebody"
    named = EarlyDeleteFeaturesRequestV0(
        feature=(EarlyDeleteFeaturesRequestV0.FeatureKey(name="f"),)
    )
    assert request_bytes(named) == head + b"\0\0\xea\x60" + b"\0\0\0\1" + b"\0\1f"
    both = draft_update(EARLY, 0)
    assert updates_in(read_request(request_bytes(both), EARLY), EARLY) == (
        EarlyUpdate("a", 1, 0),
        EarlyUpdate("b", 2**40, 1),
        EarlyUpdate("ü", 0, 1),
    )


def test_the_struck_push_is_laid_out_as_its_schema_says() -> None:
    """UpdateMetadata, key 6, version 6: tag 10000 has the epoch int64, tag 10001 the features, each
    a name and a version int64 (F-47)."""
    form = StruckUpdateMetadataRequestV6
    sent = form(
        controller_id=1,
        controller_epoch=2,
        broker_epoch=3,
        topic_states=(),
        live_brokers=(),
        features_epoch=4,
        features=(form.FeatureKey(name="f", version_level=5),),
    )
    head = struct.pack(">hhi", 6, 6, 7) + b"\0\x08somebody\0" + struct.pack(">iiq", 1, 2, 3)
    tags = (
        bytes.fromhex("02 904e 08") + struct.pack(">q", 4)
        + bytes.fromhex("914e 0c 02 02") + b"f" + struct.pack(">q", 5) + b"\0"
    )  # fmt: skip
    assert request_bytes(sent) == head + b"\1\1" + tags
    sender = UpdateMetadataSender(1, "node", lambda _: None, lambda *_: None)
    pushed = sender._request(UpdateMetadata(4, {"f": 5}), 2)
    assert (pushed.controller_id, pushed.controller_epoch) == (1, 2)
    assert (pushed.features_epoch, pushed.features) == (4, sent.features)
    assert read_request(request_bytes(sent), ApiDialect.EARLY_DRAFT_STRUCK).body == sent
