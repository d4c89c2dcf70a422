"""UpdateFeatures as Kafka released it, key 57, to the wire and back; no IO.

Version 1 is what every release from 3.3 on takes, with a dry run. A broker of a mixed cluster may
offer version 2 where the active controller, which it forwards to, does not, and then closes the
connection; so 2 is used only where there is nothing else. Its response has no more content: from
4.0 on a refusal is one for all in any version. Version 0 is that of Kafka 2.7 to 3.2.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from featurewatch.admin.api_errors import error_text
from featurewatch.admin.errors import RequestError
from featurewatch.admin.features.updates import (
    FeatureResult,
    FeatureUpdate,
    UpdateResult,
    uniform_result,
)
from featurewatch.kafka.messages import Request, message_class
from featurewatch.streams.types import FeatureName

UPDATE_FEATURES: Final = 57
_PREFERRED: Final = (1, 0, 2)


def version_for(offered: Mapping[int, tuple[int, int]]) -> int | None:
    """The version for a node, by its API versions; None: it has no UpdateFeatures."""
    low, high = offered.get(UPDATE_FEATURES, (1, 0))
    return next((version for version in _PREFERRED if low <= version <= high), None)


def update_request(
    updates: Iterable[FeatureUpdate],
    version: int,
    *,
    dry_run: bool = False,
    timeout_s: float = 60.0,
) -> Request[Any]:
    """The request; the server gives up after ``timeout_s``.

    Raises:
        RequestError: A dry run in version 0, which has none.
    """
    if version == 0 and dry_run:
        raise RequestError("the controller takes no dry run: Kafka 3.3 and later do")
    form = message_class("UpdateFeaturesRequest", version)
    request: Request[Any] = form(
        timeout_ms=int(timeout_s * 1000),
        feature_updates=tuple(
            form.FeatureUpdateKey(
                feature=update.feature, max_version_level=update.level, **_how(update, version)
            )
            for update in updates
        ),
        **({} if version == 0 else {"validate_only": dry_run}),
    )
    return request


def read_update(answer: Any, updates: Iterable[FeatureUpdate]) -> UpdateResult:
    """The results in a response; from version 2 on, or if all is refused, one for all."""
    error = answer.error_code
    results = getattr(answer, "results", ())
    if error != 0 or not results:
        return uniform_result((update.feature for update in updates), error, answer.error_message)
    results_by_feature = (
        FeatureResult(
            FeatureName(each.feature),
            each.error_code,
            (each.error_message or error_text(each.error_code)) if each.error_code else None,
        )
        for each in results
    )
    return UpdateResult(tuple(sorted(results_by_feature, key=lambda result: result.feature)))


def _how(update: FeatureUpdate, version: int) -> dict[str, Any]:
    if version == 0:
        return {"allow_downgrade": update.allows_downgrade()}
    return {"upgrade_type": int(update.kind)}
