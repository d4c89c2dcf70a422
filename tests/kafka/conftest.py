"""What every test of connections begins with."""

import pytest

from featurewatch.kafka.failures import KnownListeners


@pytest.fixture(autouse=True)
def no_known_listeners(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting has worked before: another test may have had the port, and texts depend on it."""
    monkeypatch.setattr("featurewatch.kafka.connection._KNOWN", KnownListeners())
