"""Changes of a real cluster's finalized levels, made while a fault lasts."""

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterable
from typing import Self

from featurewatch.admin.features.client import FeatureUpdate, UpdateRefusedError, update_features
from featurewatch.kafka.address import Address
from featurewatch.kafka.node_errors import NodeError
from featurewatch.streams.types import FeatureLevel, FeatureName, UpgradeType
from tests.faults.verdict import Level

FLIPPED = (("group.version", 1), ("transaction.version", 2))
MARKER = ("share.version", 1)
_PAUSE_S = (0.05, 0.4)
_TIMEOUT_S = 3.0

SetLevel = Callable[[str, int], bool]
"""Finalizes a level of a feature; whether the cluster took it. Raises `UpdateRefusedError`."""


class Traffic:
    """Puts levels up and down in a thread, and sets a marker level that nothing else touches."""

    def __init__(self, set_level: SetLevel, seed: int) -> None:
        self.count = 0
        self._set_level = set_level
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._levels = dict((*FLIPPED, MARKER))
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        for feature, level in self._levels.items():
            # A row that did not hold may have left another one, and a flip would change nothing.
            with contextlib.suppress(UpdateRefusedError):
                self._set_level(feature, level)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def wait(self, count: int, hold_s: float, timeout_s: float = 120.0) -> None:
        """Returns when the fault has lasted ``hold_s`` and ``count`` changes were made in it."""
        start_s, first = time.monotonic(), self.count
        while time.monotonic() < start_s + hold_s or self.count < first + count:
            if time.monotonic() > start_s + hold_s + timeout_s:
                raise TimeoutError(f"the cluster took {self.count - first} of {count} changes")
            time.sleep(0.05)

    def mark(self, timeout_s: float = 120.0) -> Level:
        """Flips the marker; returns it with its new level."""
        deadline = time.monotonic() + timeout_s
        while not self._flip(*MARKER):
            if time.monotonic() > deadline:
                raise TimeoutError("the cluster takes no change")
        return MARKER[0], self._levels[MARKER[0]]

    def _run(self) -> None:
        while not self._stop.wait(self._random.uniform(*_PAUSE_S)):
            self.count += self._flip(*self._random.choice(FLIPPED))

    def _flip(self, feature: str, top: int) -> bool:
        level = 0 if self._levels[feature] else top
        try:
            taken = self._set_level(feature, level)
        except UpdateRefusedError:
            # An attempt whose outcome was unknown has done it.
            self._levels[feature] = level
            return False
        if taken:
            self._levels[feature] = level
        return taken


def set_level(
    brokers: Iterable[str],
    feature: str,
    level: int,
    downgrade: UpgradeType = UpgradeType.UNSAFE_DOWNGRADE,
) -> bool:
    """Finalizes a level (0: removes it) by the first broker that answers; False: none did.

    Raises:
        UpdateRefusedError: the controller refused it.
    """
    kind = UpgradeType.UPGRADE if level else downgrade
    update = FeatureUpdate(FeatureName(feature), FeatureLevel(level), kind)
    for broker in brokers:
        with contextlib.suppress(NodeError, OSError, TimeoutError):
            asyncio.run(update_features(Address.parse(broker), (update,), timeout_s=_TIMEOUT_S))
            return True
    return False
