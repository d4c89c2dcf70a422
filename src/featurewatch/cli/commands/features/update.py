"""``featurewatch features update``: the one command that changes levels in KIP-584's drafts."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

from featurewatch.admin.features.metadata import FeatureDialect
from featurewatch.cli.command_line import Option, command
from featurewatch.cli.commands.features.common.options import FeaturesTarget, with_target
from featurewatch.cli.config.cluster_options import Yes
from featurewatch.cli.errors import UsageError
from featurewatch.streams.types import FeatureLevel, FeatureName

if TYPE_CHECKING:
    from featurewatch.admin.features.updates import FeatureUpdate

Repeated = list[str] | None


@command()
@with_target
async def update(
    target: FeaturesTarget,
    feature_upgrade: Annotated[
        Repeated,
        Option(
            "--feature-upgrade",
            metavar="NAME:LEVEL",
            help="Raise a feature (early draft). Repeatable.",
        ),
    ] = None,
    feature_force_downgrade: Annotated[
        Repeated,
        Option(
            "--feature-force-downgrade",
            metavar="NAME:LEVEL",
            help="Lower a feature (early draft). Repeatable.",
        ),
    ] = None,
    features: Annotated[
        str | None,
        Option(
            "--features",
            metavar="NAME:LEVEL,...",
            help="Raise features, or lower with --force-downgrade (early draft, struck out).",
        ),
    ] = None,
    force_downgrade: Annotated[
        bool, Option("--force-downgrade", help="Lower all features in --features (early draft).")
    ] = False,
    upgrade: Annotated[
        str | None,
        Option("--upgrade", metavar="NAME:LEVEL,...", help="Raise features (later draft)."),
    ] = None,
    allow_downgrade: Annotated[
        str | None,
        Option("--allow-downgrade", metavar="NAME:LEVEL,...", help="Lower features (later draft)."),
    ] = None,
    yes: Yes = False,
) -> None:
    """Raise and lower levels as the drafts of KIP-584 do it (reference cluster)."""
    # Here, so that help needs no client.
    from featurewatch.cli.commands.features.common.drafts import update_by_draft

    early = bool(feature_upgrade or feature_force_downgrade or features or force_downgrade)
    late = bool(upgrade or allow_downgrade)
    if not target.dialect.is_draft:
        raise UsageError(
            "update is the drafts' command: pass --dialect early or late, or use upgrade and "
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
    updates = [
        *_updates(feature_upgrade or (), allow_downgrade=False),
        *_updates(_split(features), allow_downgrade=force_downgrade),
        *_updates(feature_force_downgrade or (), allow_downgrade=True),
        *_updates(_split(upgrade), allow_downgrade=False),
        *_updates(_split(allow_downgrade), allow_downgrade=True),
    ]
    names = [item.feature for item in updates]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{twice} is named more than once")
    await update_by_draft(target, updates, yes=yes)


def _split(text: str | None) -> list[str]:
    return [part for part in (text or "").split(",") if part.strip()]


def _updates(texts: Iterable[str], *, allow_downgrade: bool) -> "Iterator[FeatureUpdate]":
    from featurewatch.admin.features.updates import FeatureUpdate

    for text in texts:
        name, colon, level = text.strip().rpartition(":")
        if not colon or not name or not level.lstrip("-").isdecimal():
            raise UsageError(f"{text!r} is not a level: write name:level")
        if not -(2**63) <= int(level) < 2**63:
            raise UsageError(f"{text!r}: {level} is not a 64-bit number")
        yield FeatureUpdate.of_boolean(FeatureName(name), FeatureLevel(int(level)), allow_downgrade)
