"""The proxy of the environment, before an endpoint of tokens."""

import base64
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.oauth.fetch import fetch
from featurewatch.kafka.client_config.oauth.proxy import Proxy, proxy_for
from featurewatch.kafka.client_config.oauth.settings import FetchLimits, TokenEndpoint
from tests.oidc import CLIENT_ID, SECRET, running_provider

LIMITS = FetchLimits(connect_s=3.0, read_s=3.0)


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@contextmanager
def proxy(
    to_port: int, answer: bytes = b"HTTP/1.1 200 OK\r\n\r\n"
) -> Iterator[tuple[int, list[str]]]:
    """A proxy that connects everything to one port; its own port, and the heads of requests."""
    heads: list[str] = []

    def copy(source: socket.socket, sink: socket.socket) -> None:
        try:
            while part := source.recv(65_536):
                sink.sendall(part)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def serve(listener: socket.socket) -> None:
        with listener.accept()[0] as client:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(1)
            heads.append(head.decode())
            client.sendall(answer)
            if b" 200 " not in answer:
                return
            with socket.create_connection(("127.0.0.1", to_port)) as target:
                back = threading.Thread(target=copy, args=(target, client), daemon=True)
                back.start()
                copy(client, target)
                back.join(5)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield listener.getsockname()[1], heads
        thread.join(5)


def test_an_endpoint_behind_a_proxy_is_reached_by_tls_through_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The proxy resolves the name; it sees neither the request nor the secret."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("idp.test").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with running_provider(context) as provider:
        port = int(provider.url.split(":")[2].partition("/")[0])
        source = TokenEndpoint(
            *("https", "idp.test", port, "/token", CLIENT_ID, SECRET),
            tls=(("ssl.ca.location", str(tmp_path / "ca.pem")),),
        )
        with proxy(port) as (proxy_port, heads):
            monkeypatch.setenv("HTTPS_PROXY", f"http://me:p%40ss@127.0.0.1:{proxy_port}")
            assert fetch(source, LIMITS).count(".") == 2
    login = base64.b64encode(b"me:p@ss").decode()
    assert heads == [
        f"CONNECT idp.test:{port} HTTP/1.1\r\nHost: idp.test:{port}\r\n"
        f"Proxy-Authorization: Basic {login}\r\n\r\n"
    ]


@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 Login\r\n\r\n", b"what\r\n\r\n", b""])
def test_a_proxy_that_refuses_is_one_line(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    """With what to look at, and without its password."""
    source = TokenEndpoint("https", "idp.test", 443, "/token", CLIENT_ID, SECRET)
    with proxy(1, answer) as (port, _):
        monkeypatch.setenv("https_proxy", f"http://me:hush@127.0.0.1:{port}")
        line = rf"the proxy 127.0.0.1:{port} does not connect to idp.test:443 .*HTTPS_PROXY"
        with pytest.raises(TokenError, match=line) as raised:
            fetch(source, LIMITS)
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://proxy.test:3128"}, Proxy("proxy.test", 3128, "")),
        ({"HTTPS_PROXY": "proxy.test"}, Proxy("proxy.test", 80, "")),
        ({"HTTP_PROXY": "http://proxy.test:3128"}, None),
        ({"ALL_PROXY": "http://proxy.test:3128"}, Proxy("proxy.test", 3128, "")),
        ({"HTTPS_PROXY": "http://proxy.test:3128", "NO_PROXY": "other,.test"}, None),
    ],
)
def test_the_environment_names_the_proxy(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: Proxy | None
) -> None:
    """As for other programs; loopback addresses have none."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for("https", "idp.test", 443) == expected
    for host in ("127.0.0.1", "::1", "localhost"):
        assert proxy_for("https", host, 443) is None


def test_a_proxy_that_is_no_http_url_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its value may have a password and is not shown."""
    for value in ("socks5://me:hush@proxy.test:1", "http://me:hush@[", "http://me:hush@:x"):
        monkeypatch.setenv("HTTPS_PROXY", value)
        with pytest.raises(TokenError, match="HTTPS_PROXY is not the URL of a proxy") as raised:
            proxy_for("https", "idp.test", 443)
        assert "hush" not in str(raised.value)
