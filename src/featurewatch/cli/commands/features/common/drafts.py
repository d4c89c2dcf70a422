"""The commands of KIP-584's drafts: confirm numbered lists, send, print the document."""

from collections.abc import Iterable, Iterator, Sequence

from featurewatch.admin.features.client import FeatureAdmin
from featurewatch.admin.features.metadata import FeatureDialect, FeatureMetadata
from featurewatch.admin.features.updates import FeatureUpdate, UpdateResult
from featurewatch.cli.command_line import Exit
from featurewatch.cli.commands.features.common.documents import document, print_document
from featurewatch.cli.commands.features.common.options import FeaturesTarget
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.confirmation import confirm
from featurewatch.cli.output.terminal import print_error
from featurewatch.streams.types import FeatureLevel, FeatureName, UpgradeType


async def update_by_draft(
    target: FeaturesTarget, updates: Sequence[FeatureUpdate], *, yes: bool
) -> None:
    """Raises and lowers levels; the early draft confirms both, the later only lowering."""
    async with target.connect(FeatureAdmin, changes=True, dialect=target.dialect) as admin:
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
        metadata = await admin.describe_applied(() if result.refused else updates)
    _report(target, result, metadata)


async def delete_by_draft(
    target: FeaturesTarget, names: Sequence[str], *, dry_run: bool, yes: bool
) -> None:
    """Removes features: DELETE_FEATURES in the early draft, a level below 1 in the later."""
    if dry_run:
        raise UsageError("the drafts of KIP-584 have no dry run")
    if not names:
        raise UsageError("name the features to delete: --features a,b")
    warn_of_deletion()
    early = target.dialect is FeatureDialect.EARLY
    kind = "features" if early else "finalized features"
    lines = [f"Please confirm deletion of the following {kind}:"]
    lines += [f"{number}. {name}" for number, name in enumerate(names, start=1)]
    features = [FeatureName(name) for name in names]
    deleted = [
        FeatureUpdate(name, FeatureLevel(0), UpgradeType.SAFE_DOWNGRADE) for name in features
    ]
    async with target.connect(FeatureAdmin, changes=True, dialect=target.dialect) as admin:
        _agree([*lines, ""], "[Y/n] ", yes=yes)
        result = await (admin.delete(features) if early else admin.update(deleted))
        metadata = await admin.describe_applied(() if result.refused else deleted)
    _report(target, result, metadata)


def warn_of_deletion() -> None:
    """Prints the purpose of a deletion."""
    print_error(
        "deletion is for garbage collection: features that were finalized by accident, or that are "
        "retired and in nobody's use"
    )


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


def _agree(lines: Iterable[str], question: str, *, yes: bool) -> None:
    """Confirms even without a terminal: a draft's command without a reply sends nothing."""
    if not yes:
        confirm(lines, question)


def _report(target: FeaturesTarget, result: UpdateResult, metadata: FeatureMetadata) -> None:
    if result.refused:
        # One response for the whole request: its text is every feature's.
        print_error(result.refused[0].text or "the controller refused")
        raise Exit(ExitCode.FAILED)
    print_document(document(metadata, target.dialect), indent=None if target.as_json else 4)
