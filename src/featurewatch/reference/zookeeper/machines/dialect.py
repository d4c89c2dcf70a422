"""The three written forms of KIP-584 as data: one field for each difference.

The early draft is the older side-by-side text of KIP-584 (update and delete APIs, integers called
``version``), the later draft the newer one (``version_level``, all or nothing), and the released
form is what ZooKeeper-mode Kafka 2.7 to 3.9 does (``KafkaController``, ``FeatureZNode``).
"""

from dataclasses import dataclass, replace
from typing import Final

from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.streams.types import SupportedRange
from featurewatch.streams.znodes import FeaturesForm


@dataclass(frozen=True, slots=True)
class Dialect:
    """One form of KIP-584.

    - ``form``: the format of the features znode at ``path``;
    - ``lowest_level``: the lowest valid level; with ``deletes_by_level``, an update to a lower
      level is a deletion;
    - ``lowest_minimum``: the lowest level with which a range may begin;
    - ``range_keys``: the names of a range's ends in the broker's znode;
    - ``per_item``: each item has its own result, and the valid items are applied;
    - ``queues``: an update or deletion waits for the previous one; else it is rejected while that
      is in progress (in the early draft with "a suitable exception");
    - ``has_delete``: DELETE_FEATURES exists;
    - ``defaults``: an absent znode is created with the controller's own maxima; else empty;
    - ``failure``: the error code if all items are valid and the write fails; in the later draft
      also if an item is rejected;
    - ``writes_unchanged``: a valid request is written even if it changes no level, which increments
      the epoch;
    - ``exits_at_lower_epoch``: a broker that reads an epoch below its cached one exits; else it
      keeps the higher one;
    - ``pushes``: the controller also sends the levels to its live brokers and includes them in its
      responses; the znode contains the epoch;
    - ``drops_minimum``: a finalized level has no minimum in version 4 of ApiVersions.
    """

    name: str
    form: FeaturesForm
    path: str
    lowest_level: int
    lowest_minimum: int
    range_keys: tuple[str, str]
    per_item: bool
    queues: bool
    has_delete: bool
    deletes_by_level: bool
    defaults: bool
    failure: ErrorCode
    writes_unchanged: bool
    exits_at_lower_epoch: bool
    pushes: bool = False
    drops_minimum: bool = False

    def is_valid_range(self, supported: SupportedRange) -> bool:
        """Whether brokers may advertise a range: it runs upwards, and its minimum is allowed.

        The early draft has ranges from 0 on, the later one from 1 on. So have brokers in ZooKeeper
        mode up to Kafka 3.8; those of 3.9 have them from 0 on (``BaseVersionRange``).
        """
        return self.lowest_minimum <= supported.minimum <= supported.maximum

    @property
    def released(self) -> bool:
        """Whether Kafka was released with this form."""
        return self.form in (FeaturesForm.RELEASED_1, FeaturesForm.RELEASED_2)


EARLY_DRAFT: Final = Dialect(
    name="early-draft",
    form=FeaturesForm.EARLY_DRAFT,
    path="/features",
    lowest_level=0,
    lowest_minimum=0,
    range_keys=("minVersion", "maxVersion"),
    per_item=False,
    queues=False,
    has_delete=True,
    deletes_by_level=False,
    defaults=False,
    failure=ErrorCode.UNKNOWN_SERVER_ERROR,
    writes_unchanged=True,
    exits_at_lower_epoch=False,
)

EARLY_DRAFT_STRUCK: Final = replace(EARLY_DRAFT, name="early-draft-struck", pushes=True)
"""With the text that the early draft's own diff strikes out; its shells must deliver
`protocol.SendUpdateMetadata`."""

LATER_DRAFT: Final = Dialect(
    name="later-draft",
    form=FeaturesForm.LATER_DRAFT,
    path="/features",
    lowest_level=1,
    lowest_minimum=1,
    range_keys=("min_version", "max_version"),
    per_item=False,
    queues=False,
    has_delete=False,
    deletes_by_level=True,
    defaults=True,
    failure=ErrorCode.FEATURE_UPDATES_FAILED,
    writes_unchanged=True,
    exits_at_lower_epoch=False,
)

RELEASED: Final = Dialect(
    name="released",
    form=FeaturesForm.RELEASED_2,
    path="/feature",
    lowest_level=1,
    lowest_minimum=0,
    range_keys=("min_version", "max_version"),
    per_item=True,
    queues=True,
    has_delete=False,
    deletes_by_level=True,
    defaults=True,
    failure=ErrorCode.FEATURE_UPDATE_FAILED,
    writes_unchanged=False,
    exits_at_lower_epoch=True,
)

RELEASED_1: Final = replace(
    RELEASED, name="released-1", form=FeaturesForm.RELEASED_1, lowest_minimum=1
)
"""As `RELEASED` with inter-broker protocol 2.7 to 3.2: the znode contains minimum levels."""

KIP_778: Final = replace(RELEASED, name="kip-778", drops_minimum=True)
"""As `RELEASED`, but for the minimum that KIP-778 takes out of ApiVersions and Kafka has kept."""

DIALECTS: Final = {
    dialect.name: dialect for dialect in (EARLY_DRAFT, LATER_DRAFT, RELEASED, RELEASED_1, KIP_778)
}
"""The dialects that every shell can run, by name."""
