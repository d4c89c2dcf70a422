"""A rehearsal of steps on the model of a cluster's controllers: no cluster is touched. Pure.

The steps are bounded by `MAX_STEPS` and `MAX_STEP_CHARS`, and what they expand to by
`MAX_OUTCOMES`: restarting every node of a large cluster is left to the command line.
"""

from collections.abc import Sequence
from typing import Any, Final

from featurewatch.controller.kraft import Release, active_controller_id, controller_state
from featurewatch.controller.rehearsal.documents import rehearsal_document
from featurewatch.controller.rehearsal.partition_steps import StepSyntaxError
from featurewatch.controller.rehearsal.rehearse import rehearse
from featurewatch.controller.rehearsal.steps import (
    RestartNodes,
    Step,
    is_about_partitions,
    parse,
)
from featurewatch.controller.software import LEARN
from featurewatch.monitor.readiness.active_controller import active_controller, active_state
from featurewatch.monitor.readiness.upgrade_state import is_kraft
from featurewatch.streams.types import NodeKey
from featurewatch.tables.image.cluster import Authority, ClusterImage

MAX_STEPS: Final = 20
MAX_STEP_CHARS: Final = 200
MAX_OUTCOMES: Final = 500
"""A restart of one node is two outcomes: it stops, and it registers."""


class StepRefusedError(Exception):
    """A step that is not rehearsed; the message says why."""


class NotRehearsableError(Exception):
    """A cluster on which nothing can be rehearsed now; the message says why."""


def parse_steps(texts: Sequence[str]) -> list[Step]:
    """The steps of a request.

    Raises:
        StepRefusedError: There is no step, one is invalid, or there are too many.
    """
    if not 1 <= len(texts) <= MAX_STEPS:
        raise StepRefusedError(f"must be given 1 to {MAX_STEPS} times, as in step=stop:broker-2.")
    if max(map(len, texts)) > MAX_STEP_CHARS:
        raise StepRefusedError(f"must have at most {MAX_STEP_CHARS} characters.")
    try:
        steps = [parse(text) for text in texts]
    except StepSyntaxError as error:
        raise StepRefusedError(f"is wrong: {error}.") from None
    for step in steps:
        if is_about_partitions(step):
            raise StepRefusedError(
                f"{step.text} is about partitions, which this page does not know: "
                "use featurewatch rehearse."
            )
    return steps


def rehearse_steps(
    image: ClusterImage, steps: Sequence[Step], release: Release | None = None
) -> dict[str, Any]:
    """The outcomes of steps on a cluster, as ``featurewatch rehearse --json`` prints them.

    ``release`` is assumed of the active controller; by default it is the one that it runs.

    Raises:
        StepRefusedError: The steps expand to too many.
        NotRehearsableError: No KRaft controller is known to be active, or not what it runs.
    """
    node_count = len(image.nodes.nodes)
    count = sum(_outcome_count(step, node_count) for step in steps)
    if count > MAX_OUTCOMES:
        raise StepRefusedError(
            f"expands to {count} stops and starts, and {MAX_OUTCOMES} are rehearsed here: use "
            "featurewatch rehearse."
        )
    if image.authority is Authority.ZOOKEEPER or not is_kraft(image):
        raise NotRehearsableError("The cluster has no KRaft controllers, which decide on levels.")
    if image.incomplete:
        raise NotRehearsableError(
            f"No known release has the record {', '.join(image.incomplete)} in the log, so the "
            f"cluster is not known to be complete: {LEARN}."
        )
    if active_controller_id(image) < 0:
        raise NotRehearsableError("Which controller is active is not known: try again in a moment.")
    if release is None:
        active = active_controller(image)
        if active.release is None:
            raise NotRehearsableError(active.doubt)
        if active.assumed:
            raise NotRehearsableError(
                f"What controller {active.node_id} runs is not known: name its release."
            )
        name, state = active.release.name, active_state(image, active)
    else:
        name, state = release.name, controller_state(image, release.ranges())
    outcomes = rehearse(
        name,
        state,
        steps,
        voters=image.log.quorum.voters,
        whole=image.authority is Authority.LOG,
    )
    return rehearsal_document(name, state, outcomes)


def _outcome_count(step: Step, node_count: int) -> int:
    if not isinstance(step, RestartNodes):
        return 1
    return 2 if isinstance(step.which, NodeKey) else 2 * node_count
