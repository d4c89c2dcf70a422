"""The requests that a listener accepts: Kafka's released ones, or those of a draft.

The drafts of KIP-584 use API keys and tags that released Kafka uses for other requests (48 and 49
are client quotas), and the two drafts use the same ones differently. So a listener implements
exactly one dialect.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from featurewatch.reference.machines.dialect import Dialect
from featurewatch.streams.znodes import FeaturesForm


class ApiDialect(StrEnum):
    """The dialect of a listener."""

    RELEASED = "released"
    """As Kafka 2.7 to 4.3: UpdateFeatures is key 57, features are in tags 0 to 2."""
    EARLY_DRAFT = "early-draft"
    """Keys 48 and 49, update types, ``version``."""
    EARLY_DRAFT_STRUCK = "early-draft-struck"
    """With the text that the early draft struck out: the whole set of levels in responses and in
    UpdateMetadata."""
    LATER_DRAFT = "later-draft"
    """Key 48, ``allowDowngrade``, ``versionLevel``; a level below 1 deletes."""


METADATA: Final = 3
UPDATE_METADATA: Final = 6
API_VERSIONS: Final = 18
DRAFT_UPDATE: Final = 48
DRAFT_DELETE: Final = 49
UPDATE_FEATURES: Final = 57
DESCRIBE_CLUSTER: Final = 60

Versions = tuple[int, int]

_COMMON: dict[int, Versions] = {METADATA: (0, 12), DESCRIBE_CLUSTER: (0, 1)}
_DRAFT: dict[int, Versions] = {**_COMMON, API_VERSIONS: (0, 3), DRAFT_UPDATE: (0, 1)}

OFFERED: Final[Mapping[ApiDialect, Mapping[int, Versions]]] = MappingProxyType(
    {
        ApiDialect.RELEASED: {**_COMMON, API_VERSIONS: (0, 4), UPDATE_FEATURES: (0, 2)},
        ApiDialect.EARLY_DRAFT: {**_DRAFT, DRAFT_DELETE: (0, 1)},
        ApiDialect.EARLY_DRAFT_STRUCK: {**_DRAFT, DRAFT_DELETE: (0, 1), UPDATE_METADATA: (6, 6)},
        ApiDialect.LATER_DRAFT: _DRAFT,
    }
)
"""API key → (oldest, newest version): what ApiVersions lists, and all that a listener accepts."""


def api_dialect_of(dialect: Dialect) -> ApiDialect:
    """The API dialect of nodes of a `Dialect`."""
    match dialect.form:
        case FeaturesForm.EARLY_DRAFT:
            return ApiDialect.EARLY_DRAFT_STRUCK if dialect.pushes else ApiDialect.EARLY_DRAFT
        case FeaturesForm.LATER_DRAFT:
            return ApiDialect.LATER_DRAFT
        case _:
            return ApiDialect.RELEASED
