"""The message of AWS_MSK_IAM and MSK's token: their bytes, and a login at a broker that checks."""

import asyncio
import base64
import json
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from featurewatch.kafka.address import Address
from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.iam.payload import signed_payload
from featurewatch.kafka.client_config.iam.token import signed_token
from featurewatch.kafka.client_config.oauth.signed_token import read_signed_token
from featurewatch.kafka.connection import Connection, open_connection
from featurewatch.kafka.node_errors import AuthenticationError, NoTokenError
from featurewatch.kafka.security import from_properties
from tests.kafka.handshake import V3_ANSWER, frame
from tests.kafka.login_front import Front
from tests.msk import (
    HOST,
    KEY_ID,
    SECRET,
    SESSION,
    RefusedError,
    aws_environment,
    check_payload,
    check_token,
)

credentials = pytest.importorskip("botocore.credentials")

NOW = datetime(2026, 11, 27, 12, 0, 5, tzinfo=UTC)
SECRETS = {KEY_ID: SECRET}
KEYS = credentials.ReadOnlyCredentials(KEY_ID, SECRET, SESSION)
PROPERTIES = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "AWS_MSK_IAM"}


@pytest.fixture
def _frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of botocore is stopped at `NOW`."""
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_, **__: NOW)


@pytest.mark.usefixtures("_frozen")
def test_the_message_is_as_the_published_algorithm_signs_it() -> None:
    """And as AWS's own signer does, for the one host that it signs for."""
    payload = signed_payload(HOST, "eu-central-1", KEYS)
    check_payload(payload, HOST, SECRETS, NOW)
    fields = json.loads(payload)
    assert fields["x-amz-date"] == "20261127T120005Z"
    assert fields["x-amz-security-token"] == SESSION
    token = signed_token("eu-central-1", KEYS)
    check_token(token, "eu-central-1", SECRETS, NOW)
    url = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    signed = {name.lower(): value for name, value in parse_qsl(urlsplit(url).query)}
    same_host = json.loads(signed_payload("kafka.eu-central-1.amazonaws.com", "eu-central-1", KEYS))
    ours = {"version", "host", "user-agent"}
    assert {k: v for k, v in same_host.items() if k not in ours} == {
        k: v for k, v in signed.items() if k not in ours
    }


@pytest.mark.usefixtures("_frozen")
@pytest.mark.parametrize(
    ("host", "region", "secret", "late", "reason"),
    [
        ("b-2.other", "eu-central-1", SECRET, 0, "for another host"),
        (HOST, "eu-central-1", "another", 0, "the signature does not match"),
        (HOST, "eu-central-1", SECRET, 16 * 60, "Signature expired"),
    ],
)
def test_the_check_refuses_what_is_signed_otherwise(
    host: str, region: str, secret: str, late: int, reason: str
) -> None:
    """A check that refuses nothing would show nothing."""
    keys = credentials.ReadOnlyCredentials(KEY_ID, secret, None)
    payload = signed_payload(host, region, keys)
    with pytest.raises(RefusedError, match=reason):
        check_payload(payload, HOST, SECRETS, NOW + timedelta(seconds=late))


@pytest.mark.usefixtures("_frozen")
def test_the_end_of_a_token_is_that_of_its_signature() -> None:
    """15 minutes; one that has ended, or is no URL, is one line."""
    text = signed_token("eu-central-1", KEYS)
    token = read_signed_token(text, NOW.timestamp())
    assert token.expires_s - NOW.timestamp() == 900
    assert SECRET not in repr(token)
    with pytest.raises(TokenError, match="ended already: look at the clock"):
        read_signed_token(text, NOW.timestamp() + 901)
    for wrong in ("", "e30", "?", "A" * 100_000):
        with pytest.raises(TokenError, match="gave no signed URL"):
            read_signed_token(wrong, 0)


async def node(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers ApiVersions."""
    try:
        while True:
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            request = await reader.readexactly(length)
            writer.write(frame(request[4:8] + V3_ANSWER))
    except asyncio.IncompleteReadError:
        pass
    finally:
        writer.close()


async def connect(host: str, secrets: dict[str, str]) -> Connection:
    """A connection to a broker that checks signatures for ``host``."""
    behind = await asyncio.start_server(node, "127.0.0.1", 0)

    def check(message: bytes) -> bytes:
        return check_payload(message, host, secrets)

    front = Front(None, "AWS_MSK_IAM", checks={"AWS_MSK_IAM": check})
    server = await front.start(behind.sockets[0].getsockname()[1])
    async with behind, server:
        address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        return await open_connection(address, from_properties(PROPERTIES), timeout_s=20)


async def test_a_login_at_a_broker_that_checks_signatures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The host and the region are those of the address and of the environment."""
    keys = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}
    aws_environment(monkeypatch, tmp_path, **keys, AWS_SESSION_TOKEN=SESSION)
    with pytest.raises(NoTokenError, match=r"region of 127.0.0.1 is unknown.*AWS_REGION"):
        await connect("127.0.0.1", SECRETS)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    connection = await connect("127.0.0.1", SECRETS)
    await connection.close()
    with pytest.raises(AuthenticationError, match="Authentication failed: check that the") as no:
        await connect("127.0.0.1", {KEY_ID: "another"})
    assert "kafka-cluster:Connect" in str(no.value)
    assert SECRET not in str(no.value)
