"""Any content of a configuration file or a properties file gives settings, or one line."""

import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from featurewatch.cli.config.client_config import read_client_config
from featurewatch.cli.config.client_config import read_properties as read
from featurewatch.cli.config.settings import Settings, load
from featurewatch.cli.errors import UsageError
from featurewatch.kafka.client_config.keys import check_zookeeper_keys
from featurewatch.pipeline.fleet.desired import DesiredError
from tests.forging import JSON
from tests.pipeline.fleet.desired_text import desired_of

SECTIONS = sorted(Settings.model_fields)
FIELDS = sorted(
    {
        field
        for name in ("bus", "worker", "readiness", "web", "notify", "replay")
        for field in Settings.model_fields[name].annotation.model_fields  # type: ignore[union-attr]
    }
    | {"controllers", "servers", "zookeeper", "cluster_id", "records"}
)
SECTION = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=3) | JSON
CONFIGURATIONS = st.dictionaries(
    st.sampled_from(SECTIONS), SECTION | st.lists(SECTION, max_size=2), max_size=3
)
KEYS = ("security.protocol", "sasl.mechanism", "sasl.jaas.config", "ssl.truststore.type",
        "ssl.truststore.location", "default.api.timeout.ms", "sasl.username", "ssl.keystore.key",
        "ssl.protocol", "ssl.cipher.suites", "zookeeper.ssl.x")  # fmt: skip
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
VALUES = ("SASL_SSL", "SASL_PLAINTEXT", "SSL", "PLAIN", "SCRAM-SHA-256", "PEM", "/dev/null",
          "9" * 30, f'{MODULE} required username="u";')  # fmt: skip
PROPERTIES = st.lists(
    st.tuples(
        st.sampled_from(KEYS) | st.text(max_size=6), st.sampled_from(VALUES) | st.text(max_size=30)
    ).map("=".join),
    max_size=6,
).map("\n".join)


def check(error: Exception) -> None:
    """One line that a person can read."""
    assert "\n" not in str(error)
    assert len(str(error)) < 5_000


@pytest.mark.fuzz
@example('{"bus": {"\\n": null}}')
@given(CONFIGURATIONS.map(yaml.safe_dump) | st.text(max_size=60))
@settings(max_examples=100)
def test_any_configuration_is_settings_or_a_line(text: str) -> None:
    """Any value in any field, and any text."""
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_text(text, newline="")
        try:
            load(Path(file.name))
        except UsageError as error:
            check(error)
    try:
        desired_of(text)
    except DesiredError as error:
        check(error)


@pytest.mark.fuzz
@given(PROPERTIES.map(str.encode) | st.binary(max_size=60))
@settings(max_examples=100)
def test_any_properties_are_a_login_or_a_line(content: bytes) -> None:
    """Any value of any key, and any bytes."""
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content)
        for attempt in (
            read_client_config,
            lambda path: read(path).checked(check_zookeeper_keys),
        ):
            try:
                attempt(Path(file.name))
            except UsageError as error:
                check(error)
