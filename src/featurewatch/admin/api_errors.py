"""Kafka's errors, as far as admin requests get them: numbers, names, exceptions and texts.

Those of the class ``Errors`` of Kafka's Java clients, whose tools print the exceptions.
"""

from typing import Final, NamedTuple

UNKNOWN_TOPIC: Final = 3
TIMED_OUT: Final = 7
TOPIC_NO_RIGHT: Final = 29
CLUSTER_NO_RIGHT: Final = 31
UNSUPPORTED_VERSION: Final = 35
NOT_CONTROLLER: Final = 41

_PACKAGE: Final = "org.apache.kafka.common.errors."


_RIGHTS: Final = {
    (3, TOPIC_NO_RIGHT): "Describe on the topic",
    (19, TOPIC_NO_RIGHT): "Create on the topic or on the cluster",
    (20, TOPIC_NO_RIGHT): "Delete on the topic",
    (32, TOPIC_NO_RIGHT): "DescribeConfigs on the topic",
    (34, CLUSTER_NO_RIGHT): "Alter on the cluster",
    (35, CLUSTER_NO_RIGHT): "Describe on the cluster",
    (37, TOPIC_NO_RIGHT): "Alter on the topic",
    (43, CLUSTER_NO_RIGHT): "Alter on the cluster",
    (44, TOPIC_NO_RIGHT): "AlterConfigs on the topic",
    (44, CLUSTER_NO_RIGHT): "AlterConfigs on the cluster",
    (45, CLUSTER_NO_RIGHT): "Alter on the cluster",
    (46, CLUSTER_NO_RIGHT): "Describe on the cluster",
    (75, TOPIC_NO_RIGHT): "Describe on the topic",
}
"""What a login lacks where a request, by its key, is refused with a number (``KafkaApis``)."""


class ResponseError(NamedTuple):
    """The error of a request, or of an item of it: Kafka's number, and a text for people.

    ``right`` is what the login lacks, by Kafka's name; empty for any other error.
    """

    code: int
    text: str
    right: str = ""


def api_error(
    code: int, message: str | None = None, api_key: int | None = None
) -> ResponseError | None:
    """The error of a response to a request of this key, None for 0.

    The text is the server's, or that of Kafka's clients.
    """
    if code == 0:
        return None
    text = error_text(code) if message is None else message
    return ResponseError(code, text, _RIGHTS.get((api_key or 0, code), ""))


def error_text(error: int) -> str:
    """The text of Kafka's clients for an error without one."""
    known = _ERRORS.get(error)
    return known.text if known else f"The server answered with error {error}."


def error_name(error: int) -> str:
    """Kafka's name of an error, or its number."""
    known = _ERRORS.get(error)
    return known.name if known else str(error)


def exception_text(code: int, text: str) -> str:
    """An error as Java prints its exception: the name of the class, and the text."""
    known = _ERRORS.get(code)
    return f"{_PACKAGE}{known.exception if known else f'ApiException (error {code})'}: {text}"


class _KafkaError(NamedTuple):
    name: str
    exception: str
    text: str


_ERRORS: Final = {
    -1: _KafkaError(
        "UNKNOWN_SERVER_ERROR",
        "UnknownServerException",
        "The server experienced an unexpected error when processing the request.",
    ),
    3: _KafkaError(
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UnknownTopicOrPartitionException",
        "This server does not host this topic-partition.",
    ),
    5: _KafkaError(
        "LEADER_NOT_AVAILABLE",
        "LeaderNotAvailableException",
        "There is no leader for this topic-partition as we are in the middle of a "
        "leadership election.",
    ),
    7: _KafkaError("REQUEST_TIMED_OUT", "TimeoutException", "The request timed out."),
    9: _KafkaError(
        "REPLICA_NOT_AVAILABLE",
        "ReplicaNotAvailableException",
        "The replica is not available for the requested topic-partition. Produce/Fetch "
        "requests and other requests intended only for the leader or follower return "
        "NOT_LEADER_OR_FOLLOWER if the broker is not a replica of the topic-partition.",
    ),
    17: _KafkaError(
        "INVALID_TOPIC_EXCEPTION",
        "InvalidTopicException",
        "The request attempted to perform an operation on an invalid topic.",
    ),
    29: _KafkaError(
        "TOPIC_AUTHORIZATION_FAILED",
        "TopicAuthorizationException",
        "Topic authorization failed.",
    ),
    31: _KafkaError(
        "CLUSTER_AUTHORIZATION_FAILED",
        "ClusterAuthorizationException",
        "Cluster authorization failed.",
    ),
    35: _KafkaError(
        "UNSUPPORTED_VERSION",
        "UnsupportedVersionException",
        "The version of API is not supported.",
    ),
    36: _KafkaError(
        "TOPIC_ALREADY_EXISTS",
        "TopicExistsException",
        "Topic with this name already exists.",
    ),
    37: _KafkaError(
        "INVALID_PARTITIONS",
        "InvalidPartitionsException",
        "Number of partitions is below 1.",
    ),
    38: _KafkaError(
        "INVALID_REPLICATION_FACTOR",
        "InvalidReplicationFactorException",
        "Replication factor is below 1 or larger than the number of available brokers.",
    ),
    39: _KafkaError(
        "INVALID_REPLICA_ASSIGNMENT",
        "InvalidReplicaAssignmentException",
        "Replica assignment is invalid.",
    ),
    40: _KafkaError("INVALID_CONFIG", "InvalidConfigurationException", "Configuration is invalid."),
    41: _KafkaError(
        "NOT_CONTROLLER",
        "NotControllerException",
        "This is not the correct controller for this cluster.",
    ),
    42: _KafkaError(
        "INVALID_REQUEST",
        "InvalidRequestException",
        "This most likely occurs because of a request being malformed by the client "
        "library or the message was sent to an incompatible broker. See the broker logs "
        "for more details.",
    ),
    44: _KafkaError(
        "POLICY_VIOLATION",
        "PolicyViolationException",
        "Request parameters do not satisfy the configured policy.",
    ),
    56: _KafkaError(
        "KAFKA_STORAGE_ERROR",
        "KafkaStorageException",
        "Disk error when trying to access log file on the disk.",
    ),
    57: _KafkaError(
        "LOG_DIR_NOT_FOUND",
        "LogDirNotFoundException",
        "The user-specified log directory is not found in the broker config.",
    ),
    60: _KafkaError(
        "REASSIGNMENT_IN_PROGRESS",
        "ReassignmentInProgressException",
        "A partition reassignment is in progress.",
    ),
    73: _KafkaError(
        "TOPIC_DELETION_DISABLED",
        "TopicDeletionDisabledException",
        "Topic deletion is disabled.",
    ),
    80: _KafkaError(
        "PREFERRED_LEADER_NOT_AVAILABLE",
        "PreferredLeaderNotAvailableException",
        "The preferred leader was not available.",
    ),
    83: _KafkaError(
        "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        "EligibleLeadersNotAvailableException",
        "Eligible topic partition leaders are not available.",
    ),
    84: _KafkaError(
        "ELECTION_NOT_NEEDED",
        "ElectionNotNeededException",
        "Leader election not needed for topic partition.",
    ),
    85: _KafkaError(
        "NO_REASSIGNMENT_IN_PROGRESS",
        "NoReassignmentInProgressException",
        "No partition reassignment is in progress.",
    ),
    89: _KafkaError(
        "THROTTLING_QUOTA_EXCEEDED",
        "ThrottlingQuotaExceededException",
        "The throttling quota has been exceeded.",
    ),
    95: _KafkaError(
        "INVALID_UPDATE_VERSION",
        "InvalidUpdateVersionException",
        "The given update version was invalid.",
    ),
    96: _KafkaError(
        "FEATURE_UPDATE_FAILED",
        "FeatureUpdateFailedException",
        "Unable to update finalized features due to an unexpected server error.",
    ),
    100: _KafkaError(
        "UNKNOWN_TOPIC_ID",
        "UnknownTopicIdException",
        "This server does not host this topic ID.",
    ),
}
