"""Sessions of pytest within tests load what they name, and no other installed plugin.

Those that load themselves take two seconds of a processor in each session.
"""

import pytest


@pytest.fixture(autouse=True)
def named_plugins_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What installed packages bring is not loaded."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
