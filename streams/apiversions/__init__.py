"""The source for clusters whose metadata log one may not read: it asks every node ApiVersions."""

from streams.apiversions.answers import Answer, NodeKey
from streams.apiversions.settings import ApiVersionsSettings, Controller
from streams.apiversions.source import ApiVersionsSource

__all__ = ["Answer", "ApiVersionsSettings", "ApiVersionsSource", "Controller", "NodeKey"]
