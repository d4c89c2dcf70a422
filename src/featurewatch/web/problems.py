"""The errors of the API, as problem documents."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from featurewatch.common.http.problems import CONTENT_TYPE, ProblemError
from featurewatch.common.text import plain, quoted

__all__ = [
    "CONTENT_TYPE",
    "RETRY_AFTER_S",
    "ProblemError",
    "method_not_allowed",
    "not_read",
    "unknown_cluster",
    "wrong_parameter",
]

RETRY_AFTER_S: Final = 2


def wrong_parameter(name: str, detail: str) -> ProblemError:
    """Returns a 400: a parameter that cannot be used."""
    text = f"The parameter {plain(name)} {detail}"
    return ProblemError(HTTPStatus.BAD_REQUEST, text, errors={name: detail})


def unknown_cluster(cluster: str) -> ProblemError:
    """Returns a 404: the topic has no state of the cluster."""
    text = f"No cluster {quoted(cluster)} has a state: is it watched, and does a worker run?"
    return ProblemError(HTTPStatus.NOT_FOUND, text)


def not_read(detail: str) -> ProblemError:
    """Returns a 503: the topics have not been read yet."""
    return ProblemError(
        HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Retry-After": str(RETRY_AFTER_S)}
    )


def method_not_allowed(allowed: Sequence[str]) -> ProblemError:
    """Returns a 405: the page and its API are read-only."""
    return ProblemError(
        HTTPStatus.METHOD_NOT_ALLOWED,
        f"Only {' and '.join(allowed)} are served here: nothing can be changed.",
        headers={"Allow": ", ".join(allowed)},
    )
