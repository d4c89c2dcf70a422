"""``features_describe_…_vs_kafka_features``: both commands as whole processes, on one cluster.

Five ways to ask: through a broker in plain text, the same as JSON, through a broker with TLS, with
an OAuth token that is fetched for it, and through a controller. The processes run in turns. Kafka's
tool is given its fastest form: no script around it, a small heap, the compiler that starts soonest,
and no logging. What the two print is compared; JSON is compared with the same figure of Kafka's
text, which has none.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import trustme
from cryptography.hazmat.primitives import serialization

from featurewatch.common.private_files import write_private
from featurewatch.stack.java.jars import Cache, Jars, default_cache, tool_command
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.server_properties import Addresses
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec
from featurewatch.stack.process.ports import LOOPBACK, Ports
from tests.bench.turns import FEATUREWATCH, line, medians, timed
from tests.oauth_node import CLASSES, client_properties, oauth_node
from tests.oidc import running_provider

RELEASE: Final = "4.3.0"
_TOKEN_S: Final = 3600


def run() -> Iterator[dict[str, Any]]:
    """The median of each, and how many times faster ours is."""
    Cache(default_cache()).class_path(RELEASE, Jars.TOOLS)
    ports = Ports()
    own, tls_port = Addresses(ports.reserve(), ports.reserve()), ports.reserve()
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        directory = Path(name)
        authority, server = _certificates(directory)
        spec = ClusterSpec([NodeSpec(1, RELEASE, properties=_properties(own, tls_port, server))])
        client = directory / "client.properties"
        write_private(
            client,
            f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={authority}\n",
        )
        with Cluster(spec, directory / "cluster", temporary=True, addresses={1: own}) as cluster:
            broker = ("--bootstrap-server", cluster.bootstrap_servers)
            tls = ("--bootstrap-server", f"{LOOPBACK}:{tls_port}", "--command-config", str(client))
            controller = ("--bootstrap-controller", cluster.controllers)
            yield _measure("plain", broker)
            yield _measure("json", broker, "--json")
            yield _measure("tls", tls)
            yield _measure("controller", controller)
        with running_provider() as provider:
            provider.lifetime_s = _TOKEN_S
            with oauth_node(directory / "oauth", Cache(default_cache()), RELEASE, provider) as node:
                properties = client_properties(provider)
                # Java's default reads no token endpoint.
                handler = f"{CLASSES}.OAuthBearerLoginCallbackHandler"
                properties["sasl.login.callback.handler.class"] = handler
                lines = "".join(f"{name}={value}\n" for name, value in properties.items())
                write_private(client, lines)
                oauth = ("--bootstrap-server", node.broker, "--command-config", str(client))
                yield _measure("oauth", oauth, allowed_url=provider.url)


def _measure(
    kind: str, where: tuple[str, ...], *options: str, allowed_url: str = ""
) -> dict[str, Any]:
    """A figure; Kafka's tool fetches tokens from ``allowed_url`` only if it is told so."""
    ours = (*FEATUREWATCH, "features", *where, "describe", *options)
    theirs = tool_command(RELEASE, "org.apache.kafka.tools.FeatureCommand", *where, "describe")
    theirs.insert(1, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
    if allowed_url:
        theirs.insert(1, f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={allowed_url}")
    if not options and (printed := timed(ours)[1]) != (expected := timed(theirs)[1]):
        raise RuntimeError(f"they print different things: {printed!r}, {expected!r}")
    took = medians({"ours": ours, "theirs": theirs})
    measure = f"features_describe_{kind}_vs_kafka_features"
    return line(measure, took["ours"], took["theirs"], took["theirs"] / took["ours"])


def _properties(own: Addresses, tls_port: int, server: Path) -> dict[str, str]:
    """A second broker listener, with TLS."""
    return {
        "listeners": f"PLAINTEXT://{LOOPBACK}:{own.broker},CONTROLLER://{LOOPBACK}:{own.controller}"
        f",SECURE://{LOOPBACK}:{tls_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SSL",
        "listener.name.secure.ssl.keystore.type": "PEM",
        "listener.name.secure.ssl.keystore.location": str(server),
    }


def _certificates(directory: Path) -> tuple[Path, Path]:
    """Files of an authority, and of a server with its key, which Java reads in PKCS #8 alone."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.pem")
    issued = authority.issue_cert(LOOPBACK)
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    chain = b"".join(part.bytes() for part in issued.cert_chain_pems)
    write_private(directory / "server.pem", pem + chain)
    return directory / "ca.pem", directory / "server.pem"
