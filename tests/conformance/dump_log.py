"""Kafka's own reading of a metadata log: ``kafka-dump-log --cluster-metadata-decoder``."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from featurewatch.stack.java.jars import Cache, parse_release, tool_command
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.records.decoder import Record, RecordDecoder
from featurewatch.streams.kraft.records.selection import ALL_RECORDS, REDACTED_RECORD_TYPES

_LINE = re.compile(
    r"^\| offset: (?P<offset>\d+) .*? headerKeys: \[\]"
    r"(?: payload: | (?P<control>\w+):? )(?P<json>\{.*\})$"
)
_CONTROL_TYPE = re.compile(r"^\| offset: (?P<offset>\d+) .* controlType: (?P<type>\w+)\(\d+\)$")
"""How tools before 4.0 print a control record: its type alone."""

_CONTROLS = {
    "LeaderChange": "LEADER_CHANGE",
    "SnapshotHeader": "SNAPSHOT_HEADER",
    "SnapshotFooter": "SNAPSHOT_FOOTER",
    "KRaftVersion": "KRAFT_VERSION",
    "KRaftVoters": "KRAFT_VOTERS",
}


def kafkas(file: Path, release: str, cache: Cache) -> list[Record]:
    """The records in a log segment or snapshot as the release's own tool prints them."""
    package = "kafka.tools" if parse_release(release) < (4, 0, 0) else "org.apache.kafka.tools"
    command = tool_command(
        release,
        f"{package}.DumpLogSegments",
        *("--cluster-metadata-decoder", "--files", str(file)),
        cache=cache,
    )
    run = subprocess.run(
        command,
        check=True,
        capture_output=True,
        timeout=120,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    return list(_printed(run.stdout.decode()))


def _printed(text: str) -> Iterator[Record]:
    for line in text.split("\n"):
        if not line.startswith("| offset"):
            continue
        if control := _CONTROL_TYPE.match(line):
            yield {"offset": int(control["offset"]), "type": control["type"]}
            continue
        match = _LINE.match(line)
        assert match is not None, f"a line of another form: {line}"
        offset, content = int(match["offset"]), json.loads(match["json"])
        if match["control"]:
            version = content["version"]
            kind = _CONTROLS[match["control"]]
            yield {"offset": offset, "type": kind, "version": version, "data": content}
        else:
            yield {"offset": offset, **content}


def ours(file: Path) -> list[Record]:
    """The same records as this project's decoder reads them."""
    scan = scan_batches(file.read_bytes())
    assert not scan.error
    decoder = RecordDecoder(ALL_RECORDS)
    return [record for batch in scan.batches for record in decoder.decode(batch).records]


def differences(kafka: list[Record], mine: list[Record]) -> list[tuple[Any, Any]]:
    """Pairs that are not equal; of types that carry secrets the shown fields are compared."""
    assert len(kafka) == len(mine)
    pairs = []
    for theirs, our in zip(kafka, mine, strict=True):
        if theirs["type"] in REDACTED_RECORD_TYPES:
            shown = {name: theirs["data"][name] for name in REDACTED_RECORD_TYPES[theirs["type"]]}
            theirs = {**theirs, "data": shown}
        if "data" not in theirs:
            our = {name: our[name] for name in theirs}
        if theirs != our:
            pairs.append((theirs, our))
    return pairs
