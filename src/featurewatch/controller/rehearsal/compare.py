"""Differences between a real controller and the model, and between a live cluster and its stand-in.

Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from featurewatch.controller.kraft import ApiError, ControllerState, Errors
from featurewatch.controller.kraft.support import reason_not_supported
from featurewatch.controller.rehearsal.descriptions import ranges_text
from featurewatch.controller.rehearsal.rehearse import StepOutcome, all_levels
from featurewatch.controller.rehearsal.steps import UpdateLevels
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, NodeId, SupportedRanges


def response_differences(
    outcome: StepOutcome, code: int, text: str, features: Mapping[str, tuple[int, str]]
) -> Iterator[str]:
    """The differences of a controller's response from the model's, a sentence for each.

    ``code``, ``text`` and ``features`` (code and text by feature) are the real response. The text
    of a success is not compared. Of several blockers a refusal may name any: `other_blockers`.
    """
    for what, model, model_text, real_code, real_text in _result_pairs(
        outcome, code, text, features
    ):
        if model is None or real_code is None:
            side = "the model" if real_code is None else "the real controller"
            yield f"only {side} answers for {what}"
        elif int(model.error) != real_code:
            yield (
                f"{_prefix(what)}the model says {model.error.name}, "
                f"the real controller {_name(real_code)} ({real_text})"
            )
        elif (
            real_code
            and real_text != model_text
            and real_text not in _equivalent_texts(outcome, model_text)
        ):
            yield f"{_prefix(what)}the model says {model_text!r}, the real controller {real_text!r}"


def other_blockers(
    outcome: StepOutcome, code: int, text: str, features: Mapping[str, tuple[int, str]]
) -> Iterator[str]:
    """The refusals in which a controller names another blocker than the model, a sentence for each.

    A controller names the first blocker in its hash table, and where nodes have come and gone the
    table may be larger than the number of its entries requires. No client can know that.
    """
    for what, _, model_text, _, real_text in _result_pairs(outcome, code, text, features):
        if real_text != model_text and real_text in _equivalent_texts(outcome, model_text):
            yield (
                f"{_prefix(what)}the real controller names another of those in the way first: "
                f"{real_text}"
            )


def _prefix(what: str) -> str:
    return f"{what}: " if what else ""


def _result_pairs(
    outcome: StepOutcome, code: int, text: str, features: Mapping[str, tuple[int, str]]
) -> Iterator[tuple[str, ApiError | None, str, int | None, str]]:
    """The model's result and text and the real code and text, of the request and each feature.

    The text for the request includes the prefix that a client gets before the reason.
    """
    if outcome.answer is None:
        return
    yield "", outcome.answer, "" if outcome.answer.accepted else outcome.messages[0], code, text
    if code:
        return
    expected: dict[str, ApiError] = {str(name): answer for name, answer in outcome.results}
    for name in sorted({*expected, *features}):
        model, (real_code, real_text) = expected.get(name), features.get(name, (None, ""))
        yield name, model, (model.text or "") if model else "", real_code, real_text


def _equivalent_texts(outcome: StepOutcome, model_text: str) -> set[str]:
    """The refusals that name another blocker of the same role."""
    if not isinstance(outcome.step, UpdateLevels):
        return set()
    state, texts = outcome.before.state, set[str]()
    finalized = state.metadata_version() or FeatureLevel(0)
    for update in outcome.step.updates:
        first = reason_not_supported(state, update.feature, update.level, finalized)
        if first is None or not model_text.endswith(first):
            continue
        for single in _single_node_states(state, first):
            text = reason_not_supported(single, update.feature, update.level, finalized)
            texts.add(model_text.removesuffix(first) + (text or first))
    return texts


def _single_node_states(state: ControllerState, first: str) -> Iterator[ControllerState]:
    """States with a single node of the role that ``first`` names."""
    no_nodes = replace(state, brokers=(), controllers=(), quorum=())
    if first.startswith("Broker"):
        yield from (replace(no_nodes, brokers=(broker,)) for broker in state.brokers)
    elif first.startswith("Controller"):
        yield from (
            replace(no_nodes, controllers=(controller,)) for controller in state.controllers
        )


def _name(code: int) -> str:
    return Errors(code).name if code in [error.value for error in Errors] else f"error {code}"


def state_differences(model: ControllerState, real: ControllerState) -> Iterator[str]:
    """The differences of a real controller's state from the model's, a sentence for each."""
    model_levels, real_levels = all_levels(model), all_levels(real)
    for name in sorted({*model_levels, *real_levels}):
        expected, actual = model_levels.get(name, 0), real_levels.get(name, 0)
        if expected != actual:
            yield f"{name} is {expected} in the model and {actual} really"
    real_brokers = {broker.id: broker for broker in real.brokers}
    model_brokers = {broker.id: broker for broker in model.brokers}
    for node in sorted({*real_brokers, *model_brokers}):
        if node not in real_brokers or node not in model_brokers:
            yield f"broker {node} is registered {_presence(node in model_brokers)}"
        else:
            yield from _ranges(
                "broker", node, model_brokers[node].ranges, real_brokers[node].ranges
            )
            if model_brokers[node].fenced != real_brokers[node].fenced:
                yield f"broker {node} is fenced {_presence(model_brokers[node].fenced)}"
    yield from _controllers(model, real)


def _controllers(model: ControllerState, real: ControllerState) -> Iterator[str]:
    model_ranges = {controller.id: controller.ranges for controller in model.controllers}
    real_ranges = {controller.id: controller.ranges for controller in real.controllers}
    for node in sorted({*model_ranges, *real_ranges}):
        if node not in model_ranges or node not in real_ranges:
            yield f"controller {node} is registered {_presence(node in model_ranges)}"
        else:
            yield from _ranges("controller", node, model_ranges[node], real_ranges[node])


def _presence(in_model: bool) -> str:
    return "in the model alone" if in_model else "at the real controller alone"


def _ranges(
    role: str, node: NodeId, model: SupportedRanges, real: SupportedRanges
) -> Iterator[str]:
    if dict(model) != dict(real):
        yield f"{role} {node} supports {dict(model)} in the model and {dict(real)} really"


def staging_differences(live: ControllerState, staged: ControllerState) -> Iterator[str]:
    """The differences of a live cluster from its stand-in, a sentence for each.

    ``staged`` is the state of the real controller of the stand-in before the first step.
    """
    if dict(live.local) != dict(staged.local):
        live_ranges, staged_ranges = ranges_text(live.local), ranges_text(staged.local)
        yield f"controller {live.id} supports {staged_ranges}; the live one supports {live_ranges}"
    if absent := [str(voter) for voter in live.quorum if voter not in staged.quorum]:
        yield (
            f"the voters {', '.join(absent)} do not run: a missing registration and a lost "
            "majority cannot be tried"
        )
    if staged.voters_support_kraft and not live.voters_support_kraft:
        yield (
            "it is the only voter of its quorum; some live voters are of a release before 4.1, "
            "with which a leader does not raise kraft.version"
        )
    for name, level in all_levels(live).items():
        if all_levels(staged).get(name) != level:
            yield f"{name} is {all_levels(staged).get(name, 0)}; it is {level} in the live cluster"
    for name, level in all_levels(staged).items():
        if name not in all_levels(live):
            yield f"{name} is {level}; it is not finalized in the live cluster"
    staged_brokers = {broker.id for broker in staged.brokers}
    if missing := [str(broker.id) for broker in live.brokers if broker.id not in staged_brokers]:
        yield f"brokers {', '.join(missing)} could not be registered at the finalized levels"
    staged_controllers = {controller.id for controller in staged.controllers}
    if missing := [
        str(controller.id)
        for controller in live.controllers
        if controller.id not in staged_controllers
    ]:
        yield f"controllers {', '.join(missing)} could not be registered at this {METADATA_VERSION}"
    if live.migration.in_progress:
        yield "the live cluster migrates from ZooKeeper; this one does not"
