"""The failures of Kafka's tools; pure."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from featurewatch.admin.api_errors import ResponseError, exception_text
from featurewatch.controller.partitions.assignment import TopicPartition

_VALUE = TypeVar("_VALUE")


def lacking(right: str) -> str:
    """The line about a missing right."""
    return f"this login lacks {right}: docs/how-to/admin.md lists the rights that commands need"


class KafkaToolError(Exception):
    """The tool prints this text, to the byte, and ends with 1.

    Lines of ours follow: the ``right`` that the login lacks, by Kafka's name, an ``advice``, and
    the name that is ``close`` to a misspelt one. All may be empty.
    """

    def __init__(
        self, text: str | None, *, right: str = "", advice: str = "", close: str = ""
    ) -> None:
        super().__init__(text)
        self.text = str(text)
        self.right = right
        self.advice = advice
        self.close = close

    def remarks(self) -> Iterator[str]:
        """The lines that featurewatch adds."""
        if self.right:
            yield lacking(self.right)
        if self.advice:
            yield self.advice
        if self.close:
            yield f"did you mean {self.close}?"


class KafkaUsageError(KafkaToolError):
    """The tool prints this on stderr, before its help, and ends with 1."""


def required(value: _VALUE | None, option: str) -> _VALUE:
    """The value of an option that the tool demands; raises `KafkaUsageError` without one."""
    if value is None:
        raise KafkaUsageError(f'Missing required argument "[{option}]"')
    return value


def failure(text: str, advice: str = "", *, right: str = "") -> KafkaToolError:
    """An error whose text the tool puts behind ``Error:`` (its stack trace is left out)."""
    return KafkaToolError(f"Error: {text}", advice=advice, right=right)


def api_failure(error: ResponseError) -> KafkaToolError:
    """An error of Kafka's client, which the tool prints with the exception's name."""
    return failure(exception_text(error.code, error.text), right=error.right)


def refusals(
    first_line: str, errors: Mapping[TopicPartition, ResponseError | None]
) -> KafkaToolError | None:
    """The failure that some partitions were refused, each with a line; None if no one was."""
    refused = {one: error for one, error in sorted(errors.items()) if error}
    if not refused:
        return None
    lines = [first_line, *(f"{partition}: {error.text}" for partition, error in refused.items())]
    right = next((error.right for error in refused.values() if error.right), "")
    return KafkaToolError("\n".join(lines), right=right)
