"""Learned files: used as a whole beside those of the package, or ignored with one line."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from featurewatch.controller.kraft.release_rules import rules_of
from featurewatch.controller.kraft.releases import releases
from featurewatch.controller.software import notes_of_learned
from featurewatch.kafka.releases import package_files, record_files, release_files, reread
from featurewatch.kafka.releases.learned import MAX_BYTES
from featurewatch.streams.kraft.records.schema import record_table
from featurewatch.tables.image.nodes import intern_capabilities
from tests.learned_releases import Hide, hiding, made_up

Content = dict[str, Any]
Damage = Callable[[Content], object]


@pytest.fixture
def hide(tmp_path: Path) -> Iterator[Hide]:
    """Leaves releases out of the package."""
    yield from hiding(tmp_path)


@pytest.fixture
def directory(hide: Hide) -> Path:
    """The directory for learned files, with the package as it is."""
    learned = hide("99.0")
    learned.mkdir()
    return learned


def lines_about(directory: Path, content: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What is logged when tables are read with this file of 9.1."""
    (directory / "9.1.json").write_text(content)
    caplog.clear()
    reread()
    record_files()
    return [record.getMessage() for record in caplog.records]


def test_a_learned_release_is_one_of_the_releases(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its levels, records and ranges are known, and decisions are those of the newest before it."""
    newest = package_files()[-1]
    assert lines_about(directory, json.dumps(made_up()), caplog) == []
    release = releases()["9.1"]
    assert release.levels[-1].name == "9.1-IV0"
    assert record_table().records[90].type == "MOON_RECORD"
    assert (rules_of("9.1").source, rules_of("9.1").compared) == (newest.release, False)
    note = "by tables learned from /opt/kafka/libs (Kafka 9.1.0)"
    assert notes_of_learned([intern_capabilities(release.supported)]) == (note,)
    assert notes_of_learned([intern_capabilities(releases()["4.3"].supported)]) == ()


def test_records_without_levels_are_learned(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They are known to the decoder; the release itself stays unknown."""
    of_levels = ("minimum", "bootstrap", "supported", "unstable", "floors", "levels", "gates")
    content = {
        key: value for key, value in made_up().items() if key not in (*of_levels, "features")
    }
    assert lines_about(directory, json.dumps(content), caplog) == []
    assert "9.1" not in releases()
    assert record_table().records[90].type == "MOON_RECORD"


def _change(*path: str | int, to: Any) -> Damage:
    def damage(content: Content) -> None:
        *places, last = path
        inside: Any = content
        for place in places:
            inside = inside[place]
        inside[last] = to

    return damage


def _register_broker(content: Content) -> Content:
    """The record of the package, into the file."""
    (row,) = [
        row for file in package_files() for row in file.content["records"] if row["key"] == 0
    ][-1:]
    row = json.loads(json.dumps(row))
    content["records"].append(row)
    return dict(row)


def _renamed_field(content: Content) -> None:
    _register_broker(content)
    content["records"][-1]["fields"][0]["name"] = "other"


def _fewer_versions(content: Content) -> None:
    _register_broker(content)
    content["records"][-1]["versions"] = "0"


def _nested(depth: int) -> list[Content]:
    fields: list[Content] = [{"name": "end", "type": "int8"}]
    for _ in range(depth):
        fields = [{"name": "inner", "type": "struct", "fields": fields}]
    return fields


_CODE = 'x": __import__("os").system("true"), "y'

DAMAGES: dict[str, tuple[Damage, str]] = {
    "no sources": (lambda content: content.pop("sources"), "sources is missing"),
    "another value": (_change("more", to=1), "more is not a value of this file"),
    "rules": (_change("rules", to={}), "rules is not a value of this file"),
    "some levels": (lambda content: content.pop("floors"), "floors is missing"),
    "another release": (_change("release", to="9.2"), "kafka is 9.1.0, and release is 9.2"),
    "release is a number": (_change("release", to=9.1), "release must be a text"),
    "huge level": (_change("levels", 0, "level", to=1 << 40), "levels[0].level must be a whole"),
    "true as a level": (_change("levels", 0, "level", to=True), "levels[0].level must be a whole"),
    "min above max": (
        _change("supported", "group.version", to=[2, 1]),
        "supported.group.version has the range 2-1, which is empty",
    ),
    "beyond unstable": (
        _change("supported", "group.version", to=[0, 9]),
        "supported.group.version is not within unstable.group.version",
    ),
    "no metadata.version": (
        lambda content: content["supported"].pop("metadata.version"),
        "supported has no metadata.version",
    ),
    "below the release before": (
        _change("supported", "metadata.version", to=[7, 30]),
        "supported.metadata.version ends at 30, and in Kafka 4.4, which is older, at 33",
    ),
    "floor above its level": (_change("floors", "8", to=9), "floors.8 is above 8"),
    "a level with another name": (
        _change("levels", 0, "name", to="3.0-IV9"),
        "levels says that 31 is 3.0-IV9, changing metadata: False; it is 4.4-IV0",
    ),
    "a level that loses nothing": (
        _change("levels", 1, "changes_metadata", to=False),
        "levels says that 32 is 4.4-IV1, changing metadata: False",
    ),
    "a level is missing": (
        lambda content: content["levels"].pop(),
        "levels has no 34, which is supported",
    ),
    "a key of another record": (
        _change("records", -1, "key", to=0),
        "records: 0 is REGISTER_BROKER_RECORD, and not MOON_RECORD",
    ),
    "a record with another key": (
        _change("records", -1, "type", to="TOPIC_RECORD"),
        "records: TOPIC_RECORD has the key 2, and not 90",
    ),
    "a key twice": (
        lambda content: content["records"].append(content["records"][-1]),
        "records has a key or a type twice",
    ),
    "code as a name": (
        _change("records", -1, "fields", 0, "name", to=_CODE),
        "records[1].fields[0].name is",
    ),
    "code as a default": (
        _change("records", -1, "fields", 1, "default", to=_CODE),
        "records[1].fields[1].default must be null, true, false, a number, a short text or []",
    ),
    "a terminal's escape": (
        _change("learned", "from", to="\x1b[2J"),
        "learned.from must be a text of at most 1000 printable characters",
    ),
    "an unknown type": (
        _change("records", -1, "fields", 0, "type", to="uint128"),
        "records: MOON_RECORD.id has the type uint128, which is not decoded",
    ),
    "a field renamed": (
        _renamed_field,
        "records: REGISTER_BROKER_RECORD.fields are not those of version 4 before",
    ),
    "fewer versions": (
        _fewer_versions,
        "records: REGISTER_BROKER_RECORD.versions end at 0, and at 4 before",
    ),
    "nested too deep": (
        _change("records", -1, "fields", to=_nested(6)),
        "records: MOON_RECORD.inner.inner.inner.inner.inner.inner is nested too deep",
    ),
    "nested without end": (_change("records", -1, "fields", to=_nested(300)), "nested too deep"),
    "too many fields": (
        _change("records", -1, "fields", to=[{"name": "x", "type": "int8"}] * 101),
        "records[1].fields must be a list of at most 100 values",
    ),
    "an invalid digest": (
        _change("sources", "kafka-clients-4.4.0.jar", to="00"),
        "sources.kafka-clients-4.4.0.jar is '00', which does not match",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_wrong_file_is_one_line_and_changes_nothing(
    directory: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    """Whatever is wrong is named; no release, record or range of the file is used."""
    before = record_files()
    content = made_up()
    change, reason = DAMAGES[damage]
    change(content)
    (line,) = lines_about(directory, json.dumps(content), caplog)
    assert line.startswith(f"{directory / '9.1.json'} is ignored: ")
    assert reason in line
    assert line.isprintable()
    assert record_files() == before


TEXTS = {
    "empty": ("", "it is not JSON"),
    "truncated": (json.dumps(made_up())[:-40], "it is not JSON"),
    "a list": ("[]", "the file must be an object"),
    "too deep to parse": ("[" * 100_000, "it is nested too deep"),
    "not a text": ("\0\0", "it is not JSON"),
    "too large": (" " * (MAX_BYTES + 1), "it is larger than 1 MiB"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_file_that_is_no_document_is_one_line(
    directory: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    """It is not read further than it must be."""
    before = record_files()
    content, reason = TEXTS[text]
    (line,) = lines_about(directory, content, caplog)
    assert reason in line
    assert record_files() == before


def test_a_pipe_is_not_read(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No process waits for someone to write into it."""
    os.mkfifo(directory / "9.1.json")
    reread()
    record_files()
    assert "it is not a regular file" in caplog.text


def test_other_names_are_one_line(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A copy under another name would else be missed in silence."""
    (directory / "mine.json").write_text(json.dumps(made_up()))
    reread()
    record_files()
    assert "mine.json is ignored: its name is not a release" in caplog.text


def test_the_package_goes_first(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file of a release that the package has is ignored, and that is said."""
    own = package_files()[-1]
    (directory / f"{own.release}.json").write_text(
        json.dumps({**made_up(), "release": own.release, "kafka": own.content["kafka"]})
    )
    reread()
    assert release_files()[-1].content == own.content
    assert f"has its own tables of Kafka {own.release}; delete the file" in caplog.text


def test_one_wrong_file_does_not_spoil_another(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each file is used or ignored for itself."""
    (directory / "9.0.json").write_text("{")
    assert len(lines_about(directory, json.dumps(made_up()), caplog)) == 1
    assert "9.1" in releases()
    assert "9.0" not in releases()
