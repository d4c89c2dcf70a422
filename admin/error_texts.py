"""The names and texts of Kafka's errors, as far as admin requests get them (class ``Errors``)."""

from typing import Final


def error_text(error: int) -> str:
    """The text of Kafka's clients for an error without one."""
    named = _ERRORS.get(error)
    return named[1] if named else f"The server answered with error {error}."


def error_name(error: int) -> str:
    """Kafka's name of an error, or its number."""
    named = _ERRORS.get(error)
    return named[0] if named else str(error)


_ERRORS: Final = {
    -1: (
        "UNKNOWN_SERVER_ERROR",
        "The server experienced an unexpected error when processing the request.",
    ),
    3: ("UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition."),
    5: (
        "LEADER_NOT_AVAILABLE",
        "There is no leader for this topic-partition as we are in the middle of a "
        "leadership election.",
    ),
    7: ("REQUEST_TIMED_OUT", "The request timed out."),
    17: (
        "INVALID_TOPIC_EXCEPTION",
        "The request attempted to perform an operation on an invalid topic.",
    ),
    29: ("TOPIC_AUTHORIZATION_FAILED", "Topic authorization failed."),
    31: ("CLUSTER_AUTHORIZATION_FAILED", "Cluster authorization failed."),
    35: ("UNSUPPORTED_VERSION", "The version of API is not supported."),
    36: ("TOPIC_ALREADY_EXISTS", "Topic with this name already exists."),
    37: ("INVALID_PARTITIONS", "Number of partitions is below 1."),
    38: (
        "INVALID_REPLICATION_FACTOR",
        "Replication factor is below 1 or larger than the number of available brokers.",
    ),
    39: ("INVALID_REPLICA_ASSIGNMENT", "Replica assignment is invalid."),
    40: ("INVALID_CONFIG", "Configuration is invalid."),
    41: ("NOT_CONTROLLER", "This is not the correct controller for this cluster."),
    42: (
        "INVALID_REQUEST",
        "This most likely occurs because of a request being malformed by the client "
        "library or the message was sent to an incompatible broker. See the broker logs "
        "for more details.",
    ),
    44: ("POLICY_VIOLATION", "Request parameters do not satisfy the configured policy."),
    56: ("KAFKA_STORAGE_ERROR", "Disk error when trying to access log file on the disk."),
    60: ("REASSIGNMENT_IN_PROGRESS", "A partition reassignment is in progress."),
    73: ("TOPIC_DELETION_DISABLED", "Topic deletion is disabled."),
    80: ("PREFERRED_LEADER_NOT_AVAILABLE", "The preferred leader was not available."),
    83: ("ELIGIBLE_LEADERS_NOT_AVAILABLE", "Eligible topic partition leaders are not available."),
    84: ("ELECTION_NOT_NEEDED", "Leader election not needed for topic partition."),
    85: ("NO_REASSIGNMENT_IN_PROGRESS", "No partition reassignment is in progress."),
    89: ("THROTTLING_QUOTA_EXCEEDED", "The throttling quota has been exceeded."),
    95: ("INVALID_UPDATE_VERSION", "The given update version was invalid."),
    96: (
        "FEATURE_UPDATE_FAILED",
        "Unable to update finalized features due to an unexpected server error.",
    ),
    100: ("UNKNOWN_TOPIC_ID", "This server does not host this topic ID."),
}
