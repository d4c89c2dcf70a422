"""Certificates and keys from properties or from a store, as files for OpenSSL to read."""

import os
import re
import tempfile
from functools import cache
from typing import IO, Any, Final

from featurewatch.kafka.client_config.errors import SecurityError

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)


def pem_blocks(text: str, label: str, key: str) -> str:
    """The PEM blocks of a property, whose line ends a properties file may have lost.

    At least one has a label that ends in ``label``: `SecurityError` names ``key`` where none does.
    """
    blocks = []
    for kind, body in _BLOCK.findall(text):
        # A key of the old form has headers, which keep their lines.
        lines = (
            body.strip() if ":" in body else "\n".join(re.findall(".{1,64}", "".join(body.split())))
        )
        blocks.append(f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----\n")
    if not any(f"{label}-----" in block for block in blocks):
        raise SecurityError(f"{key} has no {label} block in PEM", key)
    return "".join(blocks)


@cache
def held_file(content: str) -> str:
    """The path of a file with a content, which only this process reads and which ends with it.

    On Linux it is in memory; elsewhere it is a file of mode 0600 in the temporary directory.
    """
    try:
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("featurewatch", os.MFD_CLOEXEC)
            file: IO[Any] = os.fdopen(descriptor, "wb")
            path = f"/proc/self/fd/{descriptor}"
        else:
            file = tempfile.NamedTemporaryFile(prefix="featurewatch-")  # noqa: SIM115 - held open
            path = file.name
        file.write(content.encode("latin-1"))
        file.flush()
    except OSError as error:
        raise SecurityError(f"no room for a certificate: {error.strerror}") from None
    _HELD.append(file)
    return path


_HELD: Final[list[IO[Any]]] = []
