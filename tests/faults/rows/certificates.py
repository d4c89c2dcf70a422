"""Certificates that are replaced on disk while source and worker run, and a web configuration."""

import http.client
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from featurewatch.common.private_files import write_private
from tests.faults.certificates import Kind, Peer
from tests.faults.fault import Fault
from tests.faults.rows.processes import STALLED
from tests.faults.stack import FIRST_TOKEN, WEB_CONFIG, Stack, by_tls

_MALFORMED: Final = "tls_server_config:\n  min_version: [TLS12]\n"
_SECOND_TOKEN: Final = "the-second-token-of-a-stack"  # noqa: S105 - of a test
_NOTICED_S: Final = 30.0


@contextmanager
def replaced(stack: Stack, *, peer: Peer, kind: Kind) -> Iterator[None]:
    """Servers, and then the file of featurewatch's processes, have those of another authority."""
    certificates = stack.certificates
    assert certificates is not None
    certificates.replace_at_servers(peer, kind)
    try:
        yield
    finally:
        certificates.replace_file(peer, kind)


@contextmanager
def web_config_malformed(stack: Stack) -> Iterator[None]:
    """The worker's web configuration is malformed for a while; then a token is revoked."""
    port = stack.worker.port
    config, tokens = stack.directory / "web.yaml", stack.directory / "tokens"
    if _status(port, FIRST_TOKEN) != 200:
        stack.notes.append("the first token was refused")
    config.write_text(_MALFORMED)
    write_private(tokens, _SECOND_TOKEN)
    yield
    if "stay as they were" not in stack.worker.log.read_text():
        stack.notes.append("nothing was logged about the web configuration")
    if _status(port, FIRST_TOKEN) != 200:
        stack.notes.append("a configuration that cannot be read changed something")
    config.write_text(WEB_CONFIG)
    deadline = time.monotonic() + _NOTICED_S
    while time.monotonic() < deadline and _status(port, _SECOND_TOKEN) != 200:
        time.sleep(0.2)
    if _status(port, FIRST_TOKEN) != 401:
        stack.notes.append("a revoked token still opens the worker's metrics")
    write_private(tokens, FIRST_TOKEN)
    while time.monotonic() < deadline and _status(port, FIRST_TOKEN) != 200:
        time.sleep(0.2)


def _status(port: int, token: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status
    finally:
        connection.close()


def _row(peer: Peer, kind: Kind, about: str) -> Fault:
    return Fault(
        f"certificates-{peer}-{kind}",
        f"{about} of another authority, and the file on disk is replaced 10 s later",
        partial(replaced, peer=peer, kind=kind),
        hold_s=10,
        limit_s=60,
        tls=True,
        watch=by_tls,
        may_fire=STALLED,
        # Faust does not end while it cannot reach the bus: then the process does.
        may_end=peer == "bus",
    )


ROWS: Final = (
    _row("bus", "authority", "the bus shows a certificate"),
    _row("bus", "client", "the bus wants client certificates"),
    _row("quorum", "authority", "the quorum shows certificates"),
    _row("quorum", "client", "the quorum wants client certificates"),
    Fault(
        "web-config-malformed",
        "the worker's web configuration is malformed for 15 s, then its token is replaced",
        web_config_malformed,
        hold_s=15,
        environment={
            "FEATUREWATCH_WEB__CONFIG_FILE": "{directory}/web.yaml",
            "FEATUREWATCH_WEB__TOKEN_FILE": "{directory}/tokens",
        },
    ),
)
