"""Whatever a provider or a server sends is read, or is the one documented error."""

import json
import socket
import threading
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.oauth.endpoint import granted_token
from featurewatch.kafka.client_config.oauth.settings import FetchLimits, TokenEndpoint
from featurewatch.kafka.client_config.oauth.token import read_token
from featurewatch.kafka.sasl import SaslError, oauthbearer
from tests.oidc import jwt

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda items: st.lists(items, max_size=3) | st.dictionaries(st.text(max_size=5), items),
    max_leaves=8,
)
CLAIMS = st.dictionaries(st.sampled_from(["exp", "iat", "sub", "aud"]), JSON)


@pytest.mark.fuzz
@given(st.text() | CLAIMS.map(jwt) | st.binary().map(lambda content: content.decode("latin-1")))
def test_any_text_is_a_token_or_an_error(text: str) -> None:
    """With an end after now, if it is a token."""
    with suppress(TokenError):
        assert read_token(text, "sub", "x", 0.0).expires_s > 0


@pytest.mark.fuzz
@given(
    st.binary(max_size=200)
    | st.builds(
        lambda status, body: b"HTTP/1.1 %d x\r\nContent-Type: a\r\n\r\n%s" % (status, body),
        st.integers(100, 599),
        JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=50),
    )
)
@settings(max_examples=50)
def test_any_answer_is_a_text_or_an_error(answer: bytes) -> None:
    """The endpoint is a socket that sends the answer and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = TokenEndpoint("http", "127.0.0.1", server.getsockname()[1], "/", "id", "key")

        def answered(*_: object) -> None:
            client, _address = server.accept()
            with client:
                client.recv(4096)
                client.sendall(answer)

        thread = threading.Thread(target=answered)
        thread.start()
        with suppress(TokenError):
            assert granted_token(endpoint, FetchLimits(2, 2), 1000)
        thread.join()


@pytest.mark.fuzz
@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_message_of_a_server_ends_the_login(message: bytes) -> None:
    """An empty one means that it succeeded; anything else is acknowledged, and an error."""
    exchange = oauthbearer("t", {"a": "b"})
    assert next(exchange) == b"n,,\x01auth=Bearer t\x01a=b\x01\x01"
    if not message:
        with pytest.raises(StopIteration):
            exchange.send(message)
        return
    assert exchange.send(message) == b"\x01"
    with pytest.raises(SaslError, match="the token is refused"):
        exchange.send(b"")
