"""When tokens are renewed, and how long a fetch may take: ``sasl.login.…`` of Kafka."""

from collections.abc import Mapping

from featurewatch.kafka.client_config.network import decimal_property, integer_property
from featurewatch.kafka.client_config.oauth.settings import (
    DEFAULT_LIMITS,
    DEFAULT_REFRESH,
    FetchLimits,
    RefreshRule,
)


def refresh_rule(properties: Mapping[str, str]) -> RefreshRule:
    """When a token is renewed, within the ranges of ``SaslConfigs``; raises `SecurityError`."""
    default = DEFAULT_REFRESH
    prefix = "sasl.login.refresh."
    return RefreshRule(
        decimal_property(properties, f"{prefix}window.factor", default.window_factor, (0.5, 1.0)),
        decimal_property(properties, f"{prefix}window.jitter", default.window_jitter, (0.0, 0.25)),
        decimal_property(properties, f"{prefix}min.period.seconds", default.min_period_s, (0, 900)),
        decimal_property(properties, f"{prefix}buffer.seconds", default.buffer_s, (0, 3600)),
    )


def fetch_limits(properties: Mapping[str, str]) -> FetchLimits:
    """The times of one fetch; raises `SecurityError`."""
    default = DEFAULT_LIMITS

    def seconds(key: str, otherwise: float, lowest: int = 1) -> float:
        number = integer_property(properties, key, lowest, "a number of milliseconds")
        return otherwise if number is None else number / 1000

    return FetchLimits(
        seconds("sasl.login.connect.timeout.ms", default.connect_s),
        seconds("sasl.login.read.timeout.ms", default.read_s),
        seconds("sasl.login.retry.backoff.ms", default.backoff_s),
        seconds("sasl.login.retry.backoff.max.ms", default.max_backoff_s),
    )
