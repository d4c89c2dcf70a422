"""The source for clusters whose metadata log may not be read: ApiVersions of every node."""

from featurewatch.streams.apiversions.node_features import NodeFeatures
from featurewatch.streams.apiversions.settings import ApiVersionsSettings, ControllerAddress
from featurewatch.streams.apiversions.source import ApiVersionsSource
from featurewatch.streams.types import NodeKey

__all__ = [
    "ApiVersionsSettings",
    "ApiVersionsSource",
    "ControllerAddress",
    "NodeFeatures",
    "NodeKey",
]
