"""The rules for one item in the two drafts of KIP-584.

Both accept a lower level only if the item allows downgrades and every live broker supports it. The
later draft deletes by a level below 1, which needs the same permission. In the early draft 0 is an
ordinary level, and deletion is a separate request without a check of ranges or levels.
"""

from featurewatch.reference.zookeeper.machines.features.items import (
    ItemDecision,
    UpdateContext,
    accept,
    reject,
)
from featurewatch.reference.zookeeper.machines.requests import (
    DeleteFeatures,
    EarlyUpdate,
    EarlyUpdateType,
    LaterUpdate,
    Update,
)


def check_draft_update(context: UpdateContext, update: Update, _version: int) -> ItemDecision:
    """Decides on one item of UPDATE_FEATURES, by the rules of the context's draft."""
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
    """Decides on the early draft's DELETE_FEATURES: any finalized feature can be deleted."""
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
