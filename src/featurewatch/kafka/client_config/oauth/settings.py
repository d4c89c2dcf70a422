"""Where the tokens of a login come from, and when they are renewed; read from client properties by
`client_config.oauth`. No secret prints."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from featurewatch.common.text import quoted
from featurewatch.kafka.client_config.iam.settings import MskToken

MECHANISM: Final = "OAUTHBEARER"


@dataclass(frozen=True, slots=True)
class AssertionFile:
    """A file with a signed assertion in it, which something else renews."""

    path: str


@dataclass(frozen=True, slots=True)
class SignedAssertion:
    """An assertion (RFC 7523) that is signed here, for each request.

    ``key_file`` is a private key in PEM. ``template_file``: JSON with a header and a payload that
    the others complete; ``claims`` go before its claims. The assertion is valid from ``nbf_s`` ago
    for another ``exp_s``.
    """

    algorithm: str
    key_file: str
    passphrase: str = field(default="", repr=False)
    template_file: str = ""
    claims: tuple[tuple[str, str], ...] = ()
    exp_s: int = 300
    nbf_s: int = 60
    has_id: bool = False


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """An endpoint of OAuth 2.0 that grants tokens for client credentials (RFC 6749, 4.4).

    With an ``assertion`` there is no secret: the assertion identifies the client (KIP-1258), or
    is the grant itself (``is_bearer``, KIP-1139).
    ``host`` is a name or an address without brackets. ``target`` is the path and the query.
    ``tls`` are properties of TLS (``ssl.…``) for it; none: the system's authorities.
    ``encodes_credentials``: id and secret are URL-encoded in the header, as RFC 6749 2.3.1 says and
    Kafka does with ``sasl.oauthbearer.header.urlencode``.
    """

    scheme: str
    host: str
    port: int
    target: str = field(repr=False)
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    tls: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    encodes_credentials: bool = False
    assertion: AssertionFile | SignedAssertion | None = None
    is_bearer: bool = False

    def __str__(self) -> str:
        """The URL without its query, which may have a secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        path = self.target.partition("?")[0]
        return quoted(f"{self.scheme}://{host}:{self.port}{path}")


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file with a token in it, which something else renews."""

    path: str

    def __str__(self) -> str:
        return quoted(self.path)


@dataclass(frozen=True, slots=True)
class TokenCommand:
    """A program that prints a token; its arguments may have secrets."""

    program: str
    arguments: tuple[str, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return quoted(self.program)


TokenOrigin = TokenEndpoint | TokenFile | TokenCommand | MskToken
"""Where tokens come from."""


class RefreshRule(NamedTuple):
    """When a token is renewed (``sasl.login.refresh.…`` of Kafka).

    At ``window_factor`` to ``window_factor + window_jitter`` of its lifetime, but not within
    ``min_period_s`` after it came, nor later than ``buffer_s`` before it ends.
    """

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_s: float = 60.0
    buffer_s: float = 300.0


class FetchLimits(NamedTuple):
    """Times of one fetch, in seconds.

    Those of Kafka's ``sasl.login.connect.timeout.ms`` and ``sasl.login.read.timeout.ms``, which
    have no default there, and of ``sasl.login.retry.backoff.ms`` and
    ``sasl.login.retry.backoff.max.ms``: what fails for a moment is tried again after pauses that
    double, for the latter time in all. A failed fetch is repeated no sooner than that time later.
    """

    connect_s: float = 10.0
    read_s: float = 10.0
    backoff_s: float = 0.1
    max_backoff_s: float = 10.0


DEFAULT_REFRESH: Final = RefreshRule()
DEFAULT_LIMITS: Final = FetchLimits()


@dataclass(frozen=True, slots=True)
class OauthLogin:
    """A login by tokens. ``extensions`` are those of the SASL message (KIP-342)."""

    source: TokenOrigin
    extensions: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    subject_claim: str = "sub"
    refresh: RefreshRule = DEFAULT_REFRESH
    limits: FetchLimits = DEFAULT_LIMITS

    @property
    def mechanism(self) -> str:
        """The SASL mechanism."""
        return MECHANISM

    def extension_values(self) -> Mapping[str, str]:
        """The extensions by name."""
        return dict(self.extensions)
