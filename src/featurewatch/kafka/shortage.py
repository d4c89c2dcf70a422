"""Whether an error of the system is a shortage of this process and not a fault of a peer."""

import errno
import os
from typing import Final

_FILES: Final = (errno.EMFILE, errno.ENFILE)
_MEMORY: Final = (errno.ENOMEM, errno.ENOBUFS)

_ADVICE: Final = (
    "this process has no file descriptor left: raise its limit (ulimit -n, LimitNOFILE) or watch "
    "fewer clusters with it"
)


def local_shortage(error: OSError) -> str | None:
    """The shortage that an error means and what to do; None: it is another error.

    The number of the error is lost where a name could not be resolved, or where several addresses
    of a host were tried: whether a file can be opened shows it all the same.
    """
    if error.errno in _FILES or any(os.strerror(number) in str(error) for number in _FILES):
        return _ADVICE
    if error.errno in _MEMORY:
        return "this machine has no memory left for a connection"
    return None if can_open_files() else _ADVICE


def can_open_files() -> bool:
    """Whether this process has file descriptors left."""
    try:
        for end in os.pipe():
            os.close(end)
    except OSError as error:
        return error.errno not in _FILES
    return True
