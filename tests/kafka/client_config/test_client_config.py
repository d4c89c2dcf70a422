"""Client properties: what Kafka's tools take, each connection takes, or it is one line."""

import os
import shutil
import ssl
from pathlib import Path

import pytest
import trustme
from confluent_kafka import Consumer
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.cli.config.client_config import read_client_config, read_properties
from featurewatch.cli.errors import UsageError
from featurewatch.common.private_files import write_private
from featurewatch.kafka.client_config.clients import java_properties, librdkafka_properties
from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.key_stores import JKS_MAGIC, KeyStoreError, read_store
from featurewatch.kafka.client_config.keys import check_keys
from featurewatch.kafka.client_config.tls import openssl_ciphers
from featurewatch.kafka.security import from_properties

STORES = Path(__file__).parent / "stores"
"""Written by ``keytool`` of Java 17: one key, and the certificate of it as a trusted one."""

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def sasl(jaas: str, mechanism: str = "PLAIN") -> dict[str, str]:
    """Properties of a SASL login, as Kafka's tools have it."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas,
    }


@pytest.mark.parametrize(
    ("jaas", "login"),
    [
        (f'{PLAIN} required username="u" password="p";', ("u", "p")),
        (f"{PLAIN} REQUIRED\n  username='u'\n  password='p' ;\n", ("u", "p")),
        (f'{SCRAM} required password="a\\"b\\\\" username=u;', ("u", 'a"b\\')),
        (f'{PLAIN} required username="u" password="p;=x" user_u="p";', ("u", "p;=x")),
    ],
)
def test_a_jaas_entry_is_the_login_of_every_client(jaas: str, login: tuple[str, str]) -> None:
    """Python's own client, librdkafka and Java's log in with the same name and password."""
    properties = sasl(jaas, "SCRAM-SHA-512")
    security = from_properties(properties)
    assert (security.username, security.password) == login
    configuration = librdkafka_properties(properties)
    assert (configuration["sasl.username"], configuration["sasl.password"]) == login
    assert "sasl.jaas.config" not in configuration
    Consumer({**configuration, "group.id": "g"}).close()
    java = java_properties(properties)
    assert from_properties(java) == security


@pytest.mark.parametrize(
    ("jaas", "says"),
    [
        (f'{PLAIN} required username="u" password="p"', "is not a login entry: write"),
        ("nonsense", "is not a login entry"),
        ("com.sun.security.auth.module.Krb5LoginModule required;", "Krb5LoginModule is not"),
        (f'{SCRAM} required username="u" password="p" tokenauth="true";', "delegation tokens"),
        (f"{PLAIN} required;", "SASL needs sasl.username"),
    ],
)
def test_a_jaas_entry_that_cannot_be_used_is_one_line(jaas: str, says: str) -> None:
    """The line names the property, and never a password."""
    with pytest.raises(SecurityError, match=says) as raised:
        from_properties(sasl(jaas))
    assert raised.value.key == "sasl.jaas.config"
    assert '"p"' not in str(raised.value)


@pytest.mark.parametrize("kind", ["jks", "p12"])
def test_stores_of_java_are_read(kind: str) -> None:
    """The certificate that ``keytool`` printed is the one that both stores hold; the key fits."""
    certificate = (STORES / "cert.pem").read_text()
    trust = read_store((STORES / f"trust.{kind}").read_bytes(), "storepass", None)
    assert ssl.PEM_cert_to_DER_cert(trust.trusted) == ssl.PEM_cert_to_DER_cert(certificate)
    key_password = "keypass99" if kind == "jks" else None
    store = read_store((STORES / f"key.{kind}").read_bytes(), "storepass", key_password)
    key = serialization.load_pem_private_key(store.key.encode(), None)
    shown = x509.load_pem_x509_certificate(store.chain.encode())
    assert key.public_key() == shown.public_key()


def java_tls(kind: str, **changed: str) -> dict[str, str]:
    """TLS from Java's stores, with properties changed; underscores stand for dots."""
    return {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(STORES / f"trust.{kind}"),
        "ssl.truststore.password": "storepass",
        "ssl.keystore.location": str(STORES / f"key.{kind}"),
        "ssl.keystore.password": "storepass",
        **({"ssl.key.password": "keypass99"} if kind == "jks" else {}),
        **{name.replace("_", "."): value for name, value in changed.items()},
    }


@pytest.mark.parametrize("kind", ["jks", "p12"])
def test_stores_of_java_serve_every_client(kind: str) -> None:
    """The type is that of the content, as Java has it; Java itself is given the stores."""
    properties = java_tls(kind)
    tls = from_properties(properties).tls
    assert tls is not None
    assert tls.cert_store_stats()["x509"] == 1
    configuration = librdkafka_properties(properties)
    Consumer({**configuration, "group.id": "g"}).close()
    java = java_properties(properties)
    stores = {name: value for name, value in properties.items() if name.startswith("ssl.")}
    assert stores.items() <= java.items()


@pytest.mark.parametrize(
    ("changed", "key", "says"),
    [
        ({"ssl_truststore_password": "guess1"}, "ssl.truststore.password", "does not open it"),
        ({"ssl_keystore_password": "guess1"}, "ssl.keystore.password", "does not open it"),
        ({"ssl_truststore_type": "BCFKS"}, "ssl.truststore.type", "BCFKS is not supported"),
        ({"ssl_truststore_location": str(STORES)}, "ssl.truststore.location", "Is a directory"),
        ({"ssl_keystore_location": str(STORES / "trust.jks")}, "ssl.keystore.location", "no priv"),
        ({"ssl_enabled_protocols": "SSLv3"}, "ssl.enabled.protocols", "SSLv3"),
        ({"ssl_cipher_suites": "TLS_A_WITH_B"}, "ssl.cipher.suites", "no suite"),
        ({"ssl_endpoint_identification_algorithm": "htps"}, "ssl.endpoint.identification.algorithm",
         "use https, or none"),
    ],
)  # fmt: skip
def test_tls_that_cannot_be_used_is_one_line(changed: dict[str, str], key: str, says: str) -> None:
    """It says which property to correct."""
    with pytest.raises(SecurityError, match=says) as raised:
        from_properties(java_tls("jks", **changed))
    assert raised.value.key == key
    assert "guess1" not in str(raised.value)


def test_a_wrong_password_of_a_jks_key_is_named() -> None:
    """A key in a JKS store may have its own password."""
    with pytest.raises(SecurityError, match="the password does not open its key"):
        from_properties({**java_tls("jks"), "ssl.key.password": "wrong99"})


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with ca.pem, cert.pem, key.pem (of the old form), locked.pem and other.pem."""
    directory = tmp_path_factory.mktemp("client")
    authority = trustme.CA()
    issued = authority.issue_cert("client@example.org")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"hunter2"),
    )
    files = {
        "ca.pem": authority.cert_pem.bytes(),
        "cert.pem": issued.cert_chain_pems[0].bytes(),
        "key.pem": issued.private_key_pem.bytes(),
        "locked.pem": locked,
        "other.pem": authority.issue_cert("other@example.org").private_key_pem.bytes(),
    }
    for name, content in files.items():
        write_private(directory / name, content)
    return directory


@pytest.mark.parametrize(
    ("key", "password", "says"),
    [
        ("locked.pem", "guessed", "ssl.key.password does not open the key"),
        ("locked.pem", "", "is encrypted: set ssl.key.password"),
        ("other.pem", "", "belongs to another certificate"),
        ("ca.pem", "", "has no private key in PEM"),
    ],
)
def test_a_key_that_does_not_fit_has_a_reason(
    client: Path, key: str, password: str, says: str
) -> None:
    """OpenSSL calls most of it ``PEM lib``."""
    properties = {
        "security.protocol": "SSL",
        "ssl.certificate.location": str(client / "cert.pem"),
        "ssl.key.location": str(client / key),
        "ssl.key.password": password,
    }
    with pytest.raises(SecurityError, match=says) as raised:
        from_properties(properties)
    assert "PEM lib" not in str(raised.value)
    assert "guessed" not in str(raised.value)


def spellings(client: Path) -> dict[str, dict[str, str]]:
    """One authority and one client certificate, as each kind of properties has them."""
    cert, key = (client / name for name in ("cert.pem", "key.pem"))
    combined = client / "both.pem"
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    pkcs8 = loaded.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    write_private(combined, pkcs8 + cert.read_text())
    return {
        "librdkafka": {
            "ssl.ca.location": str(client / "ca.pem"),
            "ssl.certificate.location": str(cert),
            "ssl.key.location": str(key),
        },
        "pem stores": {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(client / "ca.pem"),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(combined),
        },
        "pem in the properties, on one line": {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": " ".join((client / "ca.pem").read_text().split("\n")),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": " ".join(cert.read_text().split("\n")),
            "ssl.keystore.key": " ".join(pkcs8.split("\n")),
        },
    }


@pytest.mark.parametrize("number", range(3))
def test_every_spelling_of_pem_serves_every_client(client: Path, number: int) -> None:
    """What Java is given is read back as the same TLS; librdkafka starts with it."""
    properties = {"security.protocol": "SSL", **list(spellings(client).values())[number]}
    tls = from_properties(properties).tls
    assert tls is not None
    assert len(tls.get_ca_certs()) == 1
    Consumer({**librdkafka_properties(properties), "group.id": "g"}).close()
    java = java_properties(properties)
    check_keys(java)
    read_back = from_properties(java).tls
    assert read_back is not None
    assert read_back.get_ca_certs() == tls.get_ca_certs()
    assert "RSA PRIVATE" not in java.get("ssl.keystore.key", "")


def test_a_chain_is_shown_in_its_order(client: Path, tmp_path: Path) -> None:
    """A store keeps certificates in any order; a handshake begins with the key's own."""
    root = trustme.CA()
    between = root.create_child_ca()
    issued = between.issue_cert("client@example.org")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey)
    certificates = [
        x509.load_pem_x509_certificate(pem.bytes())
        for pem in (*issued.cert_chain_pems, root.cert_pem)
    ]
    own, issuer, top = certificates
    content = pkcs12.serialize_key_and_certificates(
        b"one", key, own, [top, issuer], serialization.BestAvailableEncryption(b"secret")
    )
    chain = read_store(content, "secret", None).chain
    encoded = [cert.public_bytes(serialization.Encoding.PEM).decode() for cert in certificates]
    assert chain == "".join(encoded)


def test_the_suites_of_java_are_named_as_openssl_names_them() -> None:
    """Those of TLS 1.3 are always on."""
    given_names = (
        "TLS_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,"
        "TLS_RSA_WITH_AES_128_CBC_SHA,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,DHE-RSA-AES128-SHA"
    )
    assert openssl_ciphers(given_names) == (
        "ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA:ECDHE-RSA-CHACHA20-POLY1305:DHE-RSA-AES128-SHA"
    )


def test_tuning_does_not_weaken_the_guarantees_of_the_bus() -> None:
    """A file that other programs share changes no group, commit or acknowledgement."""
    shared = {"acks": "1", "enable.auto.commit": "true", "group.id": "x", "client.id": "me"}
    check_keys(shared)
    assert librdkafka_properties(shared) == {"client.id": "me"}
    assert java_properties(shared) == {}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("securty.protocol=SSL", "there is no setting securty.protocol: did you mean security."),
        ("reqest.timeout.ms=1", "did you mean request.timeout.ms?"),
        ("nonsense=1", "there is no setting nonsense: Kafka has no setting of that name"),
        ("sasl.login.class=a.B", "names a Java class"),
        ("ssl.crl.location=/x", "is only for librdkafka"),
        ("config.providers=env\nssl.key.password=${env:X}", "comes from config.providers"),
        ("security.protocol=SSL\nssl.truststore.type=BCFKS\nssl.truststore.location=x", "BCFKS"),
    ],
)
def test_a_wrong_line_is_named_with_its_file(tmp_path: Path, line: str, says: str) -> None:
    """File, line and key; the file begins with a comment and an empty line."""
    file = tmp_path / "client.properties"
    write_private(file, f"# ours\n\nclient.id=x\n{line}\n")
    with pytest.raises(UsageError) as raised:
        read_client_config(file)
    wrong = 4 if "\n" not in line else 5
    assert str(raised.value).startswith(f"{file} line {wrong}: ")
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_continued_property_is_named_by_its_first_line(tmp_path: Path) -> None:
    """As an editor shows it."""
    file = tmp_path / "client.properties"
    write_private(file, "a=1\\\n2\\\n3\nb=4\n")
    assert read_properties(file).lines == {"a": 1, "b": 4}


JKS_HEADERS = st.sampled_from([JKS_MAGIC, b"\x30\x82", JKS_MAGIC + b"\0\0\0\2\0\0\0\1\0\0\0\1"])


@pytest.mark.fuzz
@given(JKS_HEADERS, st.binary(max_size=80), st.none() | st.text(max_size=4))
@settings(max_examples=200)
def test_any_store_is_read_or_refused(head: bytes, rest: bytes, password: str | None) -> None:
    """Nothing but `KeyStoreError` is raised on any content."""
    try:
        read_store(head + rest, password, password)
    except KeyStoreError as error:
        assert "\n" not in str(error)


def test_an_unchanged_file_is_the_same_login(tmp_path: Path, client: Path) -> None:
    """Connections are reused by login, which a changed file, or certificate, must not be."""
    file = tmp_path / "client.properties"
    authority = tmp_path / "ca.pem"
    shutil.copy(client / "ca.pem", authority)
    content = f"security.protocol=SSL\nssl.ca.location={authority}\n"
    write_private(file, content)
    first = read_client_config(file)
    assert read_client_config(file) is first
    os.utime(authority, ns=(1, 1))
    second = read_client_config(file)
    assert second is not first
    assert second.security != first.security
    write_private(file, content + "default.api.timeout.ms=1000\n")
    assert read_client_config(file).network.api_timeout_s == 1
