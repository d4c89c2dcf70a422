"""Asks a cluster to change finalized levels: ``UpdateFeatures`` (KIP-584, KIP-778)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from kio.schema.errors import ErrorCode
from kio.schema.update_features import v1, v2
from kio.static.primitive import i8, i16

from streams.kraft.address import Address
from streams.kraft.connection import Connection, NodeError, open_connection
from streams.kraft.security import PLAINTEXT, Security
from streams.types import FeatureLevel, FeatureName

UPDATE_FEATURES: Final = 57


class UpgradeType(IntEnum):
    """What an update may do (``FeatureUpdate.UpgradeType``)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class UpdateRefusedError(Exception):
    """The controller refused; the text is its own. Nothing of a 4.x request was applied."""


@dataclass(frozen=True, slots=True)
class Update:
    """A level to set; 0 removes the feature."""

    feature: FeatureName
    level: FeatureLevel
    kind: UpgradeType = UpgradeType.UPGRADE


async def update_features(
    address: Address,
    updates: tuple[Update, ...],
    *,
    dry_run: bool = False,
    security: Security = PLAINTEXT,
    timeout_s: float = 30.0,
) -> None:
    """Sends one request to a broker, which forwards it, or to the active controller.

    Raises:
        UpdateRefusedError: The controller refused one or more of the updates.
        streams.kraft.connection.NodeError: The node cannot be reached, or broke off: whether the
            update was applied is then not known, and must be read from the cluster.
    """
    connection = await open_connection(address, security, timeout_s=timeout_s)
    try:
        await _update(connection, updates, dry_run, timeout_s)
    finally:
        await connection.close()


async def _update(
    connection: Connection,
    updates: tuple[Update, ...],
    dry_run: bool,  # noqa: FBT001 - private, and named by its caller
    timeout_s: float,
) -> None:
    version = connection.version_of(UPDATE_FEATURES, (1, 2))
    if version is None:
        raise NodeError(
            f"{connection.address} does not offer UpdateFeatures: Kafka 3.3 and newer do"
        )
    forms: Mapping[int, Any] = {1: v1, 2: v2}
    form = forms[version]
    request = form.UpdateFeaturesRequest(
        feature_updates=tuple(
            form.FeatureUpdateKey(
                feature=update.feature,
                max_version_level=i16(update.level),
                upgrade_type=i8(update.kind),
            )
            for update in updates
        ),
        validate_only=dry_run,
    )
    answer = await connection.request(request, form.UpdateFeaturesResponse, timeout_s)
    refusals = [answer.error_message or answer.error_code.name] if _failed(answer) else []
    for result in getattr(answer, "results", ()):
        if _failed(result):
            refusals.append(result.error_message or result.error_code.name)
    if refusals:
        raise UpdateRefusedError("; ".join(refusals))


def _failed(answer: Any) -> bool:
    return bool(answer.error_code is not ErrorCode.none)
