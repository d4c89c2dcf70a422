"""What becomes of one step of a rehearsal."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from controller.kraft import Answer, Consequence
from controller.rehearsal_scene import Scene
from controller.rehearsal_steps import Step
from streams.types import FeatureName

OURSELVES: Final = "featurewatch"
"""Who speaks where no controller is asked."""


class Verdict(StrEnum):
    """What becomes of a step."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One step, what was said to it, and the cluster after it.

    ``by`` is who says it; ``answer`` and ``results`` are a controller's answer as a client gets it,
    none where no controller is asked: a node that stops asks nobody. ``says`` are the words of a
    refusal, ``does`` what is written or happens, ``notes`` what else to know, ``consequences`` what
    raised levels change and cost.
    """

    step: Step
    verdict: Verdict
    by: str
    before: Scene
    after: Scene
    answer: Answer | None = None
    results: tuple[tuple[FeatureName, Answer], ...] = ()
    says: tuple[str, ...] = ()
    does: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    consequences: tuple[Consequence, ...] = ()


def impossible(scene: Scene, step: Step, text: str) -> Outcome:
    """A step that makes no sense here, or that Kafka has no means for."""
    return Outcome(step, Verdict.REFUSED, OURSELVES, scene, scene, says=(text,))
