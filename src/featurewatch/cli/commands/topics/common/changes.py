"""Sends a creation and prints its result; and what every change prints as a document."""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from featurewatch.admin.topics.client import TopicAdmin
from featurewatch.admin.topics.values import ChangedTopic, TopicSpec, check_changes, text_of_id
from featurewatch.cli.command_line import Exit
from featurewatch.cli.errors import ExitCode
from featurewatch.cli.kafka_tools.errors import lacking
from featurewatch.cli.kafka_tools.target import AdminTarget
from featurewatch.cli.kafka_tools.topics import COLLISION_WARNING, has_collision_chars
from featurewatch.cli.output.terminal import print_error, print_json_text, print_line
from featurewatch.kafka.errors import error_name

_EXISTS: Final = 36
_INVALID_CONFIG: Final = 40


async def create_topic(
    target: AdminTarget,
    spec: TopicSpec,
    *,
    check: Callable[[], None],
    if_not_exists: bool,
    dry_run: bool,
) -> None:
    """Creates a topic; ``check`` raises what the tool refuses itself.

    The tool checks settings, warns, checks counts, and sends. Settings are checked by the cluster
    here, so a warning is printed with the result.
    """
    warns = has_collision_chars(spec.name) and not target.as_json
    try:
        check()
        async with target.connect(TopicAdmin, changes=True) as admin:
            results = await admin.create([spec], validate_only=dry_run)
        warns = warns and results[0].error != _INVALID_CONFIG
    finally:
        if warns:
            print_line(COLLISION_WARNING)
    if if_not_exists:
        results = tuple(result for result in results if result.error != _EXISTS)
    print_results(target, results, dry_run=dry_run)
    for result in results:
        verb = "can be created" if dry_run else None
        if not target.as_json:
            print_line(
                f"Topic {result.topic} {verb}." if verb else f"Created topic {result.topic}."
            )


def print_results(
    target: AdminTarget, results: Iterable[ChangedTopic], *, dry_run: bool = False
) -> None:
    """With ``--json``, one document; otherwise raises the first refusal, as the tool prints it.

    Raises:
        KafkaApiError: A change was refused, and no document is asked for.
        OutcomeUnknownError: The cluster gave up waiting for one.
        Exit: The document has a refusal.
    """
    results = tuple(results)
    if not target.as_json:
        check_changes(results)
        return
    refused = [result for result in results if result.error]
    print_json_text(
        json.dumps(
            {
                "status": "FAILED" if refused else "OK",
                "dry_run": dry_run,
                "results": list(map(_document, results)),
            },
            ensure_ascii=False,
        )
    )
    for right in dict.fromkeys(result.right for result in refused if result.right):
        print_error(lacking(right))
    if any(result.is_unknown for result in refused):
        raise Exit(ExitCode.UNKNOWN)
    if refused:
        raise Exit(ExitCode.FAILED)


def _document(result: ChangedTopic) -> dict[str, Any]:
    return {
        "topic": result.topic,
        "topic_id": None if result.topic_id is None else text_of_id(result.topic_id),
        "partitions": result.partitions,
        "replication_factor": result.replication_factor,
        "error": result.error or None,
        "error_name": error_name(result.error) if result.error else None,
        "message": result.text,
    }
