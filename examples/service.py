"""A service that uses transactions of version 2 once its cluster has finalized them.

Usage: python service.py BUS CLUSTER [PREFIX]
"""

import logging
import sys
import time

from featurewatch.client import BusSettings, ClientError, FeatureGate


def handle(order: int, *, fast: bool) -> str:
    """Handles an order on one of two paths."""
    return f"order {order}: {'one' if fast else 'two'} round trips"


def main(bus: str, cluster: str, prefix: str = "featurewatch") -> None:
    """Handles orders until it is stopped."""
    logging.basicConfig(level=logging.WARNING)
    with FeatureGate(BusSettings(bus, prefix=prefix), cluster=cluster) as gate:
        for order in range(1_000_000):
            try:
                fast = gate.at_least(cluster, "transaction.version", 2)
            except ClientError:  # retired, not known yet, or written by a later featurewatch
                fast = False
            print(handle(order, fast=fast), flush=True)
            time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
