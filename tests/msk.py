"""What Amazon MSK and STS do, on the loopback interface: signatures are checked, roles assumed.

`check_signature` follows the published algorithm of Signature Version 4 for query parameters
("Create a signed AWS API request" of the IAM User Guide), and uses nothing of AWS's packages.
"""

import base64
import hashlib
import hmac
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

import pytest

KEY_ID, SECRET, SESSION = (
    "AKIDEXAMPLE",
    "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "session/+=token",
)
ROLE: Final = "arn:aws:iam::123456789012:role/kafka-watch"
HOST: Final = "b-1.demo.abc123.c2.kafka.eu-central-1.amazonaws.com"

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_IAM_FIELDS: Final = {
    "action",
    "host",
    "user-agent",
    "version",
    "x-amz-algorithm",
    "x-amz-credential",
    "x-amz-date",
    "x-amz-expires",
    "x-amz-signature",
    "x-amz-signedheaders",
}


class RefusedError(ValueError):
    """What a broker of MSK refuses, with the reason."""


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def check_signature(
    host: str, query: Mapping[str, str], secrets: Mapping[str, str], now: datetime
) -> None:
    """Checks a signed GET of ``/``; ``query`` are its parameters, decoded, with their signature.

    ``secrets`` are those of the known access keys. Raises `RefusedError`.
    """
    key_id, day, region, service, end = query["X-Amz-Credential"].split("/")
    signed_at = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    if (query["X-Amz-Algorithm"], service, end) != (_ALGORITHM, "kafka-cluster", "aws4_request"):
        raise RefusedError("it is signed for something else")
    if key_id not in secrets:
        raise RefusedError("the access key is unknown")
    lifetime = timedelta(seconds=int(query["X-Amz-Expires"]))
    if not timedelta() < lifetime <= timedelta(minutes=15):
        raise RefusedError("the lifetime is not up to 15 minutes")
    if not signed_at - timedelta(minutes=5) <= now <= signed_at + lifetime:
        raise RefusedError("Signature expired")
    if day != signed_at.strftime("%Y%m%d") or query["X-Amz-SignedHeaders"] != "host":
        raise RefusedError("its scope is not that of its date")
    signed = sorted((k, v) for k, v in query.items() if k not in ("X-Amz-Signature", "User-Agent"))
    canonical_query = "&".join(
        f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in signed
    )
    empty = hashlib.sha256(b"").hexdigest()
    request = "\n".join(("GET", "/", canonical_query, f"host:{host}", "", "host", empty))
    digest = hashlib.sha256(request.encode()).hexdigest()
    scope = f"{day}/{region}/{service}/{end}"
    to_sign = "\n".join((_ALGORITHM, query["X-Amz-Date"], scope, digest))
    key = f"AWS4{secrets[key_id]}".encode()
    for part in (day, region, service, end):
        key = _hmac(key, part)
    if not hmac.compare_digest(_hmac(key, to_sign).hex(), query["X-Amz-Signature"]):
        raise RefusedError("the signature does not match")


_NAMES: Final = {
    name.lower(): name
    for name in (
        "Action",
        "X-Amz-Algorithm",
        "X-Amz-Credential",
        "X-Amz-Date",
        "X-Amz-Expires",
        "X-Amz-Security-Token",
        "X-Amz-Signature",
        "X-Amz-SignedHeaders",
    )
}


def check_payload(
    payload: bytes, host: str, secrets: Mapping[str, str], now: datetime | None = None
) -> bytes:
    """A broker's answer to the message of AWS_MSK_IAM; raises `RefusedError`."""
    fields = json.loads(payload)
    if fields.keys() - {"x-amz-security-token"} != _IAM_FIELDS:
        raise RefusedError(f"the fields are {sorted(fields)}")
    if (fields["version"], fields["action"]) != ("2020_10_22", "kafka-cluster:Connect"):
        raise RefusedError("another version or action")
    if fields["host"] != host:
        raise RefusedError("it is for another host")
    query = {_NAMES[name]: value for name, value in fields.items() if name in _NAMES}
    check_signature(host, query, secrets, now or datetime.now(UTC))
    return b'{"version":"2020_10_22","request-id":"2c1a7f5e-1111-4a4a-9c9c-0a0a0a0a0a0a"}'


def check_token(
    token: str, region: str, secrets: Mapping[str, str], now: datetime | None = None
) -> None:
    """Checks MSK's signed token of OAUTHBEARER; raises `RefusedError`."""
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    host = f"kafka.{region}.amazonaws.com"
    if (url.scheme, url.netloc, url.path or "/") != ("https", host, "/"):
        raise RefusedError("it is for another region")
    check_signature(host, dict(parse_qsl(url.query)), secrets, now or datetime.now(UTC))


def check_oauth_message(message: bytes, region: str, secrets: Mapping[str, str]) -> bytes:
    """A broker's answer to the message of OAUTHBEARER with a signed token; as above."""
    token = message.partition(b"auth=Bearer ")[2].partition(b"\x01")[0]
    check_token(token.decode(), region, secrets)
    return b""


_ASSUMED: Final = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleResult><AssumedRoleUser><Arn>{arn}</Arn><AssumedRoleId>A:b</AssumedRoleId>
</AssumedRoleUser><Credentials><AccessKeyId>ASIAROLE</AccessKeyId>
<SecretAccessKey>r0le</SecretAccessKey><SessionToken>role+</SessionToken>
<Expiration>{end}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""
_IDENTITY: Final = """<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<GetCallerIdentityResult><Arn>{arn}</Arn><UserId>U</UserId><Account>123456789012</Account>
</GetCallerIdentityResult></GetCallerIdentityResponse>"""
_ERROR: Final = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error>
<Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"""


class Sts:
    """What STS answers: ``refusal`` is a code and a message, None: the role is assumed."""

    def __init__(self) -> None:
        self.url = ""
        self.refusal: tuple[int, str, str] | None = None
        self.lifetime = timedelta(hours=1)
        self.requests: list[dict[str, str]] = []
        self.key_ids: list[str] = []
        """The access keys that signed the requests."""

    def answer(self, form: Mapping[str, str]) -> tuple[int, str]:
        """Status and body."""
        if self.refusal is not None:
            status, code, message = self.refusal
            return status, _ERROR.format(code=code, message=message)
        if form["Action"] == "GetCallerIdentity":
            return 200, _IDENTITY.format(arn=f"{ROLE}/seen")
        end = (datetime.now(UTC) + self.lifetime).strftime("%Y-%m-%dT%H:%M:%SZ")
        arn = f"{form['RoleArn']}/{form['RoleSessionName']}"
        return 200, _ASSUMED.format(arn=arn, end=end)


@contextmanager
def running_sts() -> Iterator[Sts]:
    """Runs STS until the end of the block; its port is in ``url``."""
    sts = Sts()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            sts.requests.append(form)
            credential = self.headers["Authorization"].partition("Credential=")[2]
            sts.key_ids.append(credential.partition("/")[0])
            status, text = sts.answer(form)
            self.send_response(status)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        sts.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield sts
        finally:
            server.shutdown()
            thread.join()


def aws_environment(patch: pytest.MonkeyPatch, home: Path, **values: str) -> None:
    """An environment in which AWS's packages find ``values`` alone, and ask no network."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        patch.delenv(name)
    nowhere = str(home / "none")
    for name, value in {
        "HOME": str(home),
        "AWS_CONFIG_FILE": nowhere,
        "AWS_SHARED_CREDENTIALS_FILE": nowhere,
        "AWS_EC2_METADATA_DISABLED": "true",
        **values,
    }.items():
        patch.setenv(name, value)
