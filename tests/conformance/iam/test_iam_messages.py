"""AWS_MSK_IAM and MSK's token against aws-msk-iam-auth, the library of Java's clients."""

import base64
import json
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

import pytest

from featurewatch.kafka.client_config.iam.payload import signed_payload
from featurewatch.kafka.client_config.iam.region import region_in
from featurewatch.kafka.client_config.iam.token import signed_token
from featurewatch.kafka.sasl import SaslError, aws_msk_iam
from featurewatch.stack.java.jars import Cache, java_command
from scripts.java_source import compile_java
from tests.msk import HOST, KEY_ID, SECRET, SESSION, check_payload, check_token

credentials = pytest.importorskip("botocore.credentials")
pytestmark = pytest.mark.stack

SOURCE = Path(__file__).with_name("java") / "IamMessages.java"
SERVERLESS = "boot-x1.c3.kafka-serverless.us-east-1.amazonaws.com"
OURS = {"user-agent"}
LIFETIME = "900"
"""Java signs for a second less where one passes between its two looks at the clock."""
Ask = Callable[[str], str]
T = TypeVar("T")


def first(answer: Callable[[], T | None]) -> T:
    """The first answer of several that is not None."""
    return next(found for _ in range(50) if (found := answer()) is not None)


@pytest.fixture(scope="module", params=["", SESSION], ids=["key", "session"])
def java(
    request: pytest.FixtureRequest, stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Ask, str]]:
    """Asks Java's library, which has the credentials as its properties; and their session token."""
    directory = tmp_path_factory.mktemp("iam")
    jars = stack_cache.program("aws-msk-iam-auth") + stack_cache.class_path("4.4.0")
    compile_java([SOURCE], directory, stack_cache, jars)
    given = {"accessKeyId": KEY_ID, "secretAccessKey": SECRET, "region": "eu-central-1"}
    if request.param:
        given["sessionToken"] = request.param
    options = [f"-Daws.{name}={value}" for name, value in given.items()]
    options.append("-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
    command = java_command([directory, *jars], "IamMessages", heap_mb=256, options=options)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        send, receive = process.stdin, process.stdout

        def ask(line: str) -> str:
            send.write(line + "\n")
            send.flush()
            return receive.readline().strip()

        try:
            yield ask, request.param
        finally:
            process.kill()


def at(monkeypatch: pytest.MonkeyPatch, date: str) -> datetime:
    """Stops botocore's clock at the time of a signature."""
    now = datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_, **__: now)
    return now


@pytest.mark.parametrize("host", [HOST, SERVERLESS])
def test_the_message_is_that_of_java_but_for_the_user_agent(
    java: tuple[Ask, str], monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """Field by field, signature included, at the second of Java's; the order is that of a map."""
    ask, session = java

    def signed() -> bytes | None:
        answer = base64.b64decode(ask(f"sign {host}"))
        return answer if json.loads(answer)["x-amz-expires"] == LIFETIME else None

    theirs = first(signed)
    expected = json.loads(theirs)
    now = at(monkeypatch, expected["x-amz-date"])
    check_payload(theirs, host, {KEY_ID: SECRET}, now)
    keys = credentials.ReadOnlyCredentials(KEY_ID, SECRET, session or None)
    ours = json.loads(signed_payload(host, region_in(host), keys))
    assert ours.keys() == expected.keys()
    assert {k: v for k, v in ours.items() if k not in OURS} == {
        k: v for k, v in expected.items() if k not in OURS
    }


def test_the_token_is_that_of_java_but_for_the_user_agent(
    java: tuple[Ask, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signed URL, parameter by parameter."""
    ask, session = java

    def parameters(token: str) -> dict[str, str]:
        url = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
        return {k: v for k, v in parse_qsl(urlsplit(url).query) if k.lower() not in OURS}

    def signed() -> str | None:
        answer = ask("token")
        return answer if parameters(answer)["X-Amz-Expires"] == LIFETIME else None

    theirs = first(signed)
    now = at(monkeypatch, parameters(theirs)["X-Amz-Date"])
    keys = credentials.ReadOnlyCredentials(KEY_ID, SECRET, session or None)
    ours = signed_token("eu-central-1", keys)
    for token in (theirs, ours):
        check_token(token, "eu-central-1", {KEY_ID: SECRET}, now)
    assert parameters(ours) == parameters(theirs)


@pytest.mark.parametrize(
    "answer",
    [
        b'{"version":"2020_10_22","request-id":"id-1"}',
        b'{"version":"2021_01_01","request-id":"id-1"}',
        b'{"request-id":"id-1"}',
        b"[]",
        b"",
        b"\xff\x00",
    ],
)
def test_answers_of_brokers_are_accepted_as_by_java(java: tuple[Ask, str], answer: bytes) -> None:
    """The version is compared, and an empty answer is refused."""
    ask, _ = java
    exchange = aws_msk_iam("{}")
    next(exchange)
    try:
        exchange.send(answer)
    except StopIteration:
        ours = "complete"
    except SaslError:
        ours = "refused"
    assert ask(f"accept {HOST} {base64.b64encode(answer).decode()}") == ours
