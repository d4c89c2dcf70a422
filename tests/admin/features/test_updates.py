"""Values of the admin API: the older form of an update, results, and what the latest levels are."""

from typing import Any

import pytest

from featurewatch.admin.errors import RequestError
from featurewatch.admin.features import kip_778
from featurewatch.admin.features.latest import highest_common, highest_supported
from featurewatch.admin.features.metadata import FeatureMetadata, NodeDescription
from featurewatch.admin.features.updates import (
    AllowDowngradeSemantics,
    DowngradeType,
    FeatureUpdate,
    uniform_result,
)
from featurewatch.kafka.address import Address
from featurewatch.streams.types import (
    FeatureLevel,
    FeatureName,
    NodeId,
    Role,
    SupportedRanges,
    UpgradeType,
)

NAME, LEVEL = FeatureName("f"), FeatureLevel(1)
KINDS = [kind for kind in UpgradeType if kind is not UpgradeType.UNKNOWN]


@pytest.mark.form("released")
def test_types_are_kips_and_kafkas() -> None:
    """KIP-778 counts NONE, SAFE, UNSAFE from 0, and none is the default; released Kafka counts
    UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE from 1 (M-05 as released)."""
    assert [(downgrade_type.value, downgrade_type.name) for downgrade_type in DowngradeType] == [
        (0, "NONE"),
        (1, "SAFE"),
        (2, "UNSAFE"),
    ]
    assert [downgrade_type.upgrade_type for downgrade_type in DowngradeType] == KINDS
    assert [DowngradeType.of(kind) for kind in KINDS] == [*DowngradeType]
    assert list(map(int, KINDS)) == [1, 2, 3]
    assert FeatureUpdate(NAME, LEVEL).kind is DowngradeType.NONE.upgrade_type


@pytest.mark.form("document")
def test_a_request_of_kip_778_is_real_unless_it_is_told_otherwise() -> None:
    """DryRun is false by default, and version 0 has none, so that it takes no dry run (M-30,
    M-70)."""
    update = FeatureUpdate(NAME, LEVEL)
    requests: list[Any] = [kip_778.update_request([update], version) for version in (0, 1)]
    assert not hasattr(requests[0], "dry_run")
    assert requests[1].dry_run is False
    dry: Any = kip_778.update_request([update], 1, dry_run=True)
    assert dry.dry_run is True
    with pytest.raises(RequestError, match="takes no dry run"):
        kip_778.update_request([update], 0, dry_run=True)


@pytest.mark.form("document", "released")
@pytest.mark.parametrize(
    ("allow", "reading", "kind"),
    [
        (False, AllowDowngradeSemantics.RELEASED, UpgradeType.UPGRADE),
        (True, AllowDowngradeSemantics.RELEASED, UpgradeType.SAFE_DOWNGRADE),
        (False, AllowDowngradeSemantics.WRITTEN, UpgradeType.SAFE_DOWNGRADE),
        (True, AllowDowngradeSemantics.WRITTEN, UpgradeType.SAFE_DOWNGRADE),
    ],
)
def test_the_older_form_has_a_boolean(
    allow: bool, reading: AllowDowngradeSemantics, kind: UpgradeType
) -> None:
    """As written it gives a safe downgrade for either value, as released only for true (M-28, M-28
    as released)."""
    assert FeatureUpdate.of_boolean(NAME, LEVEL, allow, reading) == FeatureUpdate(NAME, LEVEL, kind)


@pytest.mark.form("document", "released")
def test_the_older_question_is_answered() -> None:
    """``allowDowngrade()`` is true for safe downgrades alone as written, for both as released
    (M-29, M-29 as released)."""
    kinds = [FeatureUpdate(NAME, LEVEL, kind) for kind in KINDS]
    assert [update.allows_downgrade(AllowDowngradeSemantics.WRITTEN) for update in kinds] == [
        False,
        True,
        False,
    ]
    assert [update.allows_downgrade() for update in kinds] == [False, True, True]


def test_an_unknown_error_code_is_shown_as_a_number() -> None:
    """The texts of Kafka's clients where the server sends none."""
    (result,) = uniform_result([NAME], 31, None).results
    assert result.text == "Cluster authorization failed."
    (result,) = uniform_result([NAME], 999, None).results
    assert result.text == "The server answered with error 999."


def metadata(
    finalized: dict[str, int] | None = None, **supported: tuple[int, int]
) -> FeatureMetadata:
    """What a node says; a dot in a name is written as two underscores."""
    ranges = SupportedRanges(
        (FeatureName(name.replace("__", ".")), bounds) for name, bounds in supported.items()
    )
    levels = {FeatureName(name): FeatureLevel(level) for name, level in (finalized or {}).items()}
    return FeatureMetadata(ranges, levels, 1, Address("a", 1))


def descriptions(*responses: FeatureMetadata) -> list[NodeDescription]:
    """Of as many brokers."""
    return [
        NodeDescription(Role.BROKER, NodeId(number), response)
        for number, response in enumerate(responses)
    ]


def test_the_latest_level_is_the_lowest_of_the_highest() -> None:
    """Not that of the node that answers, but what all support; what is there already is left out,
    and nothing is lowered."""
    newer = metadata(metadata__version=(7, 30), group__version=(0, 1), a=(0, 3))
    older = metadata(metadata__version=(1, 25), group__version=(0, 1), a=(0, 2))
    described = metadata({"metadata.version": 21, "group.version": 1, "a": 3})
    chosen = highest_common(described, descriptions(newer, older))
    assert chosen.updates == (FeatureUpdate(FeatureName("metadata.version"), FeatureLevel(25)),)
    assert chosen.remarks == ("a is at 3, and some node supports no more than 2",)


def test_a_feature_that_a_node_lacks_has_no_latest_level() -> None:
    """It counts as 0 to 0; ranges that have nothing in common, too."""
    first = metadata(a=(0, 3), b=(2, 3), c=(1, 1))
    second = metadata(b=(0, 1), c=(1, 2))
    chosen = highest_common(metadata(), descriptions(first, second))
    assert chosen.updates == (FeatureUpdate(FeatureName("c"), FeatureLevel(1)),)
    assert [remark.split()[0] for remark in chosen.remarks] == ["a", "b"]


def test_kraft_version_is_raised_only_where_it_can_be() -> None:
    """Before 4.1 a controller writes a record that nobody heeds."""
    old = metadata(metadata__version=(1, 21), kraft__version=(0, 1))
    new = metadata(metadata__version=(7, 30), kraft__version=(0, 1))
    now = {"metadata.version": 21}
    assert highest_common(metadata(now), descriptions(old, new)).updates == ()
    raised = highest_common(metadata({"metadata.version": 30}), descriptions(new, new)).updates
    assert raised == (FeatureUpdate(FeatureName("kraft.version"), FeatureLevel(1)),)


@pytest.mark.form("document")
def test_the_later_drafts_latest_is_the_controllers() -> None:
    """Every supported feature at the maximum that the controller names, changed or not (F-87)."""
    assert highest_supported(metadata({"a": 3}, a=(1, 3), b=(1, 2))) == (
        FeatureUpdate(FeatureName("a"), FeatureLevel(3)),
        FeatureUpdate(FeatureName("b"), FeatureLevel(2)),
    )
