"""The work of ``elect``: checks of the options, the request, and the leaders after it."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from featurewatch.admin.api_errors import CLUSTER_NO_RIGHT, exception_text
from featurewatch.admin.elections.client import (
    ElectionAdmin,
    Elections,
    ElectionType,
    is_needless,
)
from featurewatch.admin.elections.status import ElectionStatus
from featurewatch.admin.errors import KafkaApiError, UnreachableError
from featurewatch.cli.commands.elect.options import ElectionOptions
from featurewatch.cli.commands.elect.partition_file import read_partitions
from featurewatch.cli.commands.elect.preview import effect_lines
from featurewatch.cli.config.cluster_options import Compat
from featurewatch.cli.kafka_tools.errors import KafkaToolError, lacking
from featurewatch.cli.kafka_tools.java import in_set_order
from featurewatch.cli.kafka_tools.target import AdminTarget
from featurewatch.cli.output.confirmation import confirm, must_confirm
from featurewatch.cli.output.terminal import print_error, print_line
from featurewatch.controller.partitions.assignment import TopicPartition

_SEEN_S: Final = 10.0
_DEPRECATED: Final = (
    "Option --admin.config has been deprecated and will be removed in a future version. "
    "Use --command-config instead."
)


async def run_election(kind: ElectionType, options: ElectionOptions) -> None:
    """Elects, prints the tool's output, and reads the new leaders; raises `KafkaToolError`."""
    target = options.target
    _check(options)
    if target.is_kip_4 and kind is ElectionType.PREFERRED:
        await _by_draft(options)
        return
    partitions = _partitions(options)
    if options.admin_config is not None and not _is_old(options):
        target.line(_DEPRECATED)
    async with target.connect(ElectionAdmin, changes=True) as admin:
        if options.dry_run or (kind is ElectionType.UNCLEAN and must_confirm(options.yes)):
            lines = list(await _preview(admin, kind, partitions))
            if options.dry_run:
                target.lines(lines)
                target.document(lambda: {"preview": lines})
                return
            confirm([*lines, "messages that only absent replicas have are lost"])
        results = await _elect(admin, kind, partitions)
        await _report(admin, kind, results, target)


async def _by_draft(options: ElectionOptions) -> None:
    from featurewatch.cli.commands.elect import kip_4
    from featurewatch.cli.kafka_tools.json_file import read_json_file
    from featurewatch.cli.kafka_tools.kip_4 import check_place

    check_place(
        *("topic", "partition", "path_to_json_file", "all_topic_partitions"),
        *("admin_config", "dry_run", "yes"),
    )
    text = None
    if options.file is not None:
        text = read_json_file(options.file)
    elif options.topic is not None and options.partition is not None:
        text = kip_4.partitions_of(options.topic, options.partition)
    await kip_4.elect_preferred(options.target, text, dry_run=options.dry_run)


def _is_old(options: ElectionOptions) -> bool:
    """Whether the tool of 3.9 is followed."""
    return options.target.compat == Compat.V3_9


def _check(options: ElectionOptions) -> None:
    """Raises `KafkaToolError` for what the tool refuses (``validate``)."""
    if not options.target.servers:
        raise KafkaToolError("Missing required option(s): bootstrap-server")
    if not _is_old(options) and options.has_two_configs:
        raise KafkaToolError(
            'Option "[admin.config]" can\'t be used with option "[command-config]"'
        )
    given = (options.topic is not None, options.all_partitions, options.file is not None)
    if sum(given) != 1:
        raise KafkaToolError(
            "One and only one of the following options is required: topic, all-topic-partitions, "
            "path-to-json-file"
        )
    if options.topic is not None and options.partition is None:
        raise KafkaToolError("Missing required option(s): partition")
    if options.topic is None and options.partition is not None:
        raise KafkaToolError("Option partition is only allowed if topic is used")


def _partitions(options: ElectionOptions) -> list[TopicPartition] | None:
    if options.file is not None:
        return read_partitions(options.file)
    if options.topic is not None and options.partition is not None:
        return [TopicPartition(options.topic, options.partition)]
    return None


async def _elect(
    admin: ElectionAdmin, kind: ElectionType, partitions: list[TopicPartition] | None
) -> Elections:
    try:
        return await admin.elect(kind, partitions)
    except KafkaApiError as refused:
        if refused.code == CLUSTER_NO_RIGHT:
            text = "Not authorized to perform leader election"
            print_line(text)
            raise KafkaToolError(text, right=refused.right) from None
        error = exception_text(refused.code, str(refused))
        raise KafkaToolError(f"java.util.concurrent.ExecutionException: {error}") from None


async def _report(
    admin: ElectionAdmin, kind: ElectionType, results: Elections, target: AdminTarget
) -> None:
    order = in_set_order(in_set_order(results))
    elected = [one for one in order if results[one] is None]
    needless = [one for one in order if is_needless(results[one])]
    failed = {one: error for one in order if (error := results[one]) and one not in needless}
    if elected:
        named = ", ".join(map(str, elected))
        target.line(f"Successfully completed leader election ({kind.name}) for partitions {named}")
    if needless:
        named = ", ".join(map(str, needless))
        target.line(f"Valid replica already elected for partitions {named}")
    for partition, error in failed.items():
        target.line(
            f"Error completing leader election ({kind.name}) for partition: {partition}: "
            f"{exception_text(error.code, error.text)}"
        )
    if kind is ElectionType.PREFERRED and elected:
        await _wait(admin, elected)
    if failed:
        summary = f"{len(failed)} replica(s) could not be elected"
        if not target.as_json:
            raise KafkaToolError(summary)
    target.document(lambda: _document(kind, results))
    if failed:
        raise KafkaToolError("")


async def _wait(admin: ElectionAdmin, elected: Iterable[TopicPartition]) -> None:
    """Returns when the preferred replicas lead; where they do not, that is a line on stderr."""
    try:
        statuses = await admin.wait(elected, max_wait_s=_SEEN_S)
    except (UnreachableError, KafkaApiError) as error:
        print_error(f"the current leaders are not known: {error}")
        if right := getattr(error, "right", ""):
            print_error(lacking(right))
        return
    for partition, status in statuses.items():
        if status is not ElectionStatus.COMPLETED:
            print_error(f"{partition}: another replica than the preferred one was elected")


async def _preview(
    admin: ElectionAdmin, kind: ElectionType, partitions: list[TopicPartition] | None
) -> Iterator[str]:
    names = None if partitions is None else [partition.topic for partition in partitions]
    found = await admin.topics(names)
    for error in found.errors.values():
        if error.right:
            raise KafkaToolError(exception_text(error.code, error.text), right=error.right)
    return effect_lines(kind, partitions, found.partitions)


def _document(kind: ElectionType, results: Elections) -> dict[str, Any]:
    return {
        "election_type": kind.name,
        "partitions": [
            {
                "topic": partition.topic,
                "partition": partition.number,
                "status": "elected"
                if error is None
                else ("not needed" if is_needless(error) else "failed"),
                "error": None if error is None else error.text,
            }
            for partition, error in sorted(results.items())
        ],
    }
