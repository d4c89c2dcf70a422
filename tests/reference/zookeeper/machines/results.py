"""Results of updates, for tests."""

from featurewatch.reference.zookeeper.machines.requests import ErrorCode, UpdateResponse


def succeeded(response: UpdateResponse) -> bool:
    """Whether neither the response nor an item has an error."""
    return response.error is ErrorCode.NONE and all(
        item.error is ErrorCode.NONE for item in response.results
    )
