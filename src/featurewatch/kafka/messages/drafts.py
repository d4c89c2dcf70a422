"""The messages of the drafts of KIP-584, KIP-778 and KIP-4, as rows of the table of messages.

Client and server share them. They are written by hand, in the form of ``messages.json``, because no
release has them. ``optional`` is KIP-4's ``?(X)``: a byte, 0 if the field is absent, and the field
after any other byte.

KIP-584. The drafts put UPDATE_FEATURES on key 48 and features on the tags 10000 to 10002 of
ApiVersions; the early one has DELETE_FEATURES on key 49 and, in its struck-out text, the whole set
of levels in responses and in UpdateMetadata. It calls ``version`` what the later draft calls
``versionLevel``, here the name for both. Version 0 is not flexible, version 1 is.

KIP-778. The document replaces ``AllowDowngrade`` in version 0 of UpdateFeatures, whose only version
is 0, by ``DowngradeType``, and adds ``DryRun`` from version 1 on: both versions are here.

KIP-4. The document gives its requests no keys; these lie beyond all of Kafka's. Three points are
not in its schemas:

- the fields of CreateTopicRequest, which follow from its text and from AlterTopicRequest;
- ``PartitionsSerialized``, which its text calls optional and its schema does not;
- the list of the topics that are marked for deletion, which its text names and its schema does not:
  it follows the schema's list, in the same form, so a reader of the schema alone reads its own.
"""

from collections.abc import Mapping
from typing import Any, Final

Row = dict[str, Any]


def _field(name: str, kind: str, *fields: Row, **more: Any) -> Row:
    row: Row = {"name": name, "type": kind, **more}
    return row | {"fields": [*fields]} if fields else row


def _optional(name: str, kind: str, *fields: Row) -> Row:
    return _field(name, kind, *fields, optional=True)


def _message(key: int, versions: str, flexible: str, *fields: Row) -> Row:
    return {"key": key, "versions": versions, "flexible": flexible, "fields": [*fields]}


# -- KIP-584 ---------------------------------------------------------------------------------------

_NAME: Final = _field("name", "string")
_TIMEOUT: Final = _field("timeout_ms", "int32", default=60_000)
_FEATURE: Final = (_NAME, _field("version_level", "int64"))
_FAILURE: Final = (_field("error_code", "int16"), _field("error_message", "string", nullable=True))
_API_VERSIONS: Final = (
    _field("error_code", "int16"),
    _field(
        "api_keys",
        "[]ApiVersion",
        _field("api_key", "int16"),
        _field("min_version", "int16"),
        _field("max_version", "int16"),
    ),
    _field("throttle_time_ms", "int32"),
)


def _update_request(mode: Row) -> Row:
    updates = _field("feature_update", "[]FeatureUpdateKey", mode, _levels("feature"))
    return _message(48, "0-1", "1+", _TIMEOUT, updates)


def _levels(name: str, **more: Any) -> Row:
    return _field(name, "[]FeatureKey", *_FEATURE, **more)


_EARLY_UPDATE: Final = _update_request(_field("feature_update_type", "int16"))
_KIP584: Final = {
    "DraftApiVersionsRequest": _message(
        18,
        "3-3",
        "3+",
        _field("client_software_name", "string"),
        _field("client_software_version", "string"),
    ),
    "DraftApiVersionsResponse": _message(
        18,
        "3-3",
        "3+",
        *_API_VERSIONS,
        _field(
            "supported_features",
            "[]SupportedFeatureKey",
            _NAME,
            _field("min_version", "int64"),
            _field("max_version", "int64"),
            tag=10000,
        ),
        _field("finalized_features_epoch", "int64", tag=10001, default=-1),
        _levels("finalized_features", tag=10002),
    ),
    "EarlyUpdateFeaturesRequest": _EARLY_UPDATE,
    "EarlyUpdateFeaturesResponse": _message(48, "0-1", "1+", *_FAILURE),
    "StruckUpdateFeaturesRequest": _EARLY_UPDATE,
    "StruckUpdateFeaturesResponse": _message(
        48, "0-1", "1+", *_FAILURE, _field("features_epoch", "int64"), _levels("features")
    ),
    "LateUpdateFeaturesRequest": _update_request(_field("allow_downgrade", "bool")),
    "LateUpdateFeaturesResponse": _message(48, "0-1", "1+", *_FAILURE),
    # The early draft gives 48 for the response, which has no key.
    "EarlyDeleteFeaturesRequest": _message(
        49, "0-1", "1+", _TIMEOUT, _field("feature", "[]FeatureKey", _NAME)
    ),
    "EarlyDeleteFeaturesResponse": _message(49, "0-1", "1+", *_FAILURE),
    # The lists of topics and brokers stay empty, because no reference node needs them.
    "StruckUpdateMetadataRequest": _message(
        6,
        "6-6",
        "6+",
        _field("controller_id", "int32"),
        _field("controller_epoch", "int32"),
        _field("broker_epoch", "int64"),
        _field("topic_states", "[]int8"),
        _field("live_brokers", "[]int8"),
        _field("features_epoch", "int64", tag=10000, default=-1),
        _levels("features", tag=10001),
    ),
    "StruckUpdateMetadataResponse": _message(6, "6-6", "6+", _field("error_code", "int16")),
    "Kip778UpdateFeaturesRequest": _message(
        57,
        "0-1",
        "0+",
        _TIMEOUT,
        _field(
            "feature_updates",
            "[]FeatureUpdateKey",
            _field("feature", "string"),
            _field("max_version_level", "int16"),
            _field("downgrade_type", "int8", default=0),
        ),
        _field("dry_run", "bool", versions="1+", default=False),
    ),
    "Kip778UpdateFeaturesResponse": _message(
        57,
        "0-1",
        "0+",
        _field("throttle_time_ms", "int32"),
        *_FAILURE,
        _field("results", "[]UpdatableFeatureResult", _field("feature", "string"), *_FAILURE),
    ),
    # KIP-778 as written: a finalized level has no minimum. Kafka's version 4 has one, so that no
    # released client reads this response.
    "Kip778ApiVersionsResponse": _message(
        18,
        "4-4",
        "4+",
        *_API_VERSIONS,
        _field(
            "supported_features",
            "[]SupportedFeatureKey",
            _NAME,
            _field("min_version", "int16"),
            _field("max_version", "int16"),
            tag=0,
        ),
        _field("finalized_features_epoch", "int64", tag=1, default=-1),
        _field(
            "finalized_features",
            "[]FinalizedFeatureKey",
            _NAME,
            _field("max_version_level", "int16"),
            tag=2,
        ),
    ),
}

# -- KIP-4 -----------------------------------------------------------------------------------------

_TOPIC: Final = _field("topic_name", "string")
_BROKER: Final = (_field("node_id", "int32"), _field("host", "string"), _field("port", "int32"))
_RESULT: Final = (_field("error_code", "int16"), _optional("error_description", "string"))
_ASSIGNMENT: Final = _field("manual_assignment", "string")


def _configs(name: str) -> Row:
    return _field(name, "[]ConfigEntry", _field("key", "string"), _field("value", "string"))


_KIP4_FIELDS: Final[dict[str, tuple[tuple[Row, ...], tuple[Row, ...]]]] = {
    "ClusterMetadata": (
        (),
        (
            _field("error_code", "int16"),
            _field("brokers", "[]Broker", *_BROKER),
            _optional("controller", "Broker", *_BROKER),
        ),
    ),
    "CreateTopic": (
        (
            _TOPIC,
            _optional("partitions", "int32"),
            _optional("replicas", "int32"),
            _optional("replica_assignment", "string"),
            _configs("configs"),
        ),
        _RESULT,
    ),
    "AlterTopic": (
        (
            _TOPIC,
            _optional("partitions", "int32"),
            _optional("replica_assignment", "string"),
            _configs("added_configs"),
            _field("deleted_configs", "[]string"),
        ),
        _RESULT,
    ),
    "DeleteTopic": ((_TOPIC,), _RESULT),
    "DescribeTopic": (
        (_TOPIC,),
        (
            *_RESULT,
            _optional(
                "description",
                "TopicDescription",
                _TOPIC,
                _field(
                    "config",
                    "TopicConfigDetails",
                    _field("partitions", "int32"),
                    _field("replication_factor", "int32"),
                    _configs("configs"),
                ),
                _field(
                    "partitions",
                    "[]TopicPartitionDetails",
                    _field("partition_id", "int32"),
                    _optional("leader", "int32"),
                    _field("replicas", "[]int32"),
                    _field("isr", "[]int32"),
                ),
            ),
        ),
    ),
    "ListTopics": (
        (),
        (*_RESULT, _optional("topics", "[]string"), _optional("marked_for_deletion", "[]string")),
    ),
    "ReassignPartition": ((_ASSIGNMENT,), _RESULT),
    "VerifyReassignPartition": (
        (_ASSIGNMENT,),
        (
            _field(
                "results",
                "[]ReassignmentResult",
                _field(
                    "topic_and_partition", "TopicAndPartition", _TOPIC, _field("partition", "int32")
                ),
                _field("result_code", "int16"),
            ),
            *_RESULT,
        ),
    ),
    "PreferredReplicaLeaderElection": ((_optional("partitions_serialized", "string"),), _RESULT),
}
"""The fields of request and response by API, whose keys follow one another."""

KIP4_APIS: Final[Mapping[int, str]] = dict(enumerate(_KIP4_FIELDS, start=30_400))
"""KIP-4's requests by their keys."""

DRAFTS: Final[dict[str, Row]] = _KIP584 | {
    f"{api}{kind}": _message(key, "0-0", "none", *_KIP4_FIELDS[api][index])
    for key, api in KIP4_APIS.items()
    for index, kind in enumerate(("Request", "Response"))
}
