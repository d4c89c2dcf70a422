"""The errors of admin requests as values: the texts of Kafka's clients, and what a login lacks."""

from typing import Final, NamedTuple

from featurewatch.kafka.errors import kafka_error

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
    (55, CLUSTER_NO_RIGHT): "Describe on the cluster",
    (60, CLUSTER_NO_RIGHT): "Alter on the cluster",
    (64, CLUSTER_NO_RIGHT): "Alter on the cluster",
    (80, CLUSTER_NO_RIGHT): "Alter on the cluster",
    (81, CLUSTER_NO_RIGHT): "Alter on the cluster",
    (94, CLUSTER_NO_RIGHT): "Alter on the cluster",
    (75, TOPIC_NO_RIGHT): "Describe on the topic",
}
"""The right that a login lacks, by error number and API key (``KafkaApis``)."""


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


def error_text(code: int) -> str:
    """The text of Kafka's clients for an error without one."""
    error = kafka_error(code)
    return error.text if error else f"The server answered with error {code}."


def exception_text(code: int, text: str) -> str:
    """An error as Java prints its exception: the name of the class, and the text."""
    error = kafka_error(code)
    return f"{_PACKAGE}{error.exception if error else f'ApiException (error {code})'}: {text}"
