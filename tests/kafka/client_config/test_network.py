"""The settings of the network client, by the properties of Kafka's clients."""

import pytest

from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.network import (
    NETWORK_DEFAULTS,
    NetworkSettings,
    network_settings,
)
from featurewatch.kafka.client_properties import client_config


def test_the_settings_have_kafkas_names_units_and_defaults() -> None:
    """Milliseconds become seconds; what is not given has the default of ``AdminClientConfig``."""
    properties = {
        "client.id": "ops",
        "default.api.timeout.ms": "7000",
        "request.timeout.ms": "500",
        "socket.connection.setup.timeout.ms": "250",
        "retries": "0",
        "retry.backoff.ms": "0",
        "metadata.max.age.ms": "1000",
    }
    expected = NetworkSettings("ops", 7.0, 0.5, 0.25, 0, 0.0, 1.0)
    assert client_config(properties).network == network_settings(properties) == expected
    assert client_config({}).network == NETWORK_DEFAULTS
    assert (NETWORK_DEFAULTS.max_repeats, NETWORK_DEFAULTS.backoff_s) == (2**31 - 1, 0.1)
    assert NETWORK_DEFAULTS.metadata_age_s == 300


@pytest.mark.parametrize("value", ["", "-1", "1.5", "x", "2147483648", "\u0663"])
@pytest.mark.parametrize(
    ("key", "range_"),
    [
        ("request.timeout.ms", "a number of milliseconds from 1 to 2147483647"),
        ("retries", "a number from 0 to 2147483647"),
    ],
)
def test_a_number_out_of_its_range_is_refused(key: str, range_: str, value: str) -> None:
    """In one line with the property and the range."""
    with pytest.raises(SecurityError) as refused:
        network_settings({key: value})
    assert str(refused.value) == f"{key}={value} is not {range_}"
    assert refused.value.key == key
