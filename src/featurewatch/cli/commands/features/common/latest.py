"""Raises all features to the highest level that all nodes support."""

import sys

from featurewatch.admin.features.client import FeatureAdmin
from featurewatch.admin.features.latest import highest_common, highest_supported
from featurewatch.admin.features.metadata import FeatureDialect, NodeDescription
from featurewatch.admin.features.updates import UpdateResult
from featurewatch.cli.command_line import Exit
from featurewatch.cli.commands.features.common.apply import report, show_and_ask, wait_until_applied
from featurewatch.cli.commands.features.common.documents import document, print_document
from featurewatch.cli.commands.features.common.drafts import update_by_draft
from featurewatch.cli.commands.features.common.options import FeaturesTarget
from featurewatch.cli.commands.features.common.updates import UPGRADE
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.confirmation import must_confirm
from featurewatch.cli.output.terminal import print_error, print_line
from featurewatch.streams.types import Role


async def enable_latest(target: FeaturesTarget, *, dry_run: bool, yes: bool) -> None:
    """Raises every feature to the highest level of all nodes, or of the node in the later draft."""
    if target.dialect is FeatureDialect.EARLY:
        raise UsageError("the early draft has no enable-latest")
    if target.dialect is FeatureDialect.LATE:
        if dry_run:
            raise UsageError("the drafts of KIP-584 have no dry run")
        async with target.connect(FeatureAdmin, dialect=target.dialect) as admin:
            metadata = await admin.describe(controller=True)
        await update_by_draft(target, highest_supported(metadata), yes=yes)
        return
    async with target.connect(FeatureAdmin, changes=not dry_run, dialect=target.dialect) as admin:
        answers = await admin.describe_all()
        _check(answers)
        chosen = highest_common(await admin.describe(controller=True), answers)
        for warning in chosen.remarks:
            print_error(warning)
        result = UpdateResult(())
        if chosen.updates:
            if not dry_run and must_confirm(yes):
                await show_and_ask(admin, chosen.updates)
            result = await admin.update(chosen.updates, dry_run=dry_run)
        metadata_after = None
        if target.as_json:
            changed = bool(chosen.updates) and not dry_run and not result.refused
            metadata_after = await wait_until_applied(admin, chosen.updates if changed else ())
    if chosen.updates:
        report(target, UPGRADE, chosen.updates, result, metadata_after, dry_run=dry_run)
    elif metadata_after is not None:
        print_document(document(metadata_after, target.dialect, []))
    else:
        print_line("Every feature is at the highest level that all nodes support.")


def _check(answers: tuple[NodeDescription, ...]) -> None:
    """Ends the command where a node's support is unknown: it may be the lowest."""
    silent = [answer for answer in answers if answer.metadata is None]
    for answer in silent:
        print_error(f"the features of {answer.role} {answer.node_id} are unknown: {answer.error}")
    if silent:
        print_error(
            "nothing was sent, nothing is changed: start the nodes that do not answer, or "
            "unregister them"
        )
        sys.stdout.flush()
        raise Exit(ExitCode.UNKNOWN)
    if not any(answer.role is Role.CONTROLLER for answer in answers):
        print_error("the controllers were not asked: the cluster does not say where they listen")
