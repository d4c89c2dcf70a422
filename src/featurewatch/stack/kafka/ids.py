"""Ids of clusters and directories, as Kafka forms them."""

import base64
import uuid


def random_id() -> str:
    """A random id in Kafka's format: 22 characters of URL-safe base64, no leading dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
