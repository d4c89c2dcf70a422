"""A rehearsal as JSON, the same on the command line and over HTTP. Pure."""

from collections.abc import Sequence
from typing import Any

from featurewatch.controller.kraft import ControllerState, release_of, rules_of
from featurewatch.controller.partitions.kraft_election import KraftPartition
from featurewatch.controller.rehearsal.partitions.impact import PartitionEffect, PartitionImpact
from featurewatch.controller.rehearsal.rehearse import StepOutcome, StepVerdict, all_levels
from featurewatch.controller.software import notes_of_learned


def rehearsal_document(
    release: str, state: ControllerState, outcomes: Sequence[StepOutcome]
) -> dict[str, Any]:
    """The outcomes of steps that begin with ``state``, for a controller of ``release``."""
    return {
        "cluster": state.cluster,
        "controller": state.id,
        "release": release,
        "exact": rules_of(release).compared,
        "learned": list(notes_of_learned(names=[release_of(release).name])),
        "levels": dict(all_levels(state)),
        "verdict": str(overall(outcomes)),
        "steps": [step_document(outcome) for outcome in outcomes],
    }


def overall(outcomes: Sequence[StepOutcome]) -> StepVerdict:
    """Refused if any step is; else unknown if any is; else accepted."""
    verdicts = {outcome.verdict for outcome in outcomes}
    for verdict in (StepVerdict.REFUSED, StepVerdict.UNKNOWN):
        if verdict in verdicts:
            return verdict
    return StepVerdict.ACCEPTED


def step_document(outcome: StepOutcome) -> dict[str, Any]:
    """The outcome of one step."""
    answer = outcome.answer
    return {
        "step": outcome.step.text,
        "verdict": str(outcome.verdict),
        "responder": outcome.responder,
        "error": answer.error.name if answer else None,
        "features": {
            name: {"error": error.error.name, "text": error.text} for name, error in outcome.results
        },
        "messages": list(outcome.messages),
        "effects": list(outcome.effects),
        "notes": list(outcome.notes),
        "consequences": [
            {
                "feature": consequence.feature,
                "level": consequence.level,
                "change": consequence.change,
                "costs": consequence.costs,
            }
            for consequence in outcome.consequences
        ],
        "levels": dict(all_levels(outcome.after.state)),
        "partitions": _partitions(outcome.partitions) if outcome.partitions else None,
    }


def _partitions(impact: PartitionImpact) -> dict[str, Any]:
    """The impact of a step on partitions, all of them."""
    return {
        "total": impact.partition_count,
        "leaderless": impact.leaderless,
        "under_min_isr": impact.under_min_isr,
        "counts": {str(effect): len(impact.having(effect)) for effect in PartitionEffect},
        "changes": [
            {
                "topic": change.partition.topic,
                "partition": change.partition.number,
                "effects": list(map(str, change.effects)),
                "before": _state(change.before) if change.before else None,
                "after": _state(change.after),
                "reason": change.reason or None,
            }
            for change in impact.changed
        ],
        "refused": [
            {
                "topic": refusal.partition.topic if refusal.partition else None,
                "partition": refusal.partition.number if refusal.partition else None,
                "error": refusal.error,
                "text": refusal.text,
            }
            for refusal in impact.refusals
        ],
    }


def _state(state: KraftPartition) -> dict[str, Any]:
    return {
        "leader": state.leader,
        "replicas": state.replicas,
        "isr": state.isr,
        "adding": state.adding,
        "removing": state.removing,
        "elr": state.elr,
        "recovering": state.recovering,
    }
