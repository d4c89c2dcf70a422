"""Asks a cluster to change finalized levels: ``UpdateFeatures`` (KIP-584, KIP-778)."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.update_features.v1.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.schema.update_features.v1.response import UpdateFeaturesResponse
from kio.static.primitive import i8, i16

from streams.net.address import Address
from streams.net.connection import Connection, NodeError, open_connection
from streams.net.security import PLAINTEXT, Security
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
        streams.net.connection.NodeError: The node cannot be reached, or broke off: whether the
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
    dry_run: bool,
    timeout_s: float,
) -> None:
    # Version 1 is what every release from 3.3 on takes. A broker of a mixed cluster may offer more
    # than the active controller that it forwards to, and then closes the connection.
    if connection.version_of(UPDATE_FEATURES, (1, 1)) is None:
        raise NodeError(f"{connection.address} does not offer UpdateFeatures 1: Kafka 3.3+ does")
    request = UpdateFeaturesRequest(
        feature_updates=tuple(
            FeatureUpdateKey(
                feature=update.feature,
                max_version_level=i16(update.level),
                upgrade_type=i8(update.kind),
            )
            for update in updates
        ),
        validate_only=dry_run,
    )
    answer = await connection.request(request, UpdateFeaturesResponse, timeout_s)
    said = [(answer.error_code, answer.error_message)]
    said += [(result.error_code, result.error_message) for result in answer.results]
    refusals = [text or code.name for code, text in said if code is not ErrorCode.none]
    if refusals:
        raise UpdateRefusedError("; ".join(refusals))
