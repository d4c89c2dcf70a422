"""How the registration of a decommissioned node is removed, by the finalized levels.

A controller's can be removed from one level of metadata.version on (KIP-1312), and a ghost of
older software blocks that very level. The way out is its node id: a controller with it that
supports the level registers, which replaces the old registration.
"""

from typing import Final

from featurewatch.controller.kraft.releases import (
    MetadataLevel,
    can_unregister_controllers,
    controller_unregistration,
)
from featurewatch.streams.types import METADATA_VERSION, Role
from featurewatch.tables.image.cluster import ClusterImage

_COMMAND: Final = "featurewatch cluster unregister-{} --bootstrap-server HOST:PORT --id {}"
_REPLACE: Final = (
    "start a controller with node.id {} on {}, in an empty directory formatted for this cluster "
    "(kafka-storage.sh format --no-initial-controllers), so that it replaces the registration"
)


def unregister_command(role: Role, node_id: int | str) -> str:
    """The command that removes a registration; the finalized levels must permit it."""
    return _COMMAND.format(role, node_id)


def finalized_metadata_version(image: ClusterImage) -> int:
    """Returns the finalized metadata.version, 0 if it is not finalized."""
    return image.features.levels.get(METADATA_VERSION, 0)


def ghost_controller_remedy(
    node_id: int | str, releases: str, finalized: int, target: int | None
) -> str:
    """Returns the steps against a ghost controller that blocks levels.

    ``releases`` are those that support the levels (``Kafka 4.4``), ``finalized`` and ``target``
    the metadata.version now and afterwards (None: it stays).
    """
    if can_unregister_controllers(finalized):
        return unregister_command(Role.CONTROLLER, node_id)
    steps = f"(1) {_REPLACE.format(node_id, releases)}; (2) finalize the levels; (3) stop it"
    if target is not None and can_unregister_controllers(target):
        steps += f"; (4) {unregister_command(Role.CONTROLLER, node_id)}"
    return f"{_not_yet()}: {steps}"


def ghost_controller_advice(node_id: int, finalized: int, supported: int | None) -> str:
    """Returns the advice about a ghost controller, whether it blocks a level or not.

    ``supported`` is the highest metadata.version of its software (None: not known).
    """
    command = unregister_command(Role.CONTROLLER, node_id)
    if can_unregister_controllers(finalized):
        return f"if it was decommissioned: {command}"
    first = controller_unregistration()
    if first is None:
        return "no known release can unregister it, so start it again before the next upgrade"
    if supported is not None and supported >= first.level:
        return f"{_not_yet()}; finalize that, then: {command}"
    return (
        f"{_not_yet()}, and this one blocks that level. To remove it: (1) "
        f"{_REPLACE.format(node_id, f'Kafka {first.since}')}; (2) finalize "
        f"{METADATA_VERSION} {first.level} when all nodes run Kafka {first.since}; (3) stop it; "
        f"(4) {command}"
    )


def _not_yet() -> str:
    first: MetadataLevel | None = controller_unregistration()
    if first is None:
        return "no known release can unregister a controller"
    return (
        f"Kafka can unregister a controller only from {METADATA_VERSION} {first.level} "
        f"({first.name}) on"
    )
