"""A node of Kafka whose guarded listeners take Kerberos tickets."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from featurewatch.stack.java.jars import Cache
from tests.guarded import GuardedNode, node_with_logins
from tests.kerberos import CLIENT, KAFKA, Kdc, java_entry, require_java

REAUTHENTICATION_S = 4
"""After this long a node closes a connection that has not logged in again."""


@contextmanager
def kerberos_node(
    directory: Path, cache: Cache, release: str, kdc: Kdc, **others: str
) -> Iterator[GuardedNode]:
    """Runs node 1 until the end of the block; the client of the realm may do everything."""
    require_java()
    properties = {
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        **others,
    }
    by_listener = {
        "gssapi.sasl.jaas.config": f"{java_entry(kdc.keytab(KAFKA), KAFKA)};",
        "gssapi.connections.max.reauth.ms": str(REAUTHENTICATION_S * 1000),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={kdc.config}")
        with node_with_logins(directory, cache, release, properties, by_listener, [CLIENT]) as node:
            yield node
