"""Runs a program under the filters of system calls that a unit of systemd has, without systemd.

``python -m tests.deploy.confined UNIT PROGRAM ARGUMENT...``. Of a unit these are applied:
``SystemCallFilter``, with an error instead of an end, ``MemoryDenyWriteExecute`` and
``RestrictAddressFamilies``. Needs libseccomp, and ``systemd-analyze`` for the sets of calls.
"""

import ctypes
import errno
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

LIBRARY: Final = "libseccomp.so.2"

_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | errno.EPERM
_EQUAL: Final = 4
_MASKED_EQUAL: Final = 7
_WRITE, _EXECUTE = 2, 4
_SHM_EXEC: Final = 0o100000


class _Comparison(ctypes.Structure):
    """`struct scmp_arg_cmp` of libseccomp."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    )


Condition = tuple[int, int, int, int]
"""An argument's position, a comparison and its two values."""


def settings(unit: Path) -> Iterator[tuple[str, str]]:
    """The settings of a unit in their order."""
    for line in unit.read_text().splitlines():
        if match := re.fullmatch(r"(\w+)=(.*)", line):
            yield match[1], match[2]


def allowed_calls(unit: Path) -> set[str]:
    """The names of the system calls that a unit leaves."""
    allowed: set[str] = set()
    for name, value in settings(unit):
        if name == "SystemCallFilter":
            calls = {call for word in value.lstrip("~").split() for call in _expanded(word)}
            allowed = allowed - calls if value.startswith("~") else allowed | calls
    return allowed


def _expanded(word: str) -> set[str]:
    if not word.startswith("@"):
        return {word}
    command = ["systemd-analyze", "syscall-filter", "--no-pager", word]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    words = [line.strip() for line in listed.splitlines()[1:]]
    names = [name for name in words if name and not name.startswith("#")]
    return {call for name in names for call in _expanded(name)}


def conditions(unit: Path) -> dict[str, list[Condition]]:
    """The calls that a unit leaves under conditions, of which one must hold."""
    given = dict(settings(unit))
    found: dict[str, list[Condition]] = {}
    if given.get("MemoryDenyWriteExecute") == "yes":
        both = _WRITE | _EXECUTE
        found["mmap"] = [(2, _MASKED_EQUAL, both, prot) for prot in (0, _WRITE, _EXECUTE)]
        found["mprotect"] = found["pkey_mprotect"] = [(2, _MASKED_EQUAL, _EXECUTE, 0)]
        found["shmat"] = [(2, _MASKED_EQUAL, _SHM_EXEC, 0)]
    if families := given.get("RestrictAddressFamilies"):
        numbers = [int(getattr(socket, family)) for family in families.split()]
        found["socket"] = [(0, _EQUAL, number, 0) for number in numbers]
    return found


def confine(unit: Path) -> None:
    """Applies the filters to this process and all that it starts."""
    library = ctypes.CDLL(LIBRARY)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(_REFUSE)))
    conditional = conditions(unit)
    for name in allowed_calls(unit):
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number == -1:
            continue
        for condition in conditional.get(name, [None]):
            array = (_Comparison * 1)(_Comparison(*condition)) if condition else None
            arguments = (ctypes.c_uint(1 if condition else 0), array)
            result = library.seccomp_rule_add_array(
                context, ctypes.c_uint32(_ALLOW), ctypes.c_int(number), *arguments
            )
            if result != 0:
                raise OSError(-result, f"no rule for {name}")
    if (result := library.seccomp_load(context)) != 0:
        raise OSError(-result, "the filter cannot be loaded")


if __name__ == "__main__":
    confine(Path(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - an argument list, no shell
