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


def check_draft_update(here: UpdateContext, update: Update, _version: int) -> ItemDecision:
    """One item of UPDATE_FEATURES, in the form of its draft."""
    match update, here.dialect.deletes_by_level:
        case LaterUpdate(name, level, allow), True:
            return _later(here, name, level, allow=allow)
        case EarlyUpdate(name, level, kind), False:
            return _early(here, name, level, kind)
        case LaterUpdate(name) | EarlyUpdate(name), _:
            return reject(name, "The item is of another form of UpdateFeatures.")
        case _:
            return reject(_name(update), "The item is of another form of UpdateFeatures.")


def check_deletions(here: UpdateContext, request: DeleteFeatures) -> list[ItemDecision]:
    """The items of the early draft's DELETE_FEATURES: what is finalized can go."""
    return [_gone(here, name) for name in dict.fromkeys(request.names)]


def _later(here: UpdateContext, name: str, level: int, *, allow: bool) -> ItemDecision:
    if name and level < here.dialect.lowest_level:
        if not allow:
            return reject(name, f"Level {level} deletes the feature, which must be allowed.")
        return _gone(here, name)
    return _levelled(here, name, level, allow=allow)


def _early(here: UpdateContext, name: str, level: int, kind: int) -> ItemDecision:
    if kind == EarlyUpdateType.DELETE:
        return _gone(here, name)
    if kind not in (EarlyUpdateType.ADD_OR_UPDATE, EarlyUpdateType.ADD_OR_UPDATE_ALLOW_DOWNGRADE):
        return reject(name, f"There is no feature update type {kind}.")
    if level < here.dialect.lowest_level:
        return reject(name, f"Level {level} is below {here.dialect.lowest_level}.")
    return _levelled(here, name, level, allow=kind == EarlyUpdateType.ADD_OR_UPDATE_ALLOW_DOWNGRADE)


def _levelled(here: UpdateContext, name: str, level: int, *, allow: bool) -> ItemDecision:
    if not name:
        return reject(name, "The name of a feature is empty.")
    existing = here.levels.get(name)
    if existing is not None and level < existing and not allow:
        return reject(name, f"Going from level {existing} down to {level} must be allowed.")
    against = here.incompatible(name, level)
    if against:
        some = ", ".join(map(str, against[:10])) + (" …" if len(against) > 10 else "")
        return reject(name, f"Level {level} is not supported by {len(against)} brokers: {some}.")
    return accept(name, level)


def _gone(here: UpdateContext, name: str) -> ItemDecision:
    if name not in here.levels:
        return reject(name, "The feature is not finalized.")
    return accept(name, None)


def _name(update: object) -> str:
    return str(getattr(update, "feature", ""))
