"""Decides on a request to change finalized levels, without applying it.

`decide` returns the levels to write and the response if the write succeeds. It changes nothing, so
a dry run is `decide` without the write. The rules for one item are in `released` and `drafts`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from featurewatch.reference.zookeeper.machines.features import drafts, released
from featurewatch.reference.zookeeper.machines.features.items import ItemDecision, UpdateContext
from featurewatch.reference.zookeeper.machines.requests import (
    DeleteFeatures,
    ErrorCode,
    ItemResult,
    UpdateFeatures,
    UpdateResponse,
)

ALL_FAILED = "The update failed for all features since the following feature had an error: {}"
"""Kafka 4.0's error for UpdateFeatures v2 and newer (``QuorumController.updateFeatures``)."""


@dataclass(frozen=True, slots=True)
class FeatureDecision:
    """``levels`` is the whole set to write, None for no write; ``response`` follows the write."""

    levels: Mapping[str, int] | None
    response: UpdateResponse


def decide(context: UpdateContext, request: UpdateFeatures | DeleteFeatures) -> FeatureDecision:
    """Decides on a request by the rules of the context's dialect."""
    if isinstance(request, DeleteFeatures):
        if not context.dialect.has_delete:
            return _rejected(ErrorCode.INVALID_REQUEST, "There is no DELETE_FEATURES here.")
        items: Sequence[ItemDecision] = drafts.check_deletions(context, request)
    else:
        items = _decide_items(context, request)
    is_atomic = not context.dialect.per_item or (
        isinstance(request, UpdateFeatures) and request.version >= 2
    )
    failed = [item.result for item in items if item.result.error is not ErrorCode.NONE]
    if is_atomic and failed:
        return _all_failed(context, failed)
    results = () if is_atomic else tuple(item.result for item in items)
    levels = dict(context.levels)
    for item in items:
        if item.result.error is not ErrorCode.NONE:
            continue
        if item.level is None:
            levels.pop(item.result.feature, None)
        else:
            levels[item.result.feature] = item.level
    writes_always = bool(items) and context.dialect.writes_unchanged
    is_dry_run = isinstance(request, UpdateFeatures) and request.validate_only
    changed = not is_dry_run and (writes_always or levels != context.levels)
    return FeatureDecision(levels if changed else None, UpdateResponse(results=results))


def not_written(context: UpdateContext, response: UpdateResponse, reason: str) -> UpdateResponse:
    """The response if the request was valid but its write failed and changed nothing.

    ``response`` is that of the decision; ``reason`` is put into the error's text.
    """
    if not response.results:
        return UpdateResponse(
            context.dialect.failure, f"The finalized features could not be written: {reason}."
        )
    text = "Unable to update finalized features due to an unexpected server error."
    failed = tuple(
        replace(item, error=ErrorCode.FEATURE_UPDATE_FAILED, message=text)
        if item.error is ErrorCode.NONE
        else item
        for item in response.results
    )
    return UpdateResponse(results=failed)


def _decide_items(context: UpdateContext, request: UpdateFeatures) -> list[ItemDecision]:
    """The decisions, one per feature.

    Of two items for one feature the first counts in released Kafka, whose collection is keyed; the
    drafts reject both.
    """
    check = (
        released.check_released_update if context.dialect.per_item else drafts.check_draft_update
    )
    items: dict[str, ItemDecision] = {}
    for update in request.updates:
        item = check(context, update, request.version)
        if not context.dialect.per_item and item.result.feature in items:
            item = item.rejected(ErrorCode.INVALID_REQUEST, "The feature is named twice.")
            items[item.result.feature] = item
        items.setdefault(item.result.feature, item)
    return [*items.values()]


def _all_failed(context: UpdateContext, failed: Sequence[ItemResult]) -> FeatureDecision:
    first = failed[0]
    if context.dialect.per_item:
        return _rejected(first.error, ALL_FAILED.format(first.message))
    if context.dialect.failure is ErrorCode.FEATURE_UPDATES_FAILED:
        texts = (f"{item.feature}: {item.message}" for item in failed)
        return _rejected(ErrorCode.FEATURE_UPDATES_FAILED, " ".join(texts))
    return _rejected(first.error, f"{first.feature}: {first.message}")


def _rejected(error: ErrorCode, message: str) -> FeatureDecision:
    return FeatureDecision(None, UpdateResponse(error, message))
