"""The commands of KIP-584's drafts: confirm numbered lists, send, print the document."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from featurewatch.admin.features.client import FeatureAdmin
from featurewatch.admin.features.metadata import FeatureDialect, FeatureMetadata
from featurewatch.admin.features.updates import FeatureUpdate, UpdateResult
from featurewatch.cli.command_line import Exit
from featurewatch.cli.commands.features.common.apply import wait_until_applied
from featurewatch.cli.commands.features.common.documents import document, print_document
from featurewatch.cli.commands.features.common.target import ClusterTarget
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.confirmation import confirm
from featurewatch.cli.output.terminal import print_error
from featurewatch.streams.types import FeatureLevel, FeatureName, UpgradeType

GARBAGE: Final = (
    "deletion is for garbage collection: features that were finalized by accident, or that are "
    "retired and in nobody's use"
)


def update_by_draft(target: ClusterTarget, updates: Sequence[FeatureUpdate], *, yes: bool) -> None:
    """Raises and lowers levels; the early draft confirms both, the later only lowering."""
    result, metadata = target.run(_update(target, target.admin(), updates, yes=yes), changes=True)
    _report(target, result, metadata)


def delete_by_draft(
    target: ClusterTarget, names: Sequence[str], *, dry_run: bool, yes: bool
) -> None:
    """Removes features: DELETE_FEATURES in the early draft, a level below 1 in the later."""
    if dry_run:
        raise UsageError("the drafts of KIP-584 have no dry run")
    if not names:
        raise UsageError("name what to delete: --features a,b")
    print_error(GARBAGE)
    features = [FeatureName(name) for name in names]
    result, metadata = target.run(_delete(target, target.admin(), features, yes=yes), changes=True)
    _report(target, result, metadata)


def update_lines(
    metadata: FeatureMetadata, updates: Iterable[FeatureUpdate], heading: str
) -> Iterator[str]:
    """The numbered list of changes."""
    yield heading
    for number, update in enumerate(updates, start=1):
        level = metadata.finalized.get(update.feature)
        existing = "none" if level is None else f"v{level}"
        yield f"{number}. {update.feature} from {existing} (existing) to v{update.level} (new)"
    yield ""


async def _update(
    target: ClusterTarget, admin: FeatureAdmin, updates: Sequence[FeatureUpdate], *, yes: bool
) -> tuple[UpdateResult, FeatureMetadata]:
    async with admin:
        metadata = await admin.describe(controller=True)
        raised = [update for update in updates if update.kind is UpgradeType.UPGRADE]
        lowered = [update for update in updates if update.kind is not UpgradeType.UPGRADE]
        if raised and target.dialect is FeatureDialect.EARLY:
            heading = "Please confirm before finalizing the upgrade of the following features:"
            _agree(update_lines(metadata, raised, heading), "[Y/n]? ", yes=yes)
        if lowered:
            heading = "Please confirm before downgrading the following features:"
            _agree(update_lines(metadata, lowered, heading), "[Y/n]? ", yes=yes)
        result = await admin.update(updates)
        return result, await wait_until_applied(admin, () if result.refused else updates)


async def _delete(
    target: ClusterTarget, admin: FeatureAdmin, names: Sequence[FeatureName], *, yes: bool
) -> tuple[UpdateResult, FeatureMetadata]:
    early = target.dialect is FeatureDialect.EARLY
    kind = "features" if early else "finalized features"
    lines = [f"Please confirm deletion of the following {kind}:"]
    lines += [f"{number}. {name}" for number, name in enumerate(names, start=1)]
    async with admin:
        _agree([*lines, ""], "[Y/n] ", yes=yes)
        gone = [FeatureUpdate(name, FeatureLevel(0), UpgradeType.SAFE_DOWNGRADE) for name in names]
        result = await (admin.delete(names) if early else admin.update(gone))
        return result, await wait_until_applied(admin, () if result.refused else gone)


def _agree(lines: Iterable[str], question: str, *, yes: bool) -> None:
    """Confirms even without a terminal: a draft's command without a reply sends nothing."""
    if not yes:
        confirm(lines, question)


def _report(target: ClusterTarget, result: UpdateResult, metadata: FeatureMetadata) -> None:
    if result.refused:
        # One response for the whole request: its text is every feature's.
        print_error(result.refused[0].text or "the controller refused")
        raise Exit(ExitCode.FAILED)
    print_document(document(metadata, target.dialect), indent=None if target.as_json else 4)
