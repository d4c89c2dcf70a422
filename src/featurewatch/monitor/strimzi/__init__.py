"""Compares a cluster with its Strimzi resources, as Kubernetes has them. Pure."""

from featurewatch.monitor.strimzi.comparison import Difference, compare
from featurewatch.monitor.strimzi.resources import (
    NodePool,
    StrimziError,
    StrimziKafka,
    kafka_of,
)

__all__ = ["Difference", "NodePool", "StrimziError", "StrimziKafka", "compare", "kafka_of"]
