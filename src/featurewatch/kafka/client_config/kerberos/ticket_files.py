"""The files of a Kerberos login: the keytab, and the ticket cache that ``kinit`` renews."""

import subprocess
from typing import Final

from featurewatch.common.text import quoted
from featurewatch.kafka.client_config.kerberos.settings import KerberosLogin, TicketError

_KINIT_S: Final = 20.0
_KEYTAB_VERSION: Final = b"\x05\x02"
_MAX_KEYTAB_BYTES: Final = 2**20


def check_keytab(path: str, principal: str) -> None:
    """Raises `TicketError` unless a file can be read and has a key of a principal.

    The Kerberos libraries would name neither the file nor the reason.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_KEYTAB_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is not valid"
        raise TicketError(
            f"the keytab {quoted(path)} cannot be read: {reason}: let the user that runs this "
            "process read it"
        ) from None
    if not content.startswith(_KEYTAB_VERSION):
        raise TicketError(
            f"the keytab {quoted(path)} is not a keytab: export the principal's key again (ktadd)"
        )
    names = keytab_principals(content)
    # Signs that principals quote are left to the library, and so is a realm that is not written.
    if "\\" in principal or any(principal in (name, name.rpartition("@")[0]) for name in names):
        return
    raise TicketError(
        f"the keytab {quoted(path)} has no key of {quoted(principal)} but of "
        f"{quoted(', '.join(sorted(names))) or 'nobody'}: correct the principal or the keytab"
    )


def keytab_principals(content: bytes) -> set[str]:
    """The principals of a keytab of version 2; what cannot be read ends it.

    An entry has a length (negative: it is deleted), the number of components, the realm and the
    components, each with a length of two bytes (MIT: ``kt_file.c``).
    """
    names: set[str] = set()
    place = len(_KEYTAB_VERSION)
    while place + 4 <= len(content):
        size = int.from_bytes(content[place : place + 4], signed=True)
        entry = content[place + 4 : place + 4 + abs(size)]
        place += 4 + abs(size)
        if size > 0 and (name := _principal_in(entry)) is not None:
            names.add(name)
    return names


def _principal_in(entry: bytes) -> str | None:
    count, place = int.from_bytes(entry[:2]), 2
    parts: list[str] = []
    for _ in range(count + 1):
        size = int.from_bytes(entry[place : place + 2])
        part = entry[place + 2 : place + 2 + size]
        if len(part) != size or place + 2 > len(entry):
            return None
        parts.append(part.decode(errors="replace"))
        place += 2 + size
    realm, *components = parts
    return f"{'/'.join(components)}@{realm}"


def renew_cache(login: KerberosLogin) -> None:
    """Renews the ticket of a cache by ``kinit -R``, as Kafka's clients do.

    Raises:
        TicketError: That is not possible.
    """
    cache = ["-c", login.cache] if login.cache else []
    try:
        result = subprocess.run(
            [login.kinit, "-R", *cache],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_KINIT_S,
            check=False,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is not valid"
        raise TicketError(
            f"{quoted(login.kinit)}, which renews tickets, cannot be started: {reason}: set "
            "sasl.kerberos.kinit.cmd to it"
        ) from None
    except subprocess.TimeoutExpired:
        raise TicketError(f"{quoted(login.kinit)} -R took longer than {_KINIT_S:g} s") from None
    if result.returncode:
        lines = result.stderr[:4096].decode(errors="replace").strip().splitlines() or [""]
        raise TicketError(f"{quoted(login.kinit)} -R failed: {quoted(lines[-1])}")
