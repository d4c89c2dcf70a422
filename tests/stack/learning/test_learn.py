"""What is learned from the jars of a real release is what the package has of it."""

import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from featurewatch.cli.commands.releases.check import compare
from featurewatch.controller.kraft.releases import releases
from featurewatch.kafka.releases import package_files, record_files, reread
from featurewatch.kafka.releases.compose import text
from featurewatch.stack.errors import ArtifactError, JavaError
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.learning import programs
from featurewatch.stack.learning.central import released_kafka
from featurewatch.stack.learning.installed import InstalledKafka, installed_kafka
from featurewatch.stack.learning.learn import Learned, learn
from featurewatch.streams.kraft.records.schema import record_table
from tests.learned_releases import Hide, hiding, libs_of
from tests.stack.served_files import Files, served

__all__ = ["served"]

pytestmark = pytest.mark.stack


@pytest.fixture
def hide(tmp_path: Path) -> Iterator[Hide]:
    """Leaves releases out of the package."""
    yield from hiding(tmp_path)


@pytest.fixture
def newest(stack_cache: Cache, tmp_path: Path) -> InstalledKafka:
    """The jars of the newest release of the package."""
    kafka = package_files()[-1].content["kafka"]
    return installed_kafka(libs_of(stack_cache, kafka, tmp_path / "libs"))


def learned(kafka: InstalledKafka) -> Learned:
    """What is learned beside the releases that are known."""
    return learn(kafka, record_files(), "/opt/kafka/libs", "2026-11-25T12:00:00Z")


def store(directory: Path, release: str, found: Learned) -> None:
    """Writes a learned file, and reads the tables again."""
    directory.mkdir(exist_ok=True)
    (directory / f"{release}.json").write_text(text(found.content))
    reread()


def test_the_tables_are_those_of_the_package(hide: Hide, newest: InstalledKafka) -> None:
    """Levels, flags, ranges, defaults, dependencies and records, with the digests of the jars."""
    known, records = releases()[newest.minor], record_table()
    sources = package_files()[-1].content["sources"]
    directory = hide(newest.minor)
    assert newest.minor not in releases()
    found = learned(newest)
    assert found.no_levels == ""
    assert found.content["sources"] == sources
    assert found.content["learned"]["left_out"] == []
    store(directory, newest.minor, found)
    assert releases()[newest.minor] == known
    assert record_table() == records


def test_without_java_records_are_learned(
    hide: Hide, newest: InstalledKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Levels are not, and the reason is said."""
    records = record_table()
    directory = hide(newest.minor)

    def missing(*_: object, **__: object) -> list[str]:
        raise JavaError("no Java runtime found: install it")

    monkeypatch.setattr(programs, "java_command", missing)
    found = learned(newest)
    assert found.no_levels == "no Java runtime found: install it"
    store(directory, newest.minor, found)
    assert newest.minor not in releases()
    assert record_table() == records


def test_decisions_are_those_of_the_classes(hide: Hide, newest: InstalledKafka) -> None:
    """By the rules of the release before; the outcome has counts."""
    store(hide(newest.minor), newest.minor, learned(newest))
    outcome = compare(newest, 100)
    assert (outcome["cases"], outcome["mismatches"], outcome["rules_of"]) == (100, 0, "4.3")
    assert outcome["answers"]["accepted"] > 10


def test_other_decisions_are_reported(hide: Hide, newest: InstalledKafka) -> None:
    """Kafka 4.2 words a refusal in another way than 4.1, whose rules are the newest here."""
    store(hide("4.2"), newest.minor, learned(newest))
    outcome = compare(newest, 100)
    assert outcome["rules_of"] == "4.1"
    assert 0 < outcome["mismatches"] == len(outcome["different"])
    first = outcome["different"][0]
    assert "Kafka {" in first and "model {" in first and "\n" not in first
    assert first.startswith(outcome["first_mismatch"][:40])


def test_classes_that_differ_are_not_compared(
    hide: Hide, stack_cache: Cache, tmp_path: Path
) -> None:
    """A release whose classes cannot be asked has no verdict."""
    older = installed_kafka(libs_of(stack_cache, "4.3.0", tmp_path / "older"))
    store(hide("4.3"), "4.3", learned(older))
    outcome = compare(older, 10)
    assert list(outcome) == ["impossible"]
    assert "the controller classes of Kafka 4.3.0 cannot be asked" in outcome["impossible"]
    assert "NoClassDefFoundError" in outcome["impossible"]


def test_a_record_that_cannot_be_decoded_is_left_out(
    hide: Hide, newest: InstalledKafka, tmp_path: Path
) -> None:
    """The others are learned; a known type keeps the layout that it had."""
    directory = hide(newest.minor)
    jar = newest.jars["kafka-metadata"]
    changed = tmp_path / "changed" / jar.name
    changed.parent.mkdir()
    with zipfile.ZipFile(jar) as source, zipfile.ZipFile(changed, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith("/TopicRecord.json"):
                content = content.replace(b'"uuid"', b'"uint32"')
            target.writestr(name, content)
    kafka = InstalledKafka(newest.release, {**newest.jars, "kafka-metadata": changed}, ())
    before = record_table().records[2]
    found = learned(kafka)
    (line,) = found.content["learned"]["left_out"]
    assert line.startswith("TOPIC_RECORD: fields are not those of version 0 before")
    store(directory, newest.minor, found)
    assert record_table().records[2] == before


def test_a_release_is_fetched_and_pinned(
    stack_cache: Cache, served: tuple[str, Files], tmp_path: Path
) -> None:
    """Jars that are not locked are taken as they are, and must be the same the next time."""
    url, files = served
    cache = Cache(tmp_path / "cache")
    logging = "org/slf4j/slf4j-api/1.7.36/slf4j-api-1.7.36.jar"
    (cache.repository / logging).parent.mkdir(parents=True)
    shutil.copy(stack_cache.repository / logging, cache.repository / logging)
    with pytest.raises(ArtifactError, match=r"Maven Central has no kafka-clients-9\.1\.0\.jar"):
        released_kafka("9.1.0", cache, {}, remotes=[url])
    for name in ("kafka-clients", "kafka-metadata", "kafka-server-common"):
        files[f"/org/apache/kafka/{name}/9.1.0/{name}-9.1.0.jar"] = name.encode()
    kafka = released_kafka("9.1.0", cache, {}, remotes=[url])
    pinned = kafka.digests()
    assert kafka.read_class_path[-1] == cache.repository / logging
    released_kafka("9.1.0", cache, pinned, remotes=["http://127.0.0.1:1"])  # fetches nothing
    kafka.jars["kafka-metadata"].write_bytes(b"another")
    with pytest.raises(ArtifactError, match=r"kafka-metadata-9\.1\.0\.jar has the SHA-256 .* when"):
        released_kafka("9.1.0", cache, pinned, remotes=[url])


@pytest.mark.parametrize("release", ["", "4.5", "4.5.0-rc1", "../4.5.0", "latest"])
def test_an_invalid_release_is_not_fetched(tmp_path: Path, release: str) -> None:
    """Nothing of it becomes part of an address."""
    with pytest.raises(ArtifactError, match="is not a release of Kafka"):
        released_kafka(release, Cache(tmp_path), {})


def test_the_file_is_bounded_json(hide: Hide, newest: InstalledKafka) -> None:
    """What is written is what is checked when it is read."""
    hide(newest.minor)
    found = learned(newest)
    assert json.loads(text(found.content)) == json.loads(json.dumps(found.content))
