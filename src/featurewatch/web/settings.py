"""The settings of the page, and which addresses it may listen on."""

from dataclasses import dataclass, field
from typing import Final

from featurewatch.common.http.access_rules import AccessSettings
from featurewatch.common.http.clients import is_loopback
from featurewatch.common.http.hosts import is_inner_name, is_own_name

DEFAULT_PORT: Final = 9780


@dataclass(frozen=True, slots=True)
class PageSettings:
    """How the page is served.

    ``port`` 0 takes any free one. ``external_url`` is the address under which a proxy serves the
    page (empty: none). ``max_streams`` bounds the event streams of all clients together,
    ``max_streams_per_client`` those of one. ``access`` is who may read.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    external_url: str = ""
    max_streams: int = 200
    max_streams_per_client: int = 50
    access: AccessSettings = field(default_factory=AccessSettings)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.host)

    def accepts_host(self, header: str, *, has_login: bool) -> bool:
        """Whether a request with this ``Host`` may be answered.

        A page on loopback answers to its own names only: a site that a browser shows could
        otherwise point a name of its own to 127.0.0.1 and read the page (DNS rebinding). The same
        holds for any page without a login, whose port may be published on a loopback address.
        """
        if self.is_local:
            return is_own_name(header, self.host, self.external_url)
        return (
            has_login or is_own_name(header, self.host, self.external_url) or is_inner_name(header)
        )
