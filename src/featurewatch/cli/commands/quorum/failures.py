"""The failures of ``kafka-metadata-quorum``: an exception's name and text, without its trace."""

from collections.abc import Iterator
from contextlib import contextmanager

from featurewatch.admin.api_errors import exception_text
from featurewatch.admin.errors import KafkaApiError
from featurewatch.cli.kafka_tools.errors import KafkaToolError


@contextmanager
def as_tool_errors() -> Iterator[None]:
    """Raises a `KafkaApiError` as the `KafkaToolError` with the tool's text."""
    try:
        yield
    except KafkaApiError as error:
        text = exception_text(error.code, str(error))
        raise KafkaToolError(text, right=error.right) from None
