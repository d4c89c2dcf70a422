"""Learns a release: reads its jars, writes its file, and compares its decisions on demand."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from featurewatch.cli.command_line import Exit
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.terminal import print_json_text, print_line, print_note
from featurewatch.kafka.releases import (
    ReleaseFile,
    package_files,
    record_files,
    release_number,
    reread,
)
from featurewatch.kafka.releases.compose import text
from featurewatch.kafka.releases.directory import releases_directory
from featurewatch.kafka.releases.merge import METADATA_VERSION
from featurewatch.stack.java.jars import Cache, default_cache
from featurewatch.stack.learning.central import released_kafka
from featurewatch.stack.learning.installed import InstalledKafka, installed_kafka
from featurewatch.stack.learning.learn import Learned
from featurewatch.stack.learning.learn import learn as learn_tables

_CENTRAL: Final = "Maven Central"


@dataclass(frozen=True, slots=True)
class LearnRequest:
    """Where the jars are, a directory or a release to fetch, and how many cases are compared."""

    libs: Path | None
    release: str | None
    cases: int


def run(request: LearnRequest, *, as_json: bool) -> None:
    """Learns what is requested.

    Raises:
        UsageError: not exactly one of directory and release is given, or the file cannot be
            written.
        ArtifactError: the jars are not those of a Kafka that can be learned.
        Exit: decisions differ (3), or could not be compared (4).
    """
    if (request.libs is None) == (request.release is None):
        raise UsageError("pass --libs DIRECTORY, or --release RELEASE to fetch the jars")
    kafka = _installed(request)
    place = str(request.libs.absolute()) if request.libs else _CENTRAL
    own = next((file for file in package_files() if file.release == kafka.minor), None)
    document: dict[str, Any] = {"release": kafka.minor, "kafka": kafka.release, "file": None}
    if own is not None:
        _say(
            as_json,
            f"This version of featurewatch has its own tables of Kafka {kafka.minor}, which are "
            "used: nothing is learned.",
        )
    else:
        learned = learn_tables(kafka, _before(kafka.minor), place, _now())
        path = _write(kafka.minor, learned.content)
        document |= {"file": str(path), **_summary(learned)}
        for line in _lines(kafka, path, learned):
            _say(as_json, line)
    outcome = _compare(kafka, request.cases, own, as_json=as_json) if request.cases else None
    if outcome is not None:
        document["check"] = outcome
        if own is None:
            _write(kafka.minor, _with_check(learned.content, outcome))
    if as_json:
        print_json_text(json.dumps(document))
    if outcome is not None and outcome.get("mismatches", 1):
        raise Exit(ExitCode.UNKNOWN if "impossible" in outcome else ExitCode.NO)


def _installed(request: LearnRequest) -> InstalledKafka:
    if request.libs is not None:
        return installed_kafka(request.libs.expanduser())
    release = request.release or ""
    print_note(f"Fetching the jars of Kafka {release} from {_CENTRAL}.")
    minor = release.rpartition(".")[0]
    learned = next((file for file in record_files() if file.release == minor), None)
    pinned: Mapping[str, str] = learned.content["sources"] if learned else {}
    cache = Cache(default_cache())
    return released_kafka(release, cache, pinned, whole=request.cases > 0)


def _before(release: str) -> list[ReleaseFile]:
    """The known releases without this one, since its own old file must not count."""
    number = release_number(release)
    known = [file for file in record_files() if file.has_levels]
    return [file for file in known if not file.is_learned or file.number < number]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _write(release: str, content: Mapping[str, Any]) -> Path:
    """Replaces the file of a release as a whole, for processes that start meanwhile."""
    path = releases_directory() / f"{release}.json"
    unfinished = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(text(content), encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written ({error.strerror or error}): set releases.directory to a "
            "directory that can"
        ) from None
    return path


def _summary(learned: Learned) -> dict[str, Any]:
    content = learned.content
    return {
        "supported": content.get("supported"),
        "records": len(content["records"]),
        "left_out": content["learned"]["left_out"],
        "no_levels": learned.no_levels or None,
        "sources": content["sources"],
    }


def _lines(kafka: InstalledKafka, path: Path, learned: Learned) -> list[str]:
    content = learned.content
    lines = [f"Kafka {kafka.release}: {len(content['records'])} types of records."]
    if learned.no_levels:
        lines.append(
            f"Its levels are not learned, since its classes could not be run: {learned.no_levels}. "
            "Then learn it again."
        )
    else:
        low, high = content["supported"][METADATA_VERSION]
        name = next(level["name"] for level in content["levels"] if level["level"] == high)
        lines.append(f"Its nodes support {METADATA_VERSION} {low}-{high} ({name}).")
    lines += [f"Not learned, and still unknown: {line}" for line in content["learned"]["left_out"]]
    lines.append(f"Written to {path}; running processes read it when they start again.")
    return lines


def _compare(
    kafka: InstalledKafka, cases: int, own: ReleaseFile | None, *, as_json: bool
) -> dict[str, Any]:
    """The outcome of a comparison, after it is printed."""
    reread()  # the file that was just written
    # Here, since these modules read the tables as they are imported.
    from featurewatch.cli.commands.releases.check import compare

    outcome = compare(kafka, cases)
    mismatches = outcome.pop("different", [])
    if "impossible" in outcome:
        _say(as_json, f"Decisions were not compared: {outcome['impossible']}")
    else:
        _say(
            as_json,
            f"Decisions: {outcome['cases']} cases compared with the classes of Kafka "
            f"{kafka.release}, {outcome['mismatches']} mismatches"
            + ("." if own else f", by the rules of Kafka {outcome['rules_of']}."),
        )
    for line in mismatches:
        _say(as_json, line)
    return outcome | ({"different": mismatches} if as_json else {})


def _with_check(content: Mapping[str, Any], outcome: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("cases", "mismatches", "first_mismatch", "impossible")
    check = {key: outcome[key] for key in kept if key in outcome}
    return {**content, "learned": {**content["learned"], "check": check}}


def _say(as_json: bool, line: str) -> None:
    """Prints for people on stdout, unless a JSON document goes there."""
    (print_note if as_json else print_line)(line)
