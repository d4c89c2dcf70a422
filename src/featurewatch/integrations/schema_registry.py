"""Registers the topics' JSON Schemas in a schema registry, by the API of Confluent's.

A subject is ``<topic>-value``, as serializers of that registry look it up. Other registries speak
the same API: Apicurio below ``/apis/ccompat/v7``, which a test runs, and Karapace, which is not on
PyPI and was not tried.
"""

import base64
import http.client
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import orjson

from featurewatch.common.text import shortened
from featurewatch.streams.schemas import schema_of
from featurewatch.streams.topics import ALL

_TIMEOUT_S: Final = 10.0
_MAX_RESPONSE_BYTES: Final = 64 * 1024
_TYPE: Final = "application/vnd.schemaregistry.v1+json"


class RegistryError(Exception):
    """A registry cannot be used, or refused a schema; the text says which and what to do."""


@dataclass(frozen=True, slots=True)
class Registry:
    """A schema registry: its URL, ``user:password`` (empty: none) and an authority's PEM file."""

    url: str
    credentials: str = field(default="", repr=False)
    ca: Path | None = None

    def register(self, prefix: str) -> dict[str, int]:
        """Registers the schema of each topic, and returns the ids by subject.

        A schema that is there already keeps its id. ``prefix`` is that of the topics. Raises
        `RegistryError`; the subjects before the one that it names are registered.
        """
        return {
            f"{topic.name(prefix)}-value": self._register(
                f"{topic.name(prefix)}-value", schema_of(topic)
            )
            for topic in ALL
        }

    def _register(self, subject: str, schema: dict[str, Any]) -> int:
        body = orjson.dumps({"schemaType": "JSON", "schema": orjson.dumps(schema).decode()})
        status, content = self._post(f"/subjects/{quote(subject, safe='')}/versions", body)
        try:
            answer = orjson.loads(content)
            if status == http.client.OK:
                return int(answer["id"])
            reason = str(answer["message"])
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            reason = content.decode(errors="replace")
        if status == http.client.CONFLICT:
            reason += (
                " (the registry's rule of compatibility refuses new fields: set the compatibility "
                "of the subject to NONE, featurewatch removes no field without a new version)"
            )
        raise RegistryError(f"{self._place} refused {subject} ({status}): {shortened(reason, 500)}")

    @property
    def _place(self) -> str:
        """The URL without a login that somebody wrote into it."""
        parts = urlsplit(self.url)
        return f"the schema registry at {parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    def _post(self, path: str, body: bytes) -> tuple[int, bytes]:
        headers = {"Content-Type": _TYPE, "Accept": f"{_TYPE}, application/json"}
        if self.credentials:
            encoded = base64.b64encode(self.credentials.encode()).decode()
            headers["Authorization"] = f"Basic {encoded}"
        try:
            connection, base = self._connection()
            try:
                connection.request("POST", f"{base}{path}", body, headers)
                response = connection.getresponse()
                return response.status, response.read(_MAX_RESPONSE_BYTES)
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise RegistryError(
                f"{self._place} does not answer: {text or type(error).__name__}"
            ) from None

    def _connection(self) -> tuple[http.client.HTTPConnection, str]:
        """A connection and the path below which the API is."""
        try:
            parts = urlsplit(self.url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if not host or parts.scheme not in ("http", "https") or "@" in parts.netloc:
            raise RegistryError(
                "the URL of a schema registry is like https://registry.example:8081, without a "
                "login: give it with --credentials FILE"
            )
        if parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S), parts.path.rstrip(
                "/"
            )
        context = ssl.create_default_context(cafile=self.ca)
        connection = http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=context)
        return connection, parts.path.rstrip("/")
