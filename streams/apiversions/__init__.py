"""The source for clusters whose metadata log one may not read: it asks every node ApiVersions."""

from streams.apiversions.answers import NodeFeatures
from streams.apiversions.settings import ApiVersionsSettings, ControllerAddress
from streams.apiversions.source import ApiVersionsSource
from streams.types import NodeKey

__all__ = [
    "ApiVersionsSettings",
    "ApiVersionsSource",
    "ControllerAddress",
    "NodeFeatures",
    "NodeKey",
]
