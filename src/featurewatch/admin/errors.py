"""Errors of reading or changing a cluster, by what is known of the cluster afterwards.

    AdminError
    ├── RequestError         the request is impossible; nothing was sent
    ├── UnreachableError     no node was reached; nothing was sent
    ├── UpdateRefusedError   the controller refused one update or more
    ├── KafkaApiError        a broker or the controller refused, with Kafka's number
    └── OutcomeUnknownError  a change was sent, and its response is missing

`UnreachableError` and the last are also `kafka.connection.NodeError`: the node is what
failed.
"""

from typing import Any

from featurewatch.admin.api_errors import api_error, error_text
from featurewatch.kafka.errors import error_name
from featurewatch.kafka.node_errors import NodeError


class AdminError(Exception):
    """A cluster could not be read or changed; the text is one line for people."""


class RequestError(AdminError, ValueError):
    """The request is impossible for any cluster. Nothing was sent."""


class UnreachableError(AdminError, NodeError):
    """No node, or not the required one, was reached. Nothing was changed."""


class UpdateRefusedError(AdminError):
    """The controller refused; the text is its own. Nothing of a 4.x request was applied."""


class KafkaApiError(AdminError):
    """Kafka refused a request, or one item of it: ``code`` is its number, ``name`` its name.

    ``right`` is what the login lacks, by Kafka's name; empty for any other refusal.
    """

    def __init__(self, code: int, text: str | None = None, right: str = "") -> None:
        super().__init__(text or error_text(code))
        self.code = code
        self.name = error_name(code)
        self.right = right


class OutcomeUnknownError(AdminError, NodeError):
    """A change was sent and its response is missing: it may be applied or not (KIP-584).

    The cluster has to be read again to know.
    """


def check_response(response: Any, api_key: int) -> None:
    """Raises `KafkaApiError` if a whole request of this key was refused."""
    message = getattr(response, "error_message", None)
    if (error := api_error(response.error_code, message, api_key)) is not None:
        raise KafkaApiError(*error)
