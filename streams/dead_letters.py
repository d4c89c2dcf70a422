"""Makes the dead letters of sources, each small enough for the bus whatever it quotes."""

import hashlib
from typing import Final

from featurewatch.streams.events import DeadLetter
from featurewatch.streams.text import shortened

MAX_PAYLOAD_BYTES: Final = 4 << 20
"""The bytes that a dead letter carries: a whole znode, and of a damaged batch, which may have 20
MiB, the first of them. In base64 they take a third more, which the bus accepts."""


def dead_letter(cluster: str, place: str, reason: str, payload: bytes, seen_ms: int) -> DeadLetter:
    """A dead letter; of a longer payload the beginning, with the length and digest of all of it."""
    if len(payload) > MAX_PAYLOAD_BYTES:
        digest = hashlib.sha256(payload).hexdigest()
        reason = (
            f"{reason} (the first {MAX_PAYLOAD_BYTES} of {len(payload)} bytes, SHA-256 {digest})"
        )
        payload = payload[:MAX_PAYLOAD_BYTES]
    return DeadLetter(cluster, shortened(place), shortened(reason), payload, seen_ms)
