"""The errors of administrative requests, as Kafka's Java clients print them (``Errors``)."""

from typing import Final

_PACKAGE: Final = "org.apache.kafka.common.errors."

_ERRORS: Final = {
    -1: (
        "UnknownServerException",
        "The server experienced an unexpected error when processing the request.",
    ),
    3: (
        "UnknownTopicOrPartitionException",
        "This server does not host this topic-partition.",
    ),
    7: ("TimeoutException", "The request timed out."),
    9: (
        "ReplicaNotAvailableException",
        "The replica is not available for the requested topic-partition. Produce/Fetch requests "
        "and other requests intended only for the leader or follower return "
        "NOT_LEADER_OR_FOLLOWER if the broker is not a replica of the topic-partition.",
    ),
    17: (
        "InvalidTopicException",
        "The request attempted to perform an operation on an invalid topic.",
    ),
    29: ("TopicAuthorizationException", "Topic authorization failed."),
    31: ("ClusterAuthorizationException", "Cluster authorization failed."),
    35: ("UnsupportedVersionException", "The version of API is not supported."),
    38: (
        "InvalidReplicationFactorException",
        "Replication factor is below 1 or larger than the number of available brokers.",
    ),
    39: ("InvalidReplicaAssignmentException", "Replica assignment is invalid."),
    40: ("InvalidConfigurationException", "Configuration is invalid."),
    41: ("NotControllerException", "This is not the correct controller for this cluster."),
    42: (
        "InvalidRequestException",
        "This most likely occurs because of a request being malformed by the client library or "
        "the message was sent to an incompatible broker. See the broker logs for more details.",
    ),
    44: ("PolicyViolationException", "Request parameters do not satisfy the configured policy."),
    56: ("KafkaStorageException", "Disk error when trying to access log file on the disk."),
    57: (
        "LogDirNotFoundException",
        "The user-specified log directory is not found in the broker config.",
    ),
    80: ("PreferredLeaderNotAvailableException", "The preferred leader was not available."),
    83: (
        "EligibleLeadersNotAvailableException",
        "Eligible topic partition leaders are not available.",
    ),
    84: ("ElectionNotNeededException", "Leader election not needed for topic partition."),
    85: ("NoReassignmentInProgressException", "No partition reassignment is in progress."),
}


def api_error_text(code: int, message: str | None) -> str:
    """The text of an error: the server's, or where it has none that of Kafka's clients."""
    if message is not None:
        return message
    return _ERRORS[code][1] if code in _ERRORS else f"The server answered with error {code}."


def exception_text(code: int, text: str) -> str:
    """An error as Java prints its exception: the name of the class, and the text."""
    name = _ERRORS[code][0] if code in _ERRORS else f"ApiException (error {code})"
    return f"{_PACKAGE}{name}: {text}"
