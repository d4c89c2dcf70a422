"""This version reads what each version before it left: rows, messages and learned files."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from featurewatch.kafka.releases import package_files
from featurewatch.kafka.releases.learned import read_learned
from featurewatch.monitor.rows import states_of_rows
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.codec.events import decode
from featurewatch.streams.codec.outputs import TOPICS
from featurewatch.streams.topics import INPUTS
from tests.formats import DIRECTORY, LAKE, OLDER_LAKE, VERSION, view, write
from tests.simulation.records import CLUSTER
from tests.streams.encoded import DECODERS

VERSIONS = sorted(path.name for path in DIRECTORY.iterdir())
each_version = pytest.mark.parametrize("version", VERSIONS)


def content(version: str, name: str) -> Any:
    """The JSON of a file, or of each line of one."""
    text = (DIRECTORY / version / name).read_text()
    return [json.loads(line) for line in text.splitlines()] if "jsonl" in name else json.loads(text)


def as_bytes(value: Any) -> bytes | None:
    """The value of a message or row."""
    return None if value is None else json.dumps(value).encode()


@each_version
def test_rows_of_the_changelog(version: str) -> None:
    """They are restored to what is known of the cluster; a worker that starts loses nothing."""
    rows = {key: as_bytes(value) or b"" for key, value in content(version, "rows.json").items()}
    state = states_of_rows(rows.items())[CLUSTER]
    assert view(state) == content(version, "expected.json")


@each_version
def test_messages_of_the_input_topics(version: str) -> None:
    """A resync, or a pipeline that begins with them, comes to the same state."""
    topics = {topic.short_name: topic for topic in INPUTS}
    state = MonitorState.of(CLUSTER)
    for line in content(version, "inputs.jsonl"):
        event = decode(topics[line["topic"]], as_bytes(line["value"]))
        state = step(state, event).state  # type: ignore[arg-type]  # none is a dead letter
    assert view(state) == content(version, "expected.json")


@each_version
def test_messages_of_the_output_topics(version: str) -> None:
    """Readers of topics, such as the page, and a worker that lost its rows, read them."""
    decoders = {TOPICS[output].short_name: decoder for output, decoder in DECODERS.items()}
    lines = content(version, "outputs.jsonl")
    for line in lines:
        assert decoders[line["topic"]](as_bytes(line["value"])).cluster == CLUSTER
    assert {line["topic"] for line in lines} >= {"alerts", "feature-changes", "epochs"}


@each_version
def test_learned_files(version: str) -> None:
    """What was learned once stays known."""
    directory = DIRECTORY / version / "learned"
    assert [file.release for file in read_learned(directory, package_files())] == ["9.1"]


def test_the_current_version_has_its_formats(tmp_path: Path) -> None:
    """A release adds its own; they are written by `tests.formats`."""
    assert VERSION in VERSIONS
    write(tmp_path / "formats")
    names = {LAKE, *(path.name for path in (tmp_path / "formats").iterdir())}
    assert names == {path.name for path in (DIRECTORY / VERSION).iterdir()} - {OLDER_LAKE}
    shutil.rmtree(tmp_path / "formats")
