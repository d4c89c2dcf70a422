"""Nodes with a TLS that a client does not accept, and the line that a person reads about each."""

import contextlib
import datetime
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import trustme

from featurewatch.kafka.address import Address
from tests.kafka.handshake import V3_ANSWER, frame

TLS_HANDSHAKE = 0x16
LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
Server = Callable[[trustme.CA], ssl.SSLContext | None]


def secured(authority: trustme.CA, **issued: object) -> ssl.SSLContext:
    """A TLS server of 127.0.0.1, or of what ``issued`` has as ``name``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    name = str(issued.pop("name", "127.0.0.1"))
    authority.issue_cert(name, **issued).configure_cert(context)  # type: ignore[arg-type]
    return context


def demanding(authority: trustme.CA) -> ssl.SSLContext:
    """One that demands a certificate of its clients."""
    context = secured(authority)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def old(authority: trustme.CA) -> ssl.SSLContext:
    """One that knows no TLS 1.3."""
    context = secured(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


TLS = "security.protocol=SSL ssl.ca.location=CA"
CASES: dict[str, tuple[Server, str, str]] = {
    "untrusted": (
        secured,
        "security.protocol=SSL",
        r"is not trusted \(.*\): set ssl.truststore.location or ssl.ca.location to its authority",
    ),
    "another host": (
        lambda authority: secured(authority, name="kafka.example.org"),
        TLS,
        r"is for another host \(.*\): use a name that is in it, or set "
        r"ssl.endpoint.identification.algorithm to none",
    ),
    "expired": (
        lambda authority: secured(authority, not_before=LONG_AGO, not_after=LONG_AGO),
        TLS,
        r"its certificate has expired \(.*\): renew it on that node",
    ),
    "no client certificate": (
        demanding,
        TLS,
        r"refuses our certificate \(.*\): set ssl.keystore.location, or ssl.certificate.location",
    ),
    "no common version": (
        old,
        f"{TLS} ssl.enabled.protocols=TLSv1.3",
        r"agrees to no TLS version or cipher of ours \(.*\): check ssl.enabled.protocols",
    ),
    "no TLS there": (lambda _: None, TLS, r"does not speak TLS \(.*\): check security.protocol"),
    "TLS there": (secured, "", r"set security.protocol"),
}


@contextmanager
def listener(tls: ssl.SSLContext | None) -> Iterator[Address]:
    """A node in a thread: blocking sockets send the alert of a failed handshake, as Kafka does.

    It serves one connection after another.
    """
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.is_set():
            serve_one(server, tls)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Address("127.0.0.1", server.getsockname()[1])
        finally:
            stopped.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def properties_of(settings: str, authority: trustme.CA, directory: Path) -> dict[str, str]:
    """The properties of one of `CASES`; the authority's certificate is put into ``directory``."""
    file = directory / "ca.pem"
    authority.cert_pem.write_to_path(file)
    pairs = (setting.split("=") for setting in settings.split())
    return {key: value.replace("CA", str(file)) for key, value in pairs}


def serve_one(server: socket.socket, tls: ssl.SSLContext | None) -> None:
    """Answers ApiVersions on one connection; what is no request gets a text."""
    with contextlib.suppress(OSError):
        stream, _ = server.accept()
        stream.settimeout(5)
        if tls is not None:
            stream = tls.wrap_socket(stream, server_side=True, do_handshake_on_connect=False)
        with stream:
            try:
                if isinstance(stream, ssl.SSLSocket):
                    stream.do_handshake()
                answer(stream)
            except OSError:
                stream.shutdown(socket.SHUT_WR)  # what is unread would end it before the alert
                stream.recv(4096)


def answer(stream: socket.socket) -> None:
    """Answers until the client ends the connection."""
    while request := stream.recv(4096):
        if request[0] == TLS_HANDSHAKE:
            stream.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return
        stream.sendall(frame(request[8:12] + V3_ANSWER))
