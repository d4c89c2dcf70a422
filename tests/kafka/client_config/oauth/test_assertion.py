"""Assertions instead of a secret: what is signed, what is requested, and what cannot be."""

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from featurewatch.kafka.client_config.clients import java_properties
from featurewatch.kafka.client_config.errors import SecurityError, TokenError
from featurewatch.kafka.client_config.login import login_of
from featurewatch.kafka.client_config.oauth.assertion import assertion_text
from featurewatch.kafka.client_config.oauth.fetch import fetch
from featurewatch.kafka.client_config.oauth.request import token_request
from featurewatch.kafka.client_config.oauth.settings import (
    AssertionFile,
    FetchLimits,
    OauthLogin,
    SignedAssertion,
    TokenEndpoint,
)
from featurewatch.kafka.client_properties import client_config
from tests.oidc import Provider, jwt, respond, running_provider

BEARER = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
PREFIX = "sasl.oauthbearer.assertion."
NOW_S = 1_700_000_000.5


@pytest.fixture(scope="module")
def rsa_key() -> rsa.RSAPrivateKey:
    """A key for RS256."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def written(key: Any, file: Path, password: bytes | None = None) -> str:
    """The path of a file with a key in PEM."""
    protection: serialization.KeySerializationEncryption = (
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption()
    )
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection
    )
    file.write_bytes(text)
    return str(file)


def endpoint(url: str, **assertion: str) -> TokenEndpoint:
    """The endpoint of properties, by way of the checks of a file."""
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": url,
        **assertion,
    }
    client_config(properties)
    login = login_of(properties)
    assert isinstance(login, OauthLogin)
    assert isinstance(login.source, TokenEndpoint)
    return login.source


def parts(token: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    """Header, payload, what is signed, and the signature."""
    decoded = [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split(".")]
    signed = token.rpartition(".")[0].encode()
    return json.loads(decoded[0]), json.loads(decoded[1]), signed, decoded[2]


def test_an_assertion_is_signed_with_the_claims_of_kafka(
    rsa_key: rsa.RSAPrivateKey, tmp_path: Path
) -> None:
    """Times and id are set here, the rest comes from a template and from properties."""
    template = {"header": {"kid": "k-1"}, "payload": {"sub": "template", "tier": 1}}
    (tmp_path / "template.json").write_text(json.dumps(template))
    assertion = SignedAssertion(
        *("RS256", written(rsa_key, tmp_path / "key.pem", b"hush"), "hush"),
        str(tmp_path / "template.json"),
        (("aud", "https://idp.test/token"), ("iss", "watch"), ("sub", "svc")),
        exp_s=60,
        nbf_s=5,
        has_id=True,
    )
    assert "hush" not in repr(assertion)
    header, payload, signed, signature = parts(assertion_text(assertion, NOW_S, lambda: "id-1"))
    assert header == {"alg": "RS256", "typ": "JWT", "kid": "k-1"}
    now_s = int(NOW_S)
    assert payload == {
        "iat": now_s,
        "exp": now_s + 60,
        "nbf": now_s - 5,
        "jti": "id-1",
        "tier": 1,
        "aud": "https://idp.test/token",
        "iss": "watch",
        "sub": "svc",
    }
    rsa_key.public_key().verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())


def test_es256_and_a_key_in_base64_alone(rsa_key: rsa.RSAPrivateKey, tmp_path: Path) -> None:
    """A signature of RFC 7518; and the form of a key that Kafka 4.1 to 4.4 read."""
    key = ec.generate_private_key(ec.SECP256R1())
    path = written(key, tmp_path / "ec.pem")
    _, _, signed, signature = parts(assertion_text(SignedAssertion("ES256", path), NOW_S))
    assert len(signature) == 64
    r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
    encoded = utils.encode_dss_signature(r, s)
    key.public_key().verify(encoded, signed, ec.ECDSA(hashes.SHA256()))
    bare = tmp_path / "key.b64"
    written(rsa_key, bare)
    bare.write_text("\n".join(bare.read_text().splitlines()[1:-1]))
    _, _, signed, signature = parts(assertion_text(SignedAssertion("RS256", str(bare)), NOW_S))
    rsa_key.public_key().verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())


def test_the_requests_are_those_of_both_kips(rsa_key: rsa.RSAPrivateKey, tmp_path: Path) -> None:
    """The assertion identifies the client (KIP-1258), or is the grant (KIP-1139)."""
    path = written(rsa_key, tmp_path / "key.pem")
    given = {f"{PREFIX}private.key.file": path, f"{PREFIX}claim.iss": "watch"}
    identified = endpoint(
        "http://idp.test/",
        **given,
        **{"sasl.oauthbearer.client.credentials.client.id": "watch"},
        **{"sasl.oauthbearer.scope": "a b"},
    )
    body, headers, secrets = token_request(identified, NOW_S)
    fields = {name: values[0] for name, values in parse_qs(body.decode()).items()}
    assertion = fields.pop("client_assertion")
    assert assertion in secrets
    assert fields == {
        "grant_type": "client_credentials",
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_id": "watch",
        "scope": "a b",
    }
    assert "Authorization" not in headers
    for bearer in (
        {"sasl.oauthbearer.jwt.retriever.class": BEARER},
        {"sasl.oauthbearer.grant.type": GRANT},
    ):
        found = endpoint("http://idp.test/", **given, **bearer)
        fields = {k: v[0] for k, v in parse_qs(token_request(found, NOW_S).body.decode()).items()}
        assert fields.keys() == {"grant_type", "assertion"}
        assert fields["grant_type"] == GRANT
    java = java_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": "http://idp.test/",
            **given,
            "sasl.oauthbearer.jwt.retriever.class": BEARER,
        }
    )
    assert java.items() >= given.items()
    assert java["sasl.oauthbearer.jwt.retriever.class"] == BEARER
    assert "client" not in java["sasl.jaas.config"]


def test_an_assertion_of_a_file_is_read_for_each_request(tmp_path: Path) -> None:
    """And a provider that repeats it in its error shows it to nobody."""
    file = tmp_path / "assertion.jwt"
    first, second = jwt({"sub": "a"}), jwt({"sub": "b"})

    def refuse(provider: Provider, request: Any) -> None:
        respond(request, 401, json.dumps({"error": f"not {provider.bodies[-1]}"}))

    with running_provider() as provider:
        provider.answer = refuse
        source = endpoint(provider.url, **{f"{PREFIX}file": str(file)})
        assert source.assertion == AssertionFile(str(file))
        for text in (first, second):
            file.write_text(text + "\n")
            with pytest.raises(TokenError, match="check the client's id, its assertion") as raised:
                fetch(source, FetchLimits(2.0, 2.0))
            assert text not in str(raised.value)
            assert f"client_assertion={text}" in provider.bodies[-1]


@pytest.mark.parametrize(
    ("assertion", "line"),
    [
        ({f"{PREFIX}claim.iss": "a"}, "an assertion needs .*private.key.file"),
        ({f"{PREFIX}private.key.file": "/k"}, "private.key.file has no effect: set .*claim.iss"),
        (
            {
                f"{PREFIX}claim.iss": "a",
                f"{PREFIX}private.key.file": "/k",
                f"{PREFIX}algorithm": "none",
            },
            "use RS256 or ES256",
        ),
        ({f"{PREFIX}private.key.pem": "-----BEGIN"}, "a key in a file of properties"),
        (
            {
                f"{PREFIX}claim.iss": "a",
                f"{PREFIX}private.key.file": "/k",
                f"{PREFIX}claim.exp.seconds": "86401",
            },
            "more than 86400 seconds",
        ),
    ],
)
def test_properties_that_are_no_assertion(assertion: dict[str, str], line: str) -> None:
    """Each is named."""
    secret = {
        "sasl.oauthbearer.client.credentials.client.id": "a",
        "sasl.oauthbearer.client.credentials.client.secret": "b",
    }
    with pytest.raises(SecurityError, match=line):
        endpoint("http://idp.test/", **secret, **assertion)


def test_files_that_cannot_be_used_are_one_line(rsa_key: rsa.RSAPrivateKey, tmp_path: Path) -> None:
    """Missing, empty, large, without a key, with another password or for another algorithm."""
    path = written(rsa_key, tmp_path / "key.pem", b"hush")
    wrong = tmp_path / "wrong"
    cases: list[tuple[AssertionFile | SignedAssertion, str]] = [
        (AssertionFile("/none"), "cannot be read: No such file"),
        (AssertionFile(path), "is not a JSON Web Token"),
        (SignedAssertion("RS256", path), "no private key that can be read"),
        (SignedAssertion("RS256", path, "other"), "no private key that can be read"),
        (SignedAssertion("ES256", path, "hush"), "is not one for ES256"),
        (SignedAssertion("RS256", path, "hush", path), "is not a JSON object"),
        (SignedAssertion("RS256", str(wrong)), "no private key that can be read"),
    ]
    wrong.write_text("not base64!")
    for assertion, line in cases:
        with pytest.raises(TokenError, match=line):
            assertion_text(assertion, NOW_S)
    for content in ("", " " * 100_000):
        wrong.write_text(content)
        with pytest.raises(TokenError, match="is empty, or has more than"):
            assertion_text(SignedAssertion("RS256", str(wrong)), NOW_S)
