"""Which watched cluster of a process may publish under a cluster's id.

Ids are public, so a node can return that of another cluster. Then nobody but the configuration
knows which entry is the right one.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from featurewatch.common.text import enumeration
from featurewatch.streams.events import DeadLetter, Event
from featurewatch.streams.source import Sink
from featurewatch.streams.topics import Topic
from featurewatch.streams.types import ClusterId


@dataclass(frozen=True, eq=False)
class Entry:
    """An entry of the configuration; ``is_configured``: it has the cluster's id."""

    name: str
    is_configured: bool


class Claim:
    """The claim of an entry to an id; made by `ClusterClaims`. An entry may have several."""

    def __init__(self, claims: "ClusterClaims", cluster_id: ClusterId, entry: Entry) -> None:
        self.cluster_id = cluster_id
        self.entry = entry
        self._claims = claims
        self._changed = asyncio.Event()

    def refusal(self) -> str | None:
        """Why the entry may not publish under the id; None if it may."""
        entries = list(dict.fromkeys(claim.entry for claim in self._claims.of(self.cluster_id)))
        first = next((entry for entry in entries if entry.is_configured), None)
        others = [entry for entry in entries if entry is not self.entry]
        if first is self.entry or not others:
            return None
        if first is not None:
            return (
                f"its nodes return the id {self.cluster_id}, which the configuration gives to "
                f"{first.name}: check its addresses"
            )
        names = enumeration(entry.name for entry in others)
        return (
            f"its nodes return the id {self.cluster_id}, and so do those of {names}, so that none "
            "of them is followed: write one entry for a cluster, with all its addresses, or set "
            "cluster_id in the entry of the right one"
        )

    async def wait(self, *, refused: bool, timeout_s: float | None = None) -> None:
        """Returns once the entry is refused, or no longer; after the timeout in any case."""

        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while (self.refusal() is not None) is not refused:
                    self._changed.clear()
                    await self._changed.wait()

    def notify(self) -> None:
        """Another claim to the id was made or released."""
        self._changed.set()

    def release(self) -> None:
        """Gives the claim up."""
        self._claims.release(self)


class ClusterClaims:
    """All claims of a process."""

    def __init__(self) -> None:
        self._claims: dict[ClusterId, list[Claim]] = {}

    def of(self, cluster_id: ClusterId) -> list[Claim]:
        """The claims to an id, in the order in which they were made."""
        return self._claims.get(cluster_id, [])

    def claim(self, cluster_id: ClusterId, entry: Entry) -> Claim:
        """Claims an id for an entry."""
        claim = Claim(self, cluster_id, entry)
        self._claims.setdefault(cluster_id, []).append(claim)
        self._notify(cluster_id)
        return claim

    def release(self, claim: Claim) -> None:
        """Removes a claim."""
        self._claims[claim.cluster_id].remove(claim)
        self._notify(claim.cluster_id)

    def _notify(self, cluster_id: ClusterId) -> None:
        for claim in self.of(cluster_id):
            claim.notify()


class ClaimedSink:
    """A `Sink` for a source that learns its cluster's id while it runs.

    It claims the id of each event, and takes nothing while the entry may not publish under it.
    ``on_refusal`` gets the reason whenever an event waits, and None when one is passed on.
    """

    def __init__(
        self,
        sink: Sink,
        claims: ClusterClaims,
        entry: Entry,
        on_refusal: Callable[[str | None], None],
    ) -> None:
        self._sink = sink
        self._claims = claims
        self._entry = entry
        self._on_refusal = on_refusal
        self._claim: Claim | None = None

    async def publish(self, topic: Topic, event: Event | DeadLetter) -> Any:
        """Passes an event on, once the entry may publish under its cluster's id."""
        if event.cluster:
            await self._wait_until_allowed(ClusterId(event.cluster))
        return await self._sink.publish(topic, event)

    async def flush(self) -> None:
        """Waits until everything is acknowledged."""
        await self._sink.flush()

    @property
    def error(self) -> str | None:
        """Why the bus takes nothing at present, in one line."""
        return self._sink.error

    def release(self) -> None:
        """Gives the claim up."""
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    async def _wait_until_allowed(self, cluster_id: ClusterId) -> None:
        if self._claim is None or self._claim.cluster_id != cluster_id:
            self.release()
            self._claim = self._claims.claim(cluster_id, self._entry)
        while (refusal := self._claim.refusal()) is not None:
            self._on_refusal(refusal)
            await self._claim.wait(refused=False)
        self._on_refusal(None)
