"""JSON output of the commands: the document of KIP-584's examples, and its parts."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from featurewatch.admin.features.metadata import FeatureDialect
from featurewatch.cli.output.terminal import print_json_text

if TYPE_CHECKING:
    from featurewatch.admin.features.metadata import FeatureMetadata
    from featurewatch.admin.features.updates import FeatureUpdate, UpdateResult


def document(
    metadata: "FeatureMetadata",
    dialect: FeatureDialect,
    results: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Supported ranges of a node and finalized levels, in the keys of the early or the later draft.

    Those of the later draft serve for released Kafka too. ``status`` is OK unless a result has an
    error; the epoch is null where the node has none. ``results`` are those of a change.
    """
    early = dialect is FeatureDialect.EARLY
    low, high = ("minVersion", "maxVersion") if early else ("min_version", "max_version")
    level = "version" if early else "version_level"
    failed = any(result["error"] is not None for result in results or ())
    head: dict[str, Any] = {"status": "FAILED" if failed else "OK"}
    return {
        **head,
        **({} if results is None else {"results": results}),
        "supported_features": {
            name: {low: bounds[0], high: bounds[1]}
            for name, bounds in sorted(metadata.supported.items())
        },
        "finalized_features": {
            "epoch": metadata.epoch,
            **{name: {level: value} for name, value in sorted(metadata.finalized.items())},
        },
        "host": metadata.node.host,
        "port": metadata.node.port,
    }


def described_results(
    updates: Iterable["FeatureUpdate"], result: "UpdateResult"
) -> list[dict[str, Any]]:
    """Each feature with the requested level and, if it was refused, the reason."""
    levels = {update.feature: int(update.level) for update in updates}
    return [
        {
            "feature": item.feature,
            "level": levels.get(item.feature),
            "error": None if item.accepted else item.error,
            "message": item.text,
        }
        for item in result.results
    ]


def print_document(content: dict[str, Any], *, indent: int | None = None) -> None:
    """One document on stdout: on one line, or laid out for people."""
    print_json_text(json.dumps(content, indent=indent, ensure_ascii=False))
