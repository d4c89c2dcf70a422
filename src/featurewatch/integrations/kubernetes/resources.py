"""The requests for a Kafka resource and its node pools."""

import re
from typing import Any, Final
from urllib.parse import quote

from featurewatch.integrations.kubernetes.api_server import ApiServer, KubernetesError

_GROUP: Final = "kafka.strimzi.io"
_VERSION: Final = re.compile(r"kafka\.strimzi\.io/v[a-z0-9]{1,20}")
_AT_ONCE: Final = 100
_MOST_PAGES: Final = 20


def strimzi_documents(server: ApiServer) -> list[Any]:
    """All Kafka resources and node pools of the namespace, as the API server lists them.

    They are asked for in the version that the server prefers.

    Raises:
        KubernetesError: The server did not answer, or what it answered is not what was asked for.
    """
    group = server.get(f"/apis/{_GROUP}")
    preferred = group.get("preferredVersion") if isinstance(group, dict) else None
    version = preferred.get("groupVersion") if isinstance(preferred, dict) else None
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise KubernetesError(f"{server.url}: it names no version of {_GROUP}")
    return [
        page
        for plural in ("kafkas", "kafkanodepools")
        for page in _pages(server, f"/apis/{version}/namespaces/{quote(server.namespace)}/{plural}")
    ]


def _pages(server: ApiServer, path: str) -> list[Any]:
    pages: list[Any] = []
    position = ""
    for _ in range(_MOST_PAGES):
        page = server.get(f"{path}?limit={_AT_ONCE}{position}")
        pages.append(page)
        metadata = page.get("metadata") if isinstance(page, dict) else None
        found = metadata.get("continue") if isinstance(metadata, dict) else None
        if not isinstance(found, str) or not found:
            return pages
        position = f"&continue={quote(found[:4096], safe='')}"
    raise KubernetesError(f"{server.url}{path}: more than {_MOST_PAGES * _AT_ONCE} resources")
