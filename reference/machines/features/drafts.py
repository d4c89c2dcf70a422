"""The rules of an item in the two drafts of KIP-584.

Both let a lower level pass only where the item allows it, and ask every live broker then too. The
later draft deletes by a level below 1, which must be allowed as well; in the early draft 0 is a
level like any other, and deletion is a request of its own with no check of ranges or levels.
"""

from featurewatch.reference.machines.features.items import (
    ItemDecision,
    UpdateContext,
    accept,
    reject,
)
from featurewatch.reference.machines.requests import (
    DeleteFeatures,
    EarlyUpdate,
    EarlyUpdateType,
    LaterUpdate,
    Update,
)


def check_draft_update(context: UpdateContext, update: Update, _version: int) -> ItemDecision:
    """One item of UPDATE_FEATURES, in the form of its draft."""
    match update, context.dialect.deletes_by_level:
        case LaterUpdate(name, level, allow), True:
            return _later(context, name, level, allow=allow)
        case EarlyUpdate(name, level, kind), False:
            return _early(context, name, level, kind)
        case LaterUpdate(name) | EarlyUpdate(name), _:
            return reject(name, "The item is of another form of UpdateFeatures.")
        case _:
            return reject(_name(update), "The item is of another form of UpdateFeatures.")


def check_deletions(context: UpdateContext, request: DeleteFeatures) -> list[ItemDecision]:
    """The items of the early draft's DELETE_FEATURES: what is finalized can go."""
    return [_delete(context, name) for name in dict.fromkeys(request.names)]


def _later(context: UpdateContext, name: str, level: int, *, allow: bool) -> ItemDecision:
    if name and level < context.dialect.lowest_level:
        if not allow:
            return reject(name, f"Level {level} deletes the feature, which must be allowed.")
        return _delete(context, name)
    return _set_level(context, name, level, allow=allow)


def _early(context: UpdateContext, name: str, level: int, kind: int) -> ItemDecision:
    if kind == EarlyUpdateType.DELETE:
        return _delete(context, name)
    if kind not in (EarlyUpdateType.ADD_OR_UPDATE, EarlyUpdateType.ADD_OR_UPDATE_ALLOW_DOWNGRADE):
        return reject(name, f"There is no feature update type {kind}.")
    if level < context.dialect.lowest_level:
        return reject(name, f"Level {level} is below {context.dialect.lowest_level}.")
    return _set_level(
        context, name, level, allow=kind == EarlyUpdateType.ADD_OR_UPDATE_ALLOW_DOWNGRADE
    )


def _set_level(context: UpdateContext, name: str, level: int, *, allow: bool) -> ItemDecision:
    if not name:
        return reject(name, "The name of a feature is empty.")
    existing = context.levels.get(name)
    if existing is not None and level < existing and not allow:
        return reject(name, f"Going from level {existing} down to {level} must be allowed.")
    incompatible = context.incompatible_brokers(name, level)
    if incompatible:
        some = ", ".join(map(str, incompatible[:10])) + (" …" if len(incompatible) > 10 else "")
        return reject(
            name, f"Level {level} is not supported by {len(incompatible)} brokers: {some}."
        )
    return accept(name, level)


def _delete(context: UpdateContext, name: str) -> ItemDecision:
    if name not in context.levels:
        return reject(name, "The feature is not finalized.")
    return accept(name, None)


def _name(update: object) -> str:
    return str(getattr(update, "feature", ""))
