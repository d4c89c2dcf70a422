"""Registering the schemas: the API of Confluent's registry."""

import http.server
import shutil
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from featurewatch.cli.app import app
from featurewatch.integrations.schema_registry import Registry, RegistryError
from featurewatch.streams.schemas import schema_of
from featurewatch.streams.topics import ALL
from tests.processes import free_port
from tests.waiting import eventually

SUBJECTS = [f"featurewatch.{topic.short_name}-value" for topic in ALL]


@contextmanager
def answering(status: int, content: bytes) -> Iterator[tuple[str, list[tuple[str, str, bytes]]]]:
    """A server that answers everything so; the URL, and the requests (path, login, body)."""
    requests: list[tuple[str, str, bytes]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            requests.append((self.path, self.headers.get("Authorization", ""), body))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/base/", requests
    finally:
        server.shutdown()
        server.server_close()


def test_each_schema_is_registered_under_the_name_of_its_topic(tmp_path: Path) -> None:
    """With the login of a file; the ids are printed."""
    (tmp_path / "login").write_text("user:secret\n")
    with answering(200, b'{"id": 7}') as (url, requests):
        result = CliRunner().invoke(
            app, ["schemas", "--register", url, "--credentials", str(tmp_path / "login")]
        )
    assert result.output.splitlines() == [f"{subject}: id 7" for subject in SUBJECTS]
    assert [path for path, _, _ in requests] == [
        f"/base/subjects/{subject}/versions" for subject in SUBJECTS
    ]
    assert {login for _, login, _ in requests} == {"Basic dXNlcjpzZWNyZXQ="}
    for topic, (_, _, body) in zip(ALL, requests, strict=True):
        content = orjson.loads(body)
        assert content["schemaType"] == "JSON"
        assert orjson.loads(content["schema"]) == schema_of(topic)


@pytest.mark.parametrize(
    ("status", "content", "text"),
    [
        (409, b'{"message": "incompatible"}', r"\(409\): incompatible .*compatibility .* NONE"),
        (401, b"<html>", r"refused featurewatch.metadata-log-value \(401\): <html>"),
        (200, b"{}", r"\(200\): \{\}"),
        (200, b'{"id": []}', r"\(200\)"),
        (500, b"x" * 200_000, r"\(500\): x+"),
    ],
)
def test_what_a_registry_refuses_is_named(status: int, content: bytes, text: str) -> None:
    """With the subject, the status and its own reason, as far as it is of use."""
    with answering(status, content) as (url, _), pytest.raises(RegistryError, match=text) as raised:
        Registry(url).register("featurewatch")
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("url", ["registry:8081", "ftp://registry", "http://", "http://u:p@host"])
def test_a_wrong_url_is_named(url: str) -> None:
    """A login in it would be in lists of processes."""
    with pytest.raises(RegistryError, match="the URL of a schema registry is like https://"):
        Registry(url).register("featurewatch")


def test_a_registry_that_does_not_answer_is_named(closed_port: int) -> None:
    """With its address, and exit code 1."""
    url = f"http://127.0.0.1:{closed_port}"
    result = CliRunner().invoke(app, ["schemas", "--register", url])
    assert result.exit_code == 1
    assert f"the schema registry at {url} does not answer: Connection refused" in result.output


def test_the_schemas_are_written(tmp_path: Path) -> None:
    """One file a topic, complete, and the AsyncAPI description."""
    result = CliRunner().invoke(app, ["schemas", "--out", str(tmp_path)])
    assert result.exit_code == 0
    assert {file.name for file in tmp_path.iterdir()} == {
        "asyncapi.json",
        *(f"{topic.short_name}.json" for topic in ALL),
    }
    for topic in ALL:
        written = orjson.loads((tmp_path / f"{topic.short_name}.json").read_bytes())
        assert written == schema_of(topic)


@pytest.mark.nightly
@pytest.mark.network
def test_a_real_registry_takes_the_schemas(tmp_path: Path) -> None:
    """Apicurio 2.6, which has Confluent's API; a second time nothing new is registered."""
    if shutil.which("mvn") is None or shutil.which("java") is None:
        pytest.skip("mvn or java is not here")
    artifact = "io.apicurio:apicurio-registry-app:2.6.13.Final:tar.gz:all"
    copy = [
        "mvn",
        "-q",
        "dependency:copy",
        f"-Dartifact={artifact}",
        f"-DoutputDirectory={tmp_path}",
    ]
    subprocess.run(copy, check=True, timeout=300)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    port = free_port()
    command = ["java", "-Xmx400m", f"-Dquarkus.http.port={port}", "-jar"]
    command.append(str(next(tmp_path.glob("*-runner.jar"))))
    registry = Registry(f"http://127.0.0.1:{port}/apis/ccompat/v7")
    ids: list[dict[str, int]] = []

    def registered() -> bool:
        try:
            ids.append(registry.register("featurewatch"))
        except RegistryError:
            time.sleep(0.5)
            return False
        return True

    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
        try:
            assert eventually(registered), (tmp_path / "log").read_text()[-2000:]
            assert [*ids[0]] == SUBJECTS
            assert len({*ids[0].values()}) == len(SUBJECTS)
            assert registry.register("featurewatch") == ids[0]
        finally:
            server.kill()
            server.wait()
