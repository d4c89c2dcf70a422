"""One API server: GET requests over verified TLS, whose answers are bounded in size and time."""

import http.client
import json
import ssl
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from featurewatch.common.private_files import write_private
from featurewatch.common.text import quoted

MAX_BYTES: Final = 8 * 1024 * 1024
_REQUEST_S: Final = 10.0
_ANSWER_S: Final = 30.0
_CHUNK: Final = 65_536
_REFUSALS: Final = {
    401: "the login is not valid, or has expired",
    403: "this login lacks the right: grant it get and list on kafkas and kafkanodepools",
    404: "not found: check the namespace and the name, and whether Strimzi is installed",
}


class KubernetesError(Exception):
    """The API server could not be read: one line that says why and what to do."""


@dataclass(frozen=True, slots=True)
class ApiServer:
    """The address of an API server, a namespace, and a login.

    ``ca`` are certificates in PEM (empty: the system's authorities). ``token`` is a bearer token,
    ``certificate`` and ``key`` are those of a client in PEM; each may be empty. The certificate of
    the server is always verified.
    """

    url: str
    namespace: str = "default"
    ca: str = ""
    token: str = field(default="", repr=False)
    certificate: str = ""
    key: str = field(default="", repr=False)

    def get(self, path: str, monotonic: Callable[[], float] = time.monotonic) -> Any:
        """The JSON document at a path, with numbers as text; ``monotonic`` is a clock in seconds.

        Raises:
            KubernetesError: It was not answered, refused, or is too large or no JSON.
        """
        try:
            status, body = self._exchange(path, monotonic)
        except ssl.SSLCertVerificationError as error:
            raise KubernetesError(
                f"{self.url}: its certificate is not trusted ({error.verify_message}): check the "
                "certificate-authority of the kubeconfig"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise KubernetesError(
                f"{self.url} does not answer: {quoted(text or type(error).__name__)}"
            ) from None
        if status != http.client.OK:
            reason = _REFUSALS.get(status, "it is not what was asked for")
            raise KubernetesError(f"{self.url}{path}: status {status}: {reason}")
        try:
            return json.loads(body, parse_int=str, parse_float=str)
        except (ValueError, RecursionError):
            raise KubernetesError(f"{self.url}{path}: the answer is not JSON") from None

    def _exchange(self, path: str, monotonic: Callable[[], float]) -> tuple[int, bytes]:
        parts = urlsplit(self.url)
        deadline = monotonic() + _ANSWER_S
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port, timeout=_REQUEST_S, context=self._context()
        )
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            connection.request("GET", parts.path.rstrip("/") + path, headers=headers)
            response = connection.getresponse()
            body = bytearray()
            while chunk := response.read1(_CHUNK):
                body += chunk
                if len(body) > MAX_BYTES:
                    raise KubernetesError(f"{self.url}{path}: the answer has more than 8 MiB")
                if monotonic() > deadline:
                    raise TimeoutError(f"no whole answer after {_ANSWER_S:.0f} s")
            return response.status, bytes(body)
        finally:
            connection.close()

    def _context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cadata=self.ca or None)
            if self.certificate:
                with tempfile.TemporaryDirectory() as directory:
                    file = Path(directory, "client.pem")
                    write_private(file, f"{self.certificate}\n{self.key}\n")
                    context.load_cert_chain(file)
        except (ssl.SSLError, ValueError):
            raise KubernetesError(f"the certificates for {self.url} are not valid PEM") from None
        return context
