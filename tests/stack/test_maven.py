"""Jars of Maven Central: stored when they are as locked, from a server of the test's own."""

import hashlib
from pathlib import Path

import pytest

from featurewatch.stack.java.maven import MavenCentral, UnlockedJarError
from featurewatch.stack.java.progress import on_stderr
from tests.stack.served_files import Files, served

__all__ = ["served"]

JAR = b"the bytes of a jar" * 100
PATH = "g/a/1/a-1.jar"


def fetch(url: str, repository: Path) -> Path:
    """The one jar of these tests, fetched."""
    with on_stderr() as reporter:
        central = MavenCentral(repository, reporter, [url])
        central.fetch(PATH, hashlib.sha256(JAR).hexdigest())
    return repository / PATH


def test_a_whole_file_is_stored(served: tuple[str, Files], tmp_path: Path) -> None:
    """With the digest of the lock."""
    url, files = served
    files[f"/{PATH}"] = JAR
    assert fetch(url, tmp_path).read_bytes() == JAR


@pytest.mark.parametrize("content", [JAR[:60], JAR.replace(b"bytes", b"bites", 1), b""])
def test_a_damaged_file_is_not(served: tuple[str, Files], tmp_path: Path, content: bytes) -> None:
    """A file with another digest leaves nothing in the repository, whatever checksum is published
    beside it."""
    url, files = served
    files[f"/{PATH}"] = content
    files[f"/{PATH}.sha1"] = hashlib.sha1(content, usedforsecurity=False).hexdigest().encode()
    with pytest.raises(UnlockedJarError, match=r"a-1\.jar has the SHA-256 .* locked"):
        fetch(url, tmp_path)
    assert list(tmp_path.rglob("*.jar")) == []


def test_a_file_that_is_nowhere(served: tuple[str, Files], tmp_path: Path) -> None:
    """It is named."""
    with pytest.raises(RuntimeError, match=r"there is no g/a/1/a-1\.jar"):
        fetch(served[0], tmp_path)
