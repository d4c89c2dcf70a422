"""Prints the releases of Kafka that are known, and what is known of one."""

from collections.abc import Iterator
from typing import Any

from featurewatch.cli.errors import UsageError
from featurewatch.cli.output.rendering import print_json
from featurewatch.cli.output.terminal import print_line
from featurewatch.controller.kraft.release_rules import rules_of
from featurewatch.controller.kraft.releases import Release, release_of
from featurewatch.kafka.releases import ReleaseFile, record_files
from featurewatch.streams.types import METADATA_VERSION


def print_releases(*, as_json: bool) -> None:
    """Prints a line, or a JSON document, for each release, oldest first."""
    for file in record_files():
        if as_json:
            print_json(_document(file))
        else:
            print_line(f"{file.release:<6}{_supported(file):<28}{_origin(file)}")


def print_release(name: str, *, as_json: bool) -> None:
    """Prints what is known of a release.

    Raises:
        UsageError: it is not known.
    """
    minor = ".".join(name.split(".")[:2])
    file = next((file for file in record_files() if file.release == minor), None)
    if file is None:
        known = record_files()
        raise UsageError(
            f"Kafka {name!r} is not known, only {known[0].release} to {known[-1].release}: learn "
            "it with featurewatch releases learn --libs DIRECTORY"
        )
    if as_json:
        print_json({**_document(file), "content": file.content})
        return
    for label, text in _lines(file):
        print_line(f"{label:<12}{text}")


def _document(file: ReleaseFile) -> dict[str, Any]:
    return {
        "release": file.release,
        "kafka": file.content["kafka"],
        "supported": file.content.get("supported"),
        "rules_of": rules_of(file.release).source if file.has_levels else None,
        "compared": file.has_levels and rules_of(file.release).compared,
        "learned": file.content.get("learned"),
        "file": f"{file.directory}/{file.release}.json",
    }


def _supported(file: ReleaseFile) -> str:
    if not file.has_levels:
        return "levels unknown"
    low, high = file.content["supported"][METADATA_VERSION]
    return f"{METADATA_VERSION} {low}-{high}"


def _origin(file: ReleaseFile) -> str:
    if not file.is_learned:
        return f"featurewatch's own tables, from Kafka {file.content['kafka']}"
    learned = file.content["learned"]
    return f"learned from {learned['from']} (Kafka {file.content['kafka']}) on {learned['at'][:10]}"


def _lines(file: ReleaseFile) -> Iterator[tuple[str, str]]:
    yield "release", file.release
    yield "tables", _origin(file)
    if file.has_levels:
        yield from _levels(release_of(file.release))
        yield "decisions", _decisions(file)
    else:
        yield "levels", "unknown: learn it again where Java 17 or newer is installed"
    yield "records", f"{len(file.content['records'])} types in its file"
    for line in file.content.get("learned", {}).get("left_out", ()):
        yield "left out", line
    for jar, digest in file.content["sources"].items():
        yield "source", f"{jar} SHA-256 {digest}"


def _levels(release: Release) -> Iterator[tuple[str, str]]:
    defaults = release.defaults(release.newest(METADATA_VERSION))
    for feature, supported in sorted(release.supported.items()):
        default = f", {defaults[feature]} on a new cluster" if feature in defaults else ""
        yield "supports", f"{feature} {supported}{default}"
    for level in release.levels:
        if level.release == release.name or level.since is None:
            changes = "changes metadata" if level.changes_metadata else "does not change metadata"
            state = "" if level.since else "; not in production"
            yield "level", f"{level.level} ({level.name}) {changes}{state}"


def _decisions(file: ReleaseFile) -> str:
    rules = rules_of(file.release)
    check = file.content.get("learned", {}).get("check")
    if rules.compared:
        return "as its own controller classes decide"
    source = f"by the rules of Kafka {rules.source}"
    if check is None:
        advice = "; featurewatch releases learn --check compares them" if file.is_learned else ""
        return f"{source}, not compared with its own classes{advice}"
    if "impossible" in check:
        return f"{source}, not compared: {check['impossible']}"
    return f"{source}: {check['cases']} cases compared, {check['mismatches']} mismatches"
