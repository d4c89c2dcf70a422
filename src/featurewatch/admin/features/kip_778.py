"""UpdateFeatures as KIP-778 is written, key 57: DowngradeType, and DryRun from version 1 on; no IO.

The response is that of released Kafka (`admin.features.update_request`).
"""

from collections.abc import Iterable
from typing import Any

from featurewatch.admin.errors import RequestError
from featurewatch.admin.features.updates import DowngradeType, FeatureUpdate
from featurewatch.kafka.messages import Request, message_class


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
        raise RequestError("the controller takes no dry run: version 1 of the request does")
    form = message_class("Kip778UpdateFeaturesRequest", version)
    request: Request[Any] = form(
        timeout_ms=int(timeout_s * 1000),
        feature_updates=tuple(
            form.FeatureUpdateKey(
                feature=update.feature,
                max_version_level=update.level,
                downgrade_type=int(DowngradeType.of(update.kind)),
            )
            for update in updates
        ),
        **({} if version == 0 else {"dry_run": dry_run}),
    )
    return request
