"""Files of Maven Central: stored when they are whole, from a server of the test's own."""

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest

from featurewatch.deploy.java.maven import MavenCentral
from featurewatch.deploy.java.progress import on_stderr

Files = dict[str, bytes]


@pytest.fixture
def served() -> Iterator[tuple[str, Files]]:
    """The address of a server, and what it serves by path."""
    files: Files = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = files.get(self.path)
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", files
        server.shutdown()


def jar() -> bytes:
    """The smallest jar with something in it."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("A.class", b"x" * 100)
    return content.getvalue()


JAR = jar()


def download(url: str, repository: Path) -> Path:
    """Where the one artifact of these tests is stored."""
    artifact = SimpleNamespace(
        cached_path=repository / "g/a/1/a-1.jar",
        filename="a-1.jar",
        component=SimpleNamespace(path_prefix=PurePosixPath("g/a/1")),
        context=SimpleNamespace(remote_repos={"test": url}),
    )
    with on_stderr() as reporter:
        return MavenCentral(repository, reporter).download(artifact)


def test_a_whole_file_is_stored(served: tuple[str, Files], tmp_path: Path) -> None:
    """With a checksum that fits, or none."""
    url, files = served
    files["/g/a/1/a-1.jar"] = JAR
    assert download(url, tmp_path / "without").read_bytes() == JAR
    files["/g/a/1/a-1.jar.sha1"] = (
        hashlib.sha1(JAR, usedforsecurity=False).hexdigest().encode() + b"  a-1.jar\n"
    )
    assert download(url, tmp_path / "with").read_bytes() == JAR


@pytest.mark.parametrize("damage", ["checksum", "jar"])
def test_a_damaged_file_is_not(served: tuple[str, Files], tmp_path: Path, damage: str) -> None:
    """What is not what the checksum says, or no jar, leaves nothing in the repository."""
    url, files = served
    files["/g/a/1/a-1.jar"] = JAR if damage == "checksum" else JAR[:60]
    if damage == "checksum":
        files["/g/a/1/a-1.jar.sha1"] = b"0" * 40
    with pytest.raises(OSError, match=r"a-1\.jar arrived damaged"):
        download(url, tmp_path)
    assert list(tmp_path.rglob("*.jar")) == []


def test_a_file_that_is_nowhere(served: tuple[str, Files], tmp_path: Path) -> None:
    """It is named."""
    with pytest.raises(RuntimeError, match=r"there is no g/a/1/a-1\.jar"):
        download(served[0], tmp_path)
