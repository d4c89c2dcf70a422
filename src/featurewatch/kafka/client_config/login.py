"""The SASL login in client properties, ``sasl.jaas.config`` included."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.jaas import JAAS_KEY, jaas_entry, jaas_text

if TYPE_CHECKING:
    from featurewatch.kafka.client_config.iam.settings import IamLogin
    from featurewatch.kafka.client_config.kerberos.settings import KerberosLogin
    from featurewatch.kafka.client_config.oauth.settings import OauthLogin

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
"""The login module of each mechanism that takes a name and a password."""

_MECHANISMS: Final = (*_MODULES, "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM")


class Login(NamedTuple):
    """A SASL mechanism with a name and a password; neither prints."""

    mechanism: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.mechanism!r})"

    def jaas(self) -> str:
        """The login as a ``sasl.jaas.config``."""
        return jaas_text(
            _MODULES[self.mechanism], {"username": self.username, "password": self.password}
        )


def protocol_of(properties: Mapping[str, str]) -> str:
    """The ``security.protocol`` in capitals; raises `SecurityError`."""
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise SecurityError(
            f"security.protocol={protocol} is unknown: use one of {', '.join(PROTOCOLS)}",
            "security.protocol",
        )
    return protocol


def login_of(
    properties: Mapping[str, str],
) -> "Login | OauthLogin | KerberosLogin | IamLogin | None":
    """The login; None where the protocol has none. Raises `SecurityError`."""
    if not protocol_of(properties).startswith("SASL"):
        return None
    key = "sasl.mechanism" if "sasl.mechanism" in properties else "sasl.mechanisms"
    mechanism = properties.get(key, "").strip()
    if mechanism not in _MECHANISMS:
        raise SecurityError(
            f"sasl.mechanism={mechanism or '(none)'} is not supported: use one of "
            + ", ".join(_MECHANISMS),
            key if key in properties else "security.protocol",
        )
    if mechanism == "OAUTHBEARER":
        from featurewatch.kafka.client_config.oauth.properties import (
            oauth_login,  # here: few logins need it
        )

        return oauth_login(properties)
    if mechanism == "GSSAPI":
        from featurewatch.kafka.client_config.kerberos.properties import kerberos_login

        return kerberos_login(properties)
    if mechanism == "AWS_MSK_IAM":
        from featurewatch.kafka.client_config.iam.properties import iam_login

        return iam_login(properties)
    jaas = _jaas_options(properties.get(JAAS_KEY, ""))
    username = properties.get("sasl.username") or jaas.get("username", "")
    password = properties.get("sasl.password") or jaas.get("password", "")
    if not username:
        raise SecurityError(
            "SASL needs sasl.username and sasl.password, or sasl.jaas.config with username and "
            "password",
            JAAS_KEY if JAAS_KEY in properties else "security.protocol",
        )
    return Login(mechanism, username, password)


def _jaas_options(text: str) -> dict[str, str]:
    """The options of a ``sasl.jaas.config`` with a name and a password."""
    entry = jaas_entry(text, f'{_MODULES["PLAIN"]} required username="…" password="…";')
    if entry is None:
        return {}
    if entry.module not in _MODULES.values():
        modules = " or ".join(sorted({name.rpartition(".")[2] for name in _MODULES.values()}))
        raise SecurityError(
            f"{JAAS_KEY}: the module {entry.module.rpartition('.')[2]} is not supported with this "
            f"sasl.mechanism: use {modules}",
            JAAS_KEY,
        )
    if entry.options.get("tokenauth", "").lower() == "true":
        raise SecurityError(
            f"{JAAS_KEY}: delegation tokens (tokenauth) are not supported: use a name and a "
            "password",
            JAAS_KEY,
        )
    return entry.options
