"""The rules of an item in the two drafts of KIP-584.

Both let a lower level pass only where the item allows it, and ask every live broker then too. The
later draft deletes by a level below 1, which must be allowed as well; in the early draft 0 is a
level like any other, and deletion is a request of its own with no check of ranges or levels.
"""

from controller.reference.items import Item, Situation, refused, valid
from controller.reference.requests import (
    DeleteFeatures,
    EarlyUpdate,
    EarlyUpdateType,
    LaterUpdate,
    Update,
)


def judge(here: Situation, update: Update, _version: int) -> Item:
    """One item of UPDATE_FEATURES, in the form of its draft."""
    match update, here.dialect.deletes_by_level:
        case LaterUpdate(name, level, allow), True:
            return _later(here, name, level, allow=allow)
        case EarlyUpdate(name, level, kind), False:
            return _early(here, name, level, kind)
        case LaterUpdate(name) | EarlyUpdate(name), _:
            return refused(name, "The item is of another form of UpdateFeatures.")
        case _:
            return refused(_name(update), "The item is of another form of UpdateFeatures.")


def deletions(here: Situation, request: DeleteFeatures) -> list[Item]:
    """The items of the early draft's DELETE_FEATURES: what is finalized can go."""
    return [_gone(here, name) for name in dict.fromkeys(request.names)]


def _later(here: Situation, name: str, level: int, *, allow: bool) -> Item:
    if name and level < here.dialect.lowest_level:
        if not allow:
            return refused(name, f"Level {level} deletes the feature, which must be allowed.")
        return _gone(here, name)
    return _levelled(here, name, level, allow=allow)


def _early(here: Situation, name: str, level: int, kind: int) -> Item:
    if kind == EarlyUpdateType.DELETE:
        return _gone(here, name)
    if kind not in (EarlyUpdateType.ADD_OR_UPDATE, EarlyUpdateType.ADD_OR_UPDATE_ALLOW_DOWNGRADE):
        return refused(name, f"There is no feature update type {kind}.")
    if level < here.dialect.lowest_level:
        return refused(name, f"Level {level} is below {here.dialect.lowest_level}.")
    return _levelled(here, name, level, allow=kind == EarlyUpdateType.ADD_OR_UPDATE_ALLOW_DOWNGRADE)


def _levelled(here: Situation, name: str, level: int, *, allow: bool) -> Item:
    if not name:
        return refused(name, "The name of a feature is empty.")
    existing = here.levels.get(name)
    if existing is not None and level < existing and not allow:
        return refused(name, f"Going from level {existing} down to {level} must be allowed.")
    against = here.incompatible(name, level)
    if against:
        some = ", ".join(map(str, against[:10])) + (" …" if len(against) > 10 else "")
        return refused(name, f"Level {level} is not supported by {len(against)} brokers: {some}.")
    return valid(name, level)


def _gone(here: Situation, name: str) -> Item:
    if name not in here.levels:
        return refused(name, "The feature is not finalized.")
    return valid(name, None)


def _name(update: object) -> str:
    return str(getattr(update, "feature", ""))
