"""Fetches the text of a token: from an endpoint, a file or a program. Blocks; nothing is retried.

Whatever answers is not trusted: its answer has a limit in bytes and in time, redirects are not
followed, and errors quote it without the secret that it was sent.
"""

from collections.abc import Callable
from typing import Final

from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.iam.settings import MskToken
from featurewatch.kafka.client_config.oauth.settings import (
    FetchLimits,
    TokenCommand,
    TokenFile,
    TokenOrigin,
)
from featurewatch.kafka.client_config.oauth.token import MAX_TOKEN_CHARS

MAX_ANSWER_BYTES: Final = 4 * MAX_TOKEN_CHARS
"""The most that is read of an answer, a file or what a program prints."""

Fetch = Callable[[TokenOrigin, FetchLimits], str]


def fetch(source: TokenOrigin, limits: FetchLimits) -> str:
    """The text of a token, not checked. Raises `TokenError`."""
    if isinstance(source, TokenFile):
        return _file_text(source)
    if isinstance(source, TokenCommand):
        from featurewatch.kafka.client_config.oauth.command import printed_token

        return printed_token(source, limits.read_s, MAX_ANSWER_BYTES)
    if isinstance(source, MskToken):
        from featurewatch.kafka.client_config.iam.credential_source import msk_token_text

        return msk_token_text(source)
    from featurewatch.kafka.client_config.oauth.endpoint import granted_token

    return granted_token(source, limits, MAX_ANSWER_BYTES)


def _file_text(source: TokenFile) -> str:
    try:
        with open(source.path, "rb") as file:
            content = file.read(MAX_ANSWER_BYTES + 1)
    except OSError as error:
        raise TokenError(f"the token file {source} cannot be read: {error.strerror}") from None
    if not content.strip():
        raise TokenError(f"the token file {source} is empty", is_transient=True)
    return content.decode("latin-1")
