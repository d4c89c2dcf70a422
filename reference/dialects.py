"""Which requests a listener of each dialect takes: Kafka's released ones, or those of the drafts.

The drafts of KIP-584 put their requests on keys and tags that released Kafka uses for other things
(48 and 49 are client quotas), and both drafts use the same ones differently: so a listener speaks
one dialect, never several.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from streams.znodes import FeaturesForm

METADATA: Final = 3
API_VERSIONS: Final = 18
DRAFT_UPDATE: Final = 48
DRAFT_DELETE: Final = 49
UPDATE_FEATURES: Final = 57
DESCRIBE_CLUSTER: Final = 60

Versions = tuple[int, int]

_COMMON: dict[int, Versions] = {METADATA: (0, 12), DESCRIBE_CLUSTER: (0, 1)}
_DRAFT: dict[int, Versions] = {**_COMMON, API_VERSIONS: (0, 3), DRAFT_UPDATE: (0, 1)}

_RELEASED = {**_COMMON, API_VERSIONS: (0, 4), UPDATE_FEATURES: (0, 2)}

OFFERED: Final[Mapping[FeaturesForm, Mapping[int, Versions]]] = MappingProxyType(
    {
        FeaturesForm.RELEASED_1: _RELEASED,
        FeaturesForm.RELEASED_2: _RELEASED,
        FeaturesForm.EARLY_DRAFT: {**_DRAFT, DRAFT_DELETE: (0, 1)},
        FeaturesForm.LATER_DRAFT: _DRAFT,
    }
)
"""API key → (oldest, newest version), by form: what ApiVersions lists, and all that is read."""
