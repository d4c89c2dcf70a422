"""The outcome of one step of a rehearsal."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from featurewatch.controller.kraft import ApiError, Consequence
from featurewatch.controller.rehearsal.cluster import RehearsedCluster
from featurewatch.controller.rehearsal.partitions.impact import PartitionImpact
from featurewatch.controller.rehearsal.steps import Step
from featurewatch.controller.software import LEARN
from featurewatch.streams.types import FeatureName

FEATUREWATCH: Final = "featurewatch"
"""The responder of steps that send no request to a controller."""


class StepVerdict(StrEnum):
    """The verdict on a step."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """One step, the response to it, and the cluster before and after it.

    ``responder`` is the node that responds; ``answer`` and ``results`` are a controller's response
    as a client gets it, empty for a step without a request, such as a node that stops. ``messages``
    are the texts of a refusal, ``effects`` what is written or happens, ``notes`` further
    information, ``consequences`` what raised levels change and cost. ``partitions`` is the impact
    on partitions, None for a step that is not about them.
    """

    step: Step
    verdict: StepVerdict
    responder: str
    before: RehearsedCluster
    after: RehearsedCluster
    answer: ApiError | None = None
    results: tuple[tuple[FeatureName, ApiError], ...] = ()
    messages: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    partitions: PartitionImpact | None = None


def undecided(cluster: RehearsedCluster, step: Step) -> StepOutcome:
    """The outcome of a step that an active controller of an unknown release decides on."""
    text = f"how a controller of {cluster.active_software} decides is not known: {LEARN}"
    return StepOutcome(step, StepVerdict.UNKNOWN, FEATUREWATCH, cluster, cluster, messages=(text,))


def impossible(cluster: RehearsedCluster, step: Step, text: str) -> StepOutcome:
    """The refusal of a step that is invalid in this cluster, or that Kafka does not support."""
    return StepOutcome(step, StepVerdict.REFUSED, FEATUREWATCH, cluster, cluster, messages=(text,))
