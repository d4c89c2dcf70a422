"""Which watched cluster of a process may publish under a cluster's id.

Ids are public, so a node can return that of another cluster. Then nobody but the configuration
knows which entry is the right one.
"""

import asyncio

from featurewatch.streams.types import ClusterId


class Claim:
    """The claim of one entry of the configuration to an id; made by `ClusterClaims`."""

    def __init__(
        self, claims: "ClusterClaims", cluster_id: ClusterId, name: str, is_configured: bool
    ) -> None:
        self.cluster_id = cluster_id
        self.name = name
        self.is_configured = is_configured
        self._claims = claims
        self._changed = asyncio.Event()

    def refusal(self) -> str | None:
        """Why the entry may not publish under the id; None: it may."""
        claims = self._claims.of(self.cluster_id)
        first = next((claim for claim in claims if claim.is_configured), None)
        others = [claim for claim in claims if claim is not self]
        if first is self or not others:
            return None
        if first is not None:
            return (
                f"its nodes return the id {self.cluster_id}, which the configuration gives to "
                f"{first.name}: check its addresses"
            )
        names = " and ".join(claim.name for claim in others)
        return (
            f"its nodes return the id {self.cluster_id}, and so do those of {names}, so that none "
            "of them is followed: write one entry for a cluster, with all its addresses, or set "
            "cluster_id in the entry of the right one"
        )

    async def wait(self, *, refused: bool, timeout_s: float | None = None) -> None:
        """Returns once the entry is refused, or no longer; after the timeout in any case."""

        async def until() -> None:
            while (self.refusal() is not None) is not refused:
                self._changed.clear()
                await self._changed.wait()

        try:
            await asyncio.wait_for(until(), timeout_s)
        except TimeoutError:
            return

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

    def claim(self, cluster_id: ClusterId, name: str, *, is_configured: bool) -> Claim:
        """Claims an id for an entry; ``is_configured``: the entry has it in the configuration."""
        claim = Claim(self, cluster_id, name, is_configured)
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
