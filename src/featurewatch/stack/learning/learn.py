"""Learns the tables of an installed Kafka: the content of its file, from its jars."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from featurewatch.kafka.messages.table import request_names
from featurewatch.kafka.releases import ReleaseFile
from featurewatch.kafka.releases.compose import compose as compose_whole
from featurewatch.kafka.releases.compose import compose_records
from featurewatch.kafka.releases.merge import Row, records, requests
from featurewatch.kafka.releases.schemas import (
    COMMENT,
    CONTROL_TYPES,
    MESSAGES,
    METADATA,
    Schema,
    SchemaError,
    record,
    upper_snake_case,
)
from featurewatch.kafka.releases.shape import ShapeError
from featurewatch.kafka.releases.validate import check_content, undecodable
from featurewatch.stack.errors import ArtifactError, JavaError
from featurewatch.stack.learning.archive import Archive
from featurewatch.stack.learning.installed import CLIENTS, InstalledKafka
from featurewatch.stack.learning.installed import METADATA as METADATA_JAR
from featurewatch.stack.learning.programs import feature_table

_CONTROLS: Final = {message: key for key, (_, message) in CONTROL_TYPES.items()}


@dataclass(frozen=True, slots=True)
class Learned:
    """The content of a release's file; ``no_levels`` is why it has none, empty if it has."""

    content: dict[str, Any]
    no_levels: str


def learn(kafka: InstalledKafka, known: Sequence[ReleaseFile], place: str, at: str) -> Learned:
    """The tables of an installed Kafka; ``place`` is where its jars come from, ``at`` the time.

    Raises:
        ArtifactError: if a jar is not Kafka's, or contradicts the releases that are known.
    """
    left_out: list[str] = []
    metadata = _decodable(
        read_schemas(kafka.jars[METADATA_JAR], METADATA), records(known), left_out
    )
    messages = read_schemas(kafka.jars[CLIENTS], MESSAGES)
    controls = {name: messages[name] for name in _CONTROLS if name in messages}
    messages = {name: of for name, of in messages.items() if name not in controls} | _decodable(
        controls, records(known, "controls"), left_out
    )
    sources, apis = kafka.digests(), sorted(request_names().values())
    try:
        table, no_levels = feature_table(kafka), ""
    except JavaError as error:
        table, no_levels = None, str(error)
    try:
        # Without those before: the file is complete, whatever releases are known one day.
        if table is None:
            content = compose_records(kafka.release, metadata, messages, sources, (), apis)
        else:
            content = compose_whole(kafka.release, table, metadata, messages, sources, (), apis)
        removed = requests(known).keys() - content["requests"].keys()
        content["requests"] |= dict.fromkeys(sorted(removed), "none")
        content["learned"] = {"from": place, "at": at, "left_out": left_out}
        check_content(json.loads(json.dumps(content)), known)
    except (ShapeError, SchemaError) as error:
        raise ArtifactError(f"Kafka {kafka.release} in {place} is not learned: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArtifactError(
            f"Kafka {kafka.release} in {place} is not learned: its tables have an unknown form "
            f"({type(error).__name__}: {error})"
        ) from None
    return Learned(content, no_levels)


def read_schemas(jar: Path, folder: str) -> dict[str, Schema]:
    """The message schemas in ``folder`` of one of Kafka's jars, by name.

    Raises:
        ArtifactError: if the jar cannot be read, or has no schemas there.
    """
    by_name: dict[str, Schema] = {}
    with Archive(jar) as archive:
        for entry, text in archive.texts(folder, ".json"):
            try:
                schema = json.loads(COMMENT.sub("", text))
                by_name[str(schema["name"])] = schema
            except (ValueError, KeyError, TypeError, RecursionError):
                raise ArtifactError(f"{jar}: {entry} is not the schema of a message") from None
    if not by_name:
        raise ArtifactError(f"{jar} is not Kafka's: it has no schemas in {folder}")
    return by_name


def _decodable(
    by_name: Mapping[str, Schema], known: Mapping[int, Row], left_out: list[str]
) -> dict[str, Schema]:
    """The schemas that this version can decode; a line is added for each of the others."""
    kept: dict[str, Schema] = {}
    for name, schema in by_name.items():
        try:
            key = _CONTROLS[name] if name in _CONTROLS else int(schema["apiKey"])
            reason = undecodable(record(schema), known.get(key))
        except (SchemaError, KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"its schema has an unknown form ({error})"
        if reason:
            left_out.append(f"{upper_snake_case(name)}: {reason}"[:300])
        else:
            kept[name] = schema
    return kept
