"""The tokens of OAUTHBEARER as Faust's transport takes them."""

from typing import Final

from aiokafka.abc import AbstractTokenProvider

from featurewatch.kafka.client_config.oauth.token_source import TokenSource

_TIMEOUT_S: Final = 10.0


class FaustTokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka is not typed
    """A token for each connection of aiokafka, which it logs in once."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source

    async def token(self) -> str:
        """The text of a valid token; raises `TokenError`, at which aiokafka connects again."""
        return (await self._source.token(_TIMEOUT_S)).text

    def extensions(self) -> dict[str, str]:
        """The extensions of the SASL message."""
        return dict(self._source.login.extensions)
