"""Files and directories that only their owner may read, from the first byte on.

Everything that may contain a password is written here: the configuration of nodes and clients,
JAAS files, keys and stack files. A file that is first created and then restricted can be opened in
between, so none is.
"""

import os
import stat
from pathlib import Path


def write_private(path: Path, content: str | bytes) -> None:
    """Replaces a file atomically by one of mode 0600; a link at ``path`` is replaced, not
    followed."""
    data = content.encode() if isinstance(content, str) else content
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    unfinished.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(unfinished, flags, 0o600), "wb") as file:
            file.write(data)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def open_private_directory(path: Path) -> int | None:
    """Opens a directory that nobody else can write or replace, and creates it if it is missing.

    Returns a file descriptor; None if the directory, or the one above it, belongs to another user
    or is open to others.
    """
    try:
        above = path.parent.stat()
        path.mkdir(mode=0o700, exist_ok=True)
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    own = os.fstat(directory)
    is_own = own.st_uid == os.getuid() and not own.st_mode & 0o077
    # In a directory that others may write to, such as /tmp, the sticky bit keeps them from renaming
    # it.
    is_safe_above = above.st_uid in (0, os.getuid()) and (
        not above.st_mode & 0o022 or bool(above.st_mode & stat.S_ISVTX)
    )
    if is_own and is_safe_above:
        return directory
    os.close(directory)
    return None
