"""ZooKeeper servers that ask for a login."""

from collections.abc import Mapping

from featurewatch.stack.zookeeper.specs import EnsembleSpec


def digest_spec(users: Mapping[str, str], *, required: bool = True) -> EnsembleSpec:
    """One server with SASL DIGEST-MD5 for ``users`` (name → password).

    With ``required``, ZooKeeper rejects sessions that do not authenticate.
    """
    names = "\n".join(f'  user_{name}="{password}"' for name, password in users.items())
    return EnsembleSpec(
        properties={
            "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            "sessionRequireClientSASLAuth": str(required).lower(),
        },
        jaas="Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required\n"
        f"{names};\n}};\n",
    )
