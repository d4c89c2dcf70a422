"""Shared quorums of each tested release."""

from collections.abc import Callable

import pytest

from featurewatch.stack.kafka.cluster import Cluster


@pytest.fixture(params=["3.9.1", "4.3.0"])
def quorum(request: pytest.FixtureRequest, quorum_of: Callable[[str], Cluster]) -> Cluster:
    """A shared quorum of each tested release."""
    return quorum_of(request.param)
