"""Which Kafka is in a directory: one release of Apache Kafka, or one line that says why not."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from featurewatch.stack.errors import ArtifactError
from featurewatch.stack.learning import archive
from featurewatch.stack.learning.installed import READ, installed_kafka
from featurewatch.stack.learning.learn import read_schemas

VERSION = "kafka/kafka-version.properties"


def write_jar(file: Path, texts: Mapping[str, str] | None = None) -> Path:
    """A jar with these files."""
    with zipfile.ZipFile(file, "w") as jar:
        for name, text in (texts or {"META-INF/MANIFEST.MF": ""}).items():
            jar.writestr(name, text)
    return file


def libs(directory: Path, version: str = "4.5.0", stated: str | None = None) -> Path:
    """The jars that are read, of a version, with the version that kafka-clients states."""
    for name in READ:
        write_jar(directory / f"{name}-{version}.jar")
    texts = {VERSION: f"commitId=00\nversion={stated or version}\n"}
    write_jar(directory / f"kafka-clients-{version}.jar", texts)
    return directory


def refusal(directory: Path) -> str:
    """Why a directory is refused; one line."""
    with pytest.raises(ArtifactError) as raised:
        installed_kafka(directory)
    text = str(raised.value)
    assert "\n" not in text
    return text


def test_the_release_is_what_kafka_states(tmp_path: Path) -> None:
    """Beside Kafka's jars there are others, and jars with sources."""
    write_jar(libs(tmp_path) / "jackson-core-2.16.2.jar")
    write_jar(tmp_path / "kafka-clients-4.4.0-sources.jar")
    kafka = installed_kafka(tmp_path)
    assert (kafka.release, kafka.minor) == ("4.5.0", "4.5")
    assert len(kafka.class_path) == 5
    assert set(kafka.digests()) == {f"{name}-4.5.0.jar" for name in READ}


def test_there_is_no_directory(tmp_path: Path) -> None:
    """The path is named."""
    text = refusal(tmp_path / "missing")
    assert text.startswith(f"{tmp_path}/missing cannot be read (No such file or directory)")


def test_a_directory_without_kafka(tmp_path: Path) -> None:
    """The first jar that is missing is named."""
    assert "has no kafka-clients-RELEASE.jar: pass the libs directory" in refusal(tmp_path)
    libs(tmp_path)
    (tmp_path / "kafka-metadata-4.5.0.jar").unlink()
    assert "has no kafka-metadata-RELEASE.jar" in refusal(tmp_path)


def test_two_releases(tmp_path: Path) -> None:
    """An upgrade that left the old jars there: tables of two releases are never mixed."""
    libs(libs(tmp_path), "4.4.1")
    text = refusal(tmp_path)
    assert "has two releases, kafka-clients-4.4.1.jar and kafka-clients-4.5.0.jar" in text


def test_a_jar_of_another_release(tmp_path: Path) -> None:
    """The same, where one jar was replaced."""
    (libs(tmp_path) / "kafka-metadata-4.5.0.jar").rename(tmp_path / "kafka-metadata-4.4.1.jar")
    text = refusal(tmp_path)
    assert "has two releases, kafka-metadata-4.4.1.jar and kafka-clients 4.5.0" in text


def test_a_renamed_jar(tmp_path: Path) -> None:
    """The name says one release, kafka-clients states another."""
    assert "two releases" in refusal(libs(tmp_path, stated="4.4.0"))


@pytest.mark.parametrize("version", ["7.9.0-ccs", "4.5.0.redhat-00001", "4.5.0-SNAPSHOT", "4.5"])
def test_another_product(tmp_path: Path, version: str) -> None:
    """A distribution with its own versions may have its own levels."""
    text = refusal(libs(tmp_path, version))
    assert f"states the version '{version}', which is not a release of Apache Kafka" in text


def test_another_product_under_a_name_of_kafka(tmp_path: Path) -> None:
    """The version that is stated counts; a jar without one is not Kafka's."""
    assert "which is not a release of Apache Kafka" in refusal(libs(tmp_path, stated="4.5.0-ccs"))
    write_jar(tmp_path / "kafka-clients-4.5.0.jar")
    assert "is not Kafka's: it has no version in" in refusal(tmp_path)


@pytest.mark.parametrize("content", [b"", b"no jar at all", b"PK\x03\x04" + bytes(100)])
def test_an_invalid_jar(tmp_path: Path, content: bytes) -> None:
    """An interrupted copy, for example."""
    (libs(tmp_path) / "kafka-clients-4.5.0.jar").write_bytes(content)
    assert "kafka-clients-4.5.0.jar is not a jar" in refusal(tmp_path)


def test_a_jar_is_read_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that unpacks to more than a schema has is refused before it is unpacked."""
    bomb = write_jar(tmp_path / "a.jar", {"common/metadata/A.json": " " * 2_000_000})
    with pytest.raises(ArtifactError, match="larger than 1 MiB"):
        read_schemas(bomb, "common/metadata/")
    monkeypatch.setattr(archive, "MAX_ENTRIES", 0)
    with pytest.raises(ArtifactError, match="more than 0 files"):
        read_schemas(bomb, "common/metadata/")
    monkeypatch.setattr(archive, "MAX_JAR_BYTES", 10)
    with pytest.raises(ArtifactError, match="larger than"):
        read_schemas(bomb, "common/metadata/")


@pytest.mark.parametrize("text", ["", "[]", "{}", "{" * 100_000, '{"name": 1'])
def test_an_invalid_schema(tmp_path: Path, text: str) -> None:
    """The file in the jar is named."""
    jar = write_jar(tmp_path / "a.jar", {"common/metadata/A.json": text})
    with pytest.raises(ArtifactError, match=r"a\.jar: common/metadata/A\.json is not the schema"):
        read_schemas(jar, "common/metadata/")


def test_a_jar_without_schemas(tmp_path: Path) -> None:
    """It is not Kafka's."""
    with pytest.raises(ArtifactError, match="is not Kafka's: it has no schemas"):
        read_schemas(write_jar(tmp_path / "a.jar"), "common/metadata/")
