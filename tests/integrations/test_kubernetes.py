"""Strimzi's resources from an API server: an HTTPS server that lists them as Kubernetes does."""

import http.server
import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trustme
import yaml
from click.testing import CliRunner

from featurewatch.cli.app import app
from featurewatch.cli.commands.readiness import assess
from featurewatch.integrations.kubernetes import (
    ApiServer,
    KubernetesError,
    find_api_server,
    strimzi_documents,
)
from featurewatch.integrations.kubernetes.api_server import MAX_BYTES
from featurewatch.monitor.strimzi import kafka_of
from tests.monitor.readiness.clusters import controllers, image, led_by, nodes
from tests.monitor.strimzi_resources import kafka, pool

TOKEN = "eyJhbGciOiJSUzI1NiJ9.e30.c2ln"  # noqa: S105 - of this test
BASE = "/apis/kafka.strimzi.io/v1/namespaces/streams"


def pool_of(name: str, roles: list[str], ids: list[int]) -> dict[str, Any]:
    """A node pool whose ids are numbers, as in the JSON of an API server."""
    resource = pool(name, roles, ids)
    return {**resource, "status": {"nodeIds": ids}}


class ApiHandler(http.server.BaseHTTPRequestHandler):
    """Lists resources in pages of one, for one bearer token."""

    pages: dict[str, list[dict[str, Any]]]

    def do_GET(self) -> None:
        """Answers as the API server does."""
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._answer(401, {"kind": "Status", "code": 401})
        parts = urlsplit(self.path)
        if parts.path == "/apis/kafka.strimzi.io":
            version = {"groupVersion": "kafka.strimzi.io/v1", "version": "v1"}
            return self._answer(200, {"kind": "APIGroup", "preferredVersion": version})
        if parts.path == "/apis/large":
            return self._answer(200, {"text": "x" * MAX_BYTES})
        if parts.path == "/apis/deep":
            return self._send(200, b"[" * 200_000)
        items = self.pages.get(parts.path)
        if items is None:
            return self._answer(404, {"kind": "Status", "code": 404})
        position = int(parse_qs(parts.query).get("continue", ["0"])[0])
        metadata = {"continue": str(position + 1)} if position + 1 < len(items) else {}
        kind = "KafkaList" if parts.path.endswith("kafkas") else "KafkaNodePoolList"
        page = {"kind": kind, "metadata": metadata, "items": items[position : position + 1]}
        return self._answer(200, page)

    def _answer(self, status: int, content: Any) -> None:
        self._send(status, json.dumps(content).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Prints nothing."""


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Signs the certificate of the server."""
    return trustme.CA()


@pytest.fixture(scope="module")
def address(authority: trustme.CA) -> Iterator[str]:
    """The address of the API server."""
    resources = {
        f"{BASE}/kafkas": [kafka()],
        f"{BASE}/kafkanodepools": [
            pool_of("a", ["controller"], [1, 2, 3]),
            pool_of("b", ["broker"], [1]),
        ],
    }
    handler = type("Handler", (ApiHandler,), {"pages": resources})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def config(address: str, authority: trustme.CA) -> dict[str, Any]:
    """A kubeconfig."""
    ca = b64encode(authority.cert_pem.bytes()).decode()
    cluster = {"server": address, "certificate-authority-data": ca}
    context = {"cluster": "c", "user": "u", "namespace": "streams"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [{"name": "main", "context": context}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
    }


def saved(config: dict[str, Any], directory: Path) -> Path:
    """The kubeconfig as a file."""
    file = directory / "config"
    file.write_text(yaml.safe_dump(config))
    return file


def test_the_command_reads_the_api_server(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pages, in the version that the server prefers, and the comparison of them."""
    members = (*controllers("4.3", "4.3", "4.3"), *nodes("4.3"))
    live = led_by(image(*members, level=29), 1)
    monkeypatch.setattr(assess, "read_image", lambda *_, **__: live)
    file = saved(config, tmp_path)
    where = ("--kubeconfig", str(file), "--bootstrap-controller", "kafka-1:9093")
    result = CliRunner().invoke(app, ["cluster", "compare-strimzi", *where])
    assert result.exit_code == 3, result.output
    assert "spec.kafka.metadataVersion is 4.3-IV0, and 29 (4.2-IV1) is finalized" in result.output
    assert "node pool" not in result.output
    both = CliRunner().invoke(app, ["cluster", "compare-strimzi", "kafka.yaml", *where])
    assert "pass either FILE, or --namespace" in str(both.exception)
    config["users"][0]["user"] = {"token": "another"}
    saved(config, tmp_path)
    refused = CliRunner().invoke(app, ["cluster", "compare-strimzi", *where])
    assert refused.exit_code == 4
    assert "status 401: the login is not valid, or has expired" in refused.output
    assert "another" not in refused.output


def test_the_account_of_a_pod(address: str, authority: trustme.CA, tmp_path: Path) -> None:
    """Its token, its authority and its namespace; a kubeconfig that is named comes first."""
    for name, text in (
        ("token", TOKEN),
        ("ca.crt", authority.cert_pem.bytes().decode()),
        ("namespace", "streams"),
    ):
        (tmp_path / name).write_text(text)
    host, port = address.removeprefix("https://").split(":")
    environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    server = find_api_server(environment, account=tmp_path)
    found = kafka_of(strimzi_documents(server))
    assert [(one.name, sorted(one.node_ids)) for one in found.pools] == [
        ("a", [1, 2, 3]),
        ("b", [1]),
    ]
    assert TOKEN not in repr(server)
    named = {**environment, "KUBECONFIG": str(tmp_path / "none")}
    with pytest.raises(KubernetesError, match="none cannot be read: No such file"):
        find_api_server(named, account=tmp_path)


def test_answers_that_cannot_be_used(address: str, authority: trustme.CA) -> None:
    """Size, nesting, a namespace without the resources, an authority that nobody trusts."""
    ca = authority.cert_pem.bytes().decode()
    server = ApiServer(address, "streams", ca, TOKEN)
    for path, reason in (
        ("/apis/large", "the answer has more than 8 MiB"),
        ("/apis/deep", "the answer is not JSON"),
        ("/apis/other", "status 404: not found: check the namespace"),
    ):
        with pytest.raises(KubernetesError, match=reason):
            server.get(path)
    with pytest.raises(KubernetesError, match="its certificate is not trusted"):
        ApiServer(address, "streams", "", TOKEN).get("/apis/kafka.strimzi.io")
    with pytest.raises(KubernetesError, match="are not valid PEM"):
        ApiServer(address, "streams", "no PEM", TOKEN).get("/apis/kafka.strimzi.io")
    with pytest.raises(KubernetesError, match="does not answer: Connection refused"):
        ApiServer("https://127.0.0.1:1", "streams", ca, TOKEN).get("/apis/kafka.strimzi.io")


def _entry(section: str, kind: str, **values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda config: config[section][0][kind].update(values)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda c: c.update({"current-context": "other"}), "there is no context other"),
        (lambda c: c.pop("current-context"), "has no current-context: pass --context"),
        (lambda c: c.update(users=[]), "there is no user u"),
        (_entry("users", "user", exec={"command": "aws"}), "a login by exec is not supported"),
        (
            _entry("clusters", "cluster", **{"insecure-skip-tls-verify": True}),
            "insecure-skip-tls-verify is not supported here: save the resources with kubectl",
        ),
        (_entry("clusters", "cluster", server="http://k:80"), "is no https:// address"),
        (_entry("clusters", "cluster", server="https://k:port"), "is no https:// address"),
        (
            _entry("users", "user", token="a\nb"),  # noqa: S106 - of this test
            "the token has a character that no token has",
        ),
        (
            _entry("clusters", "cluster", **{"certificate-authority-data": "%"}),
            "certificate-authority-data is not base64 of PEM",
        ),
        (
            _entry("users", "user", token="", tokenFile="missing"),
            "missing cannot be read: No such file",
        ),
    ],
)
def test_a_kubeconfig_that_is_not_used(
    config: dict[str, Any], change: Callable[[dict[str, Any]], Any], reason: str, tmp_path: Path
) -> None:
    """In one line, with what to do."""
    change(config)
    with pytest.raises(KubernetesError) as error:
        find_api_server({}, saved(config, tmp_path))
    assert reason in str(error.value)
    assert "\n" not in str(error.value)
