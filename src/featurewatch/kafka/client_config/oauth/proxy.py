"""The proxy before the endpoint of tokens: that of HTTPS_PROXY, HTTP_PROXY and NO_PROXY.

Kafka has no property for it; its Java clients take Java's system properties, which a file of client
properties cannot set either. As there, loopback addresses have no proxy.
"""

import base64
import ipaddress
import socket
import urllib.request
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from featurewatch.common.text import quoted
from featurewatch.kafka.client_config.errors import TokenError

_MAX_HEAD_BYTES: Final = 16_384
_OK: Final = b" 200"


class Proxy(NamedTuple):
    """The address of a proxy; ``login`` is the value of ``Proxy-Authorization``, or empty."""

    host: str
    port: int
    login: str

    def __repr__(self) -> str:
        return f"Proxy({self.host!r}, {self.port})"

    def __str__(self) -> str:
        return quoted(f"{self.host}:{self.port}")


def proxy_for(scheme: str, host: str, port: int) -> Proxy | None:
    """The proxy for an endpoint; None: it is reached directly. Raises `TokenError`."""
    proxies = urllib.request.getproxies_environment()
    url = proxies.get(scheme) or proxies.get("all", "")
    if not url or _is_loopback(host):
        return None
    # Typeshed lacks it.
    if urllib.request.proxy_bypass_environment(f"{host}:{port}", proxies):  # type: ignore[attr-defined]
        return None
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        proxy_port = parts.port or 80
    except ValueError:
        parts, proxy_port = urlsplit(""), 0
    if parts.scheme != "http" or not parts.hostname:
        name = f"{scheme.upper()}_PROXY"
        raise TokenError(f"the environment variable {name} is not the URL of a proxy: http://…")
    login = ""
    if parts.username is not None:
        text = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        login = f"Basic {base64.b64encode(text.encode()).decode()}"
    return Proxy(parts.hostname, proxy_port, login)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def open_tunnel(connected: socket.socket, proxy: Proxy, host: str, port: int) -> None:
    """Lets the proxy connect to the endpoint (CONNECT of RFC 9110); its time is the socket's.

    Raises:
        TokenError: The proxy refuses, or answers something else.
    """
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    head = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.login:
        head.append(f"Proxy-Authorization: {proxy.login}")
    connected.sendall("\r\n".join((*head, "", "")).encode("latin-1"))
    answer = b""
    while b"\r\n\r\n" not in answer and len(answer) < _MAX_HEAD_BYTES:
        # Byte by byte: what follows belongs to TLS.
        part = connected.recv(1)
        if not part:
            break
        answer += part
    status = answer.split(b"\r\n")[0]
    if not answer.startswith(b"HTTP/1.") or _OK not in status[:13] or b"\r\n\r\n" not in answer:
        shown = quoted(status.decode("latin-1")) or "nothing"
        raise TokenError(
            f"the proxy {proxy} does not connect to {target} ({shown}): look at HTTPS_PROXY and "
            "NO_PROXY",
            is_transient=b" 5" in status[:11],
        )
