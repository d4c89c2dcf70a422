"""Sends a change to released Kafka and prints its result, for the commands that change."""

import sys
from collections.abc import Iterable, Sequence
from typing import Final

from featurewatch.admin.features.client import FeatureAdmin
from featurewatch.admin.features.metadata import FeatureMetadata
from featurewatch.admin.features.updates import FeatureUpdate, UpdateResult
from featurewatch.cli.command_line import Exit
from featurewatch.cli.commands.features.common.documents import (
    described_results,
    document,
    print_document,
)
from featurewatch.cli.commands.features.common.options import FeaturesTarget
from featurewatch.cli.commands.features.common.preview import preview
from featurewatch.cli.commands.features.common.updates import (
    LevelOptions,
    parse_level_updates,
    release_version_note,
)
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.kafka_tools.features import FeatureOutcome, KafkaFeaturesTool, outcome_lines
from featurewatch.cli.output.confirmation import confirm, must_confirm
from featurewatch.cli.output.terminal import print_error, print_line, print_note

_NO_RIGHT: Final = 31
"""``CLUSTER_AUTHORIZATION_FAILED``, which Kafka explains at length and not to people."""


async def change_levels(
    target: FeaturesTarget, operation: str, options: LevelOptions, *, dry_run: bool, yes: bool
) -> None:
    """Raises or lowers levels, as ``upgrade`` and ``downgrade`` do."""
    if target.dialect.is_draft:
        raise UsageError(f"the drafts of KIP-584 have no {operation}: use update")
    tool = KafkaFeaturesTool(target.compat, is_strict=target.is_strict)
    updates = parse_level_updates(tool, operation, options, target.line)
    # For people alone: what a program reads is what Kafka's tool prints.
    if sys.stderr.isatty() and (note := release_version_note(options, updates)):
        print_note(note)
    await apply_updates(target, operation, updates, dry_run=dry_run, yes=yes)


async def apply_updates(
    target: FeaturesTarget,
    operation: str,
    updates: Sequence[FeatureUpdate],
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    """Confirms, sends and prints; ends with 1 if anything was refused, as the tool does."""
    async with target.connect(FeatureAdmin, changes=not dry_run, dialect=target.dialect) as admin:
        if not dry_run and must_confirm(yes):
            await show_and_ask(admin, updates)
        result = await admin.update(updates, dry_run=dry_run)
        metadata = None
        if target.as_json:
            changed = not dry_run and not result.refused
            metadata = await admin.describe_applied(updates if changed else ())
    report(target, operation, updates, result, metadata, dry_run=dry_run)


def report(
    target: FeaturesTarget,
    operation: str,
    updates: Iterable[FeatureUpdate],
    result: UpdateResult,
    metadata: FeatureMetadata | None,
    *,
    dry_run: bool,
) -> None:
    """Prints the result of each update, as the tool does or as a document."""
    if any(item.error == _NO_RIGHT for item in result.refused):
        print_error("this login may not change features: grant it ALTER on the cluster")
    _suggest(item.feature for item in result.refused)
    if metadata is not None:
        print_document(document(metadata, target.dialect, described_results(updates, result)))
        if result.refused:
            raise Exit(ExitCode.FAILED)
        return
    levels = {update.feature: int(update.level) for update in updates}
    outcomes = (
        FeatureOutcome(item.feature, levels.get(item.feature, 0), item.text)
        for item in result.results
    )
    outcome_lines(operation, outcomes, dry_run=dry_run, say=print_line)


def _suggest(refused: Iterable[str]) -> None:
    """Prints which features of Kafka were probably meant; clusters may have custom features."""
    from featurewatch.controller.kraft.releases import intended_feature

    for name in refused:
        if close := intended_feature(name):
            print_error(f"Kafka has no feature {name}: did you mean {close}?")


async def show_and_ask(admin: FeatureAdmin, updates: Iterable[FeatureUpdate]) -> None:
    """Shows what will happen and confirms it; ends the command unless it is confirmed."""
    confirm(preview(await admin.describe(controller=True), updates))
