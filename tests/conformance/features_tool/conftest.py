"""The real tools of both releases, and ours."""

from collections.abc import Callable

import pytest

from tests.conformance.kafka_tools import FEATURES, KafkaTool, KafkaTools, OurCommand


@pytest.fixture(scope="session", params=["3.9.1", "4.3.0"])
def tool(request: pytest.FixtureRequest, tools_of: Callable[[str], KafkaTools]) -> KafkaTool:
    """``kafka-features`` of each release in turn."""
    return tools_of(request.param).tool(FEATURES)


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> OurCommand:
    """``featurewatch features``."""
    return OurCommand(monkeypatch, capsys)
