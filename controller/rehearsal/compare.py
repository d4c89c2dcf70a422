"""Where a real controller and the model differ, and what a stand-in cannot have. Pure."""

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
    """Where a controller answered otherwise than the model, a sentence each.

    ``code``, ``text`` and ``features`` (code and text of each) are the real answer. The text of an
    agreement says nothing and is not compared. Of several nodes that stand in the way either may
    be named: `other_blockers`.
    """
    for what, model, wanted, real, said in _pairs(outcome, code, text, features):
        if model is None or real is None:
            who = "the model" if real is None else "the real controller"
            yield f"only {who} answers for {what}"
        elif int(model.error) != real:
            yield (
                f"{_of(what)}the model says {model.error.name}, the real controller {_name(real)} "
                f"({said})"
            )
        elif real and said != wanted and said not in _as_true(outcome, wanted):
            yield f"{_of(what)}the model says {wanted!r}, the real controller {said!r}"


def other_blockers(
    outcome: StepOutcome, code: int, text: str, features: Mapping[str, tuple[int, str]]
) -> Iterator[str]:
    """Where a controller names another of the nodes that stand in the way than the model, and why.

    It names the one that its hash table gives first, and where nodes have come and gone the table
    may be larger than its size says. No client can know that.
    """
    for what, _, wanted, _, said in _pairs(outcome, code, text, features):
        if said != wanted and said in _as_true(outcome, wanted):
            yield f"{_of(what)}the real controller names another of those in the way first: {said}"


def _of(what: str) -> str:
    return f"{what}: " if what else ""


def _pairs(
    outcome: StepOutcome, code: int, text: str, features: Mapping[str, tuple[int, str]]
) -> Iterator[tuple[str, ApiError | None, str, int | None, str]]:
    """For the whole request and each feature: the model's answer and text, the real code and text.

    The model gives the reason alone; a client gets it with the words for the whole request.
    """
    if outcome.answer is None:
        return
    yield "", outcome.answer, "" if outcome.answer.accepted else outcome.messages[0], code, text
    if code:
        return
    expected: dict[str, ApiError] = {str(name): answer for name, answer in outcome.results}
    for name in sorted({*expected, *features}):
        model, (real, said) = expected.get(name), features.get(name, (None, ""))
        yield name, model, (model.text or "") if model else "", real, said


def _as_true(outcome: StepOutcome, wanted: str) -> set[str]:
    """The texts that name another node of the same role, which is in the way as well."""
    if not isinstance(outcome.step, UpdateLevels):
        return set()
    state, found = outcome.before.state, set[str]()
    finalized = state.metadata_version() or FeatureLevel(0)
    for update in outcome.step.updates:
        first = reason_not_supported(state, update.feature, update.level, finalized)
        if first is None or not wanted.endswith(first):
            continue
        for alone in _each_alone(state, first):
            text = reason_not_supported(alone, update.feature, update.level, finalized)
            found.add(wanted.removesuffix(first) + (text or first))
    return found


def _each_alone(state: ControllerState, first: str) -> Iterator[ControllerState]:
    """The state with one node of the role that is named, and no other."""
    nobody = replace(state, brokers=(), controllers=(), quorum=())
    if first.startswith("Broker"):
        yield from (replace(nobody, brokers=(one,)) for one in state.brokers)
    elif first.startswith("Controller"):
        yield from (replace(nobody, controllers=(one,)) for one in state.controllers)


def _name(code: int) -> str:
    return Errors(code).name if code in [one.value for one in Errors] else f"error {code}"


def state_differences(model: ControllerState, real: ControllerState) -> Iterator[str]:
    """Where the cluster of the real controller is not as the model has it, a sentence each."""
    one, other = all_levels(model), all_levels(real)
    for name in sorted({*one, *other}):
        if one.get(name) != other.get(name):
            yield f"{name} is {one.get(name, 0)} in the model and {other.get(name, 0)} really"
    brokers = {each.id: each for each in real.brokers}
    wanted = {each.id: each for each in model.brokers}
    for node in sorted({*brokers, *wanted}):
        if node not in brokers or node not in wanted:
            yield f"broker {node} is registered {_where(node in wanted)}"
        else:
            yield from _ranges("broker", node, wanted[node].ranges, brokers[node].ranges)
            if wanted[node].fenced != brokers[node].fenced:
                yield f"broker {node} is fenced {_where(wanted[node].fenced)}"
    yield from _controllers(model, real)


def _controllers(model: ControllerState, real: ControllerState) -> Iterator[str]:
    wanted = {each.id: each.ranges for each in model.controllers}
    found = {each.id: each.ranges for each in real.controllers}
    for node in sorted({*wanted, *found}):
        if node not in wanted or node not in found:
            yield f"controller {node} is registered {_where(node in wanted)}"
        else:
            yield from _ranges("controller", node, wanted[node], found[node])


def _where(in_model: bool) -> str:
    return "in the model alone" if in_model else "at the real controller alone"


def _ranges(
    role: str, node: NodeId, model: SupportedRanges, real: SupportedRanges
) -> Iterator[str]:
    if dict(model) != dict(real):
        yield f"{role} {node} supports {dict(model)} in the model and {dict(real)} really"


def staging_differences(live: ControllerState, staged: ControllerState) -> Iterator[str]:
    """What of a live cluster its stand-in does not have, a sentence each.

    ``staged`` is the state of the real controller that stands in, before the first step.
    """
    if dict(live.local) != dict(staged.local):
        own, now = ranges_text(live.local), ranges_text(staged.local)
        yield f"controller {live.id} supports {now}; the live one supports {own}"
    if absent := [str(one) for one in live.quorum if one not in staged.quorum]:
        yield (
            f"the voters {', '.join(absent)} do not run: that one has not registered, or that the "
            "majority is gone, cannot be asked"
        )
    if staged.voters_support_kraft and not live.voters_support_kraft:
        yield (
            "it is its own only voter; some live voters are of a release before 4.1, with which a "
            "leader does not raise kraft.version"
        )
    for name, level in all_levels(live).items():
        if all_levels(staged).get(name) != level:
            yield f"{name} is {all_levels(staged).get(name, 0)}; it is {level} in the live cluster"
    for name, level in all_levels(staged).items():
        if name not in all_levels(live):
            yield f"{name} is {level}; it is not finalized in the live cluster"
    known = {each.id for each in staged.brokers}
    if out := [str(each.id) for each in live.brokers if each.id not in known]:
        yield f"brokers {', '.join(out)} could not be registered at the finalized levels"
    registered = {each.id for each in staged.controllers}
    if out := [str(each.id) for each in live.controllers if each.id not in registered]:
        yield f"controllers {', '.join(out)} could not be registered at this {METADATA_VERSION}"
    if live.migration.in_progress:
        yield "the live cluster migrates from ZooKeeper; this one does not"
