"""Resolves test names in a process that has this directory on its path.

Every name that ends with ``.faults.test`` has the address that the file ``FAULTS_NAMES`` holds at
the moment, as if the entries of a name server had changed. Python imports this module when it
starts.
"""

import os
import socket
from pathlib import Path
from typing import Any

_getaddrinfo = socket.getaddrinfo


def _resolve(host: Any, *arguments: Any, **options: Any) -> Any:
    if isinstance(host, str) and host.endswith(".faults.test"):
        host = Path(os.environ["FAULTS_NAMES"]).read_text()
    return _getaddrinfo(host, *arguments, **options)


socket.getaddrinfo = _resolve
