"""TLS and SASL of a listener, from properties of Kafka's tools or of librdkafka."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

    from featurewatch.kafka.client_config.iam.credential_source import CredentialSource
    from featurewatch.kafka.client_config.kerberos.ticket_source import TicketSource
    from featurewatch.kafka.client_config.oauth.token_source import TokenSource
    from featurewatch.kafka.sasl import Exchange

# ssl and the mechanisms are imported where a listener needs them: most commands meet none that
# does.


@dataclass(frozen=True, slots=True)
class Security:
    """TLS context (none: plaintext) and SASL login (no mechanism: none); passwords never print.

    ``tokens`` are those of OAUTHBEARER, ``tickets`` those of GSSAPI, ``aws`` the credentials of
    AWS_MSK_IAM; None with other mechanisms.
    """

    tls: "ssl.SSLContext | None" = field(default=None, repr=False)
    mechanism: str | None = None
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    tokens: "TokenSource | None" = field(default=None, repr=False)
    tickets: "TicketSource | None" = field(default=None, repr=False)
    aws: "CredentialSource | None" = field(default=None, repr=False)

    def exchange(self, token: str = "") -> "Exchange":
        """A new SASL exchange; call it only where there is a mechanism that is not GSSAPI.

        ``token`` is the text of a token of ``tokens``, or the message that ``aws`` signed.
        """
        from featurewatch.kafka import sasl

        if self.tokens is not None:
            return sasl.oauthbearer(token, self.tokens.login.extension_values())
        if self.aws is not None:
            return sasl.aws_msk_iam(token)
        if self.mechanism == "PLAIN":
            return sasl.plain(self.username, self.password)
        return sasl.scram(str(self.mechanism), self.username, self.password)


PLAINTEXT = Security()


def from_properties(properties: Mapping[str, str]) -> Security:
    """Reads ``security.protocol``, ``ssl.*`` and ``sasl.*``; raises `SecurityError`.

    Both spellings work where Kafka's tools and librdkafka differ (``sasl.mechanism`` and
    ``sasl.mechanisms``, ``ssl.truststore.location`` and ``ssl.ca.location``, ``sasl.jaas.config``
    and ``sasl.username``). Other properties are left alone.
    """
    # Here: most commands meet no listener with a login.
    from featurewatch.kafka.client_config.login import Login, login_of, protocol_of

    tls = None
    if protocol_of(properties).endswith("SSL"):
        from featurewatch.kafka.client_config.renewal import RenewedContext

        tls = RenewedContext(properties)
    login = login_of(properties)
    if login is None:
        return Security(tls)
    if isinstance(login, Login):
        return Security(tls, *login)
    from featurewatch.kafka.client_config.iam.settings import IamLogin
    from featurewatch.kafka.client_config.oauth.settings import OauthLogin

    if isinstance(login, IamLogin):
        from featurewatch.kafka.client_config.iam.credential_source import credential_source

        return Security(tls, login.mechanism, aws=credential_source(login))
    if isinstance(login, OauthLogin):
        from featurewatch.kafka.client_config.oauth.token_source import token_source

        return Security(tls, login.mechanism, tokens=token_source(login))
    from featurewatch.kafka.client_config.kerberos.ticket_source import checked_source

    return Security(tls, login.mechanism, tickets=checked_source(login))
