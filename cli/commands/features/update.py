"""``featurewatch features update``: the one command that changes levels in KIP-584's drafts."""

from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from featurewatch.admin.metadata import FeatureDialect
from featurewatch.admin.updates import FeatureUpdate
from featurewatch.cli.commands.features.common.drafts import update_by_draft
from featurewatch.cli.commands.features.common.options import Yes, with_target
from featurewatch.cli.commands.features.common.target import ClusterTarget
from featurewatch.cli.errors import UsageError
from featurewatch.streams.types import FeatureLevel, FeatureName, UpgradeType

Repeated = list[str] | None


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(update)


@with_target
def update(
    target: ClusterTarget,
    feature_upgrade: Annotated[
        Repeated, typer.Option("--feature-upgrade", help="Early draft: name:level. Repeatable.")
    ] = None,
    feature_force_downgrade: Annotated[
        Repeated,
        typer.Option("--feature-force-downgrade", help="Early draft: name:level. Repeatable."),
    ] = None,
    features: Annotated[
        str | None, typer.Option("--features", help="Early draft, struck out: name:level,…")
    ] = None,
    force_downgrade: Annotated[
        bool, typer.Option("--force-downgrade", help="Of all in --features.")
    ] = False,
    upgrade: Annotated[
        str | None, typer.Option("--upgrade", help="Later draft: name:level,…")
    ] = None,
    allow_downgrade: Annotated[
        str | None, typer.Option("--allow-downgrade", help="Later draft: name:level,…")
    ] = None,
    yes: Yes = False,
) -> None:
    """Raise and lower levels as the drafts of KIP-584 have it (reference cluster)."""
    early = bool(feature_upgrade or feature_force_downgrade or features or force_downgrade)
    late = bool(upgrade or allow_downgrade)
    if target.dialect is FeatureDialect.RELEASED:
        raise UsageError(
            "update is the drafts' command: give --dialect early or late, or use upgrade and "
            "downgrade"
        )
    if early and target.dialect is FeatureDialect.LATE:
        raise UsageError(
            "these are the early draft's flags: --upgrade and --allow-downgrade are late"
        )
    if late and target.dialect is FeatureDialect.EARLY:
        raise UsageError(
            "these are the later draft's flags: --feature-upgrade and --feature-force-downgrade "
            "are early"
        )
    both = UpgradeType.SAFE_DOWNGRADE if force_downgrade else UpgradeType.UPGRADE
    updates = [
        *_updates(feature_upgrade or (), UpgradeType.UPGRADE),
        *_updates(_split(features), both),
        *_updates(feature_force_downgrade or (), UpgradeType.SAFE_DOWNGRADE),
        *_updates(_split(upgrade), UpgradeType.UPGRADE),
        *_updates(_split(allow_downgrade), UpgradeType.SAFE_DOWNGRADE),
    ]
    names = [one.feature for one in updates]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{twice} is named more than once")
    update_by_draft(target, updates, yes=yes)


def _split(text: str | None) -> list[str]:
    return [part for part in (text or "").split(",") if part.strip()]


def _updates(texts: Iterable[str], kind: UpgradeType) -> Iterator[FeatureUpdate]:
    for text in texts:
        name, colon, level = text.strip().rpartition(":")
        if not colon or not name or not level.lstrip("-").isdecimal():
            raise UsageError(f"{text!r} is no level: write name:level")
        if not -(2**63) <= int(level) < 2**63:
            raise UsageError(f"{text!r}: {level} is no 64-bit number")
        yield FeatureUpdate(FeatureName(name), FeatureLevel(int(level)), kind)
