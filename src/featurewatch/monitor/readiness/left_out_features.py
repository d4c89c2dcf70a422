"""Features that a broker's registration lacks although its software has them (KAFKA-17492)."""

from typing import Final

from featurewatch.controller.compatibility import Incompatibility, Verdict
from featurewatch.controller.kraft.releases import Release, release_of
from featurewatch.controller.software import release_of_capabilities
from featurewatch.monitor.readiness.active_controller import active_controller
from featurewatch.streams.types import METADATA_VERSION
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.image.nodes import Capabilities

FIRST_COMPLETE_RELEASE: Final = "3.9"
"""The first release whose controllers take features with a minimum of 0 in a registration
(BrokerRegistrationRequest v4)."""


def is_left_out(capabilities: Capabilities, item: Incompatibility) -> bool:
    """Whether only a node's registration lacks a feature, and not its software.

    Registrations at controllers before `FIRST_COMPLETE_RELEASE` leave out each feature whose
    minimum is 0, for as long as the node runs (BrokerRegistrationRequest v0 to v3, KAFKA-17492).
    """
    release = release_of_capabilities(capabilities)
    if release is None or item.range is not None or item.verdict is not Verdict.NO:
        return False
    supported = release.supported.get(item.feature)
    return supported is not None and supported.minimum == 0 and supported.includes(item.level)


def _registers_completely(controllers: Release) -> bool:
    """Whether a node's registration at controllers of this release names all of its features."""
    first = release_of(FIRST_COMPLETE_RELEASE)
    return controllers.newest(METADATA_VERSION) >= first.newest(METADATA_VERSION)


def restart_remedy(image: ClusterImage) -> str:
    """Returns the remedy for a node whose software supports a level its registration lacks."""
    release = active_controller(image).release
    if release is not None and _registers_completely(release):
        return (
            "restart it once more, now that the controllers are upgraded: its software supports "
            "the feature, but the older controllers where it registered left it out"
        )
    return (
        f"upgrade the controllers to Kafka {FIRST_COMPLETE_RELEASE} or newer, then restart it once "
        "more: its software supports the feature, but older controllers leave it out"
    )
