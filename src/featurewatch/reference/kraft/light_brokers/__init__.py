"""An asyncio shell around light brokers: many brokers in one process, over few connections.

A reference, not for production.
"""

from featurewatch.reference.kraft.light_brokers.host import LightBrokerHost, light_settings

__all__ = ["LightBrokerHost", "light_settings"]
