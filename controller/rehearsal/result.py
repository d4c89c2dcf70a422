"""What becomes of one step of a rehearsal."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from featurewatch.controller.kraft import ApiError, Consequence
from featurewatch.controller.rehearsal.cluster import RehearsedCluster
from featurewatch.controller.rehearsal.steps import Step
from featurewatch.streams.types import FeatureName

FEATUREWATCH: Final = "featurewatch"
"""Who speaks where no controller is asked."""


class StepVerdict(StrEnum):
    """What becomes of a step."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """One step, what was said to it, and the cluster after it.

    ``responder`` is who says it; ``answer`` and ``results`` are a controller's answer as a client
    gets it, none where no controller is asked: a node that stops asks nobody. ``messages`` are the
    words of a refusal, ``effects`` what is written or happens, ``notes`` what else to know,
    ``consequences`` what raised levels change and cost.
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


def impossible(scene: RehearsedCluster, step: Step, text: str) -> StepOutcome:
    """A step that makes no sense here, or that Kafka has no means for."""
    return StepOutcome(step, StepVerdict.REFUSED, FEATUREWATCH, scene, scene, messages=(text,))
